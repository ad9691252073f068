/** Lists the checks of the coding agents' programs. */
import type { ProgramProbe } from "../agents/probe/program-probe.ts";
import { claudeProbe } from "../parts/claude/probe.ts";
import { codexProbe } from "../parts/codex/probe.ts";

export const PROBES: readonly ProgramProbe[] = [claudeProbe, codexProbe];
