/** Lists the tests that find out what the installed programs of coding agents can do. */
import type { Handshake, ProgramProbe } from "../agents/probe/bench.ts";
import { acpHandshake } from "../parts/acp/handshake.ts";
import { claudeProbe } from "../parts/claude/probe.ts";
import { codexProbe } from "../parts/codex/probe.ts";

export const PROBES: readonly ProgramProbe[] = [claudeProbe, codexProbe];

export const HANDSHAKES: readonly Handshake[] = [acpHandshake];
