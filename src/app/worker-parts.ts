/** What a worker runs in a way of its own, and the kinds of agents beside `exec` and `module`. */
import type { AgentKindEntry } from "../agents/registry.ts";
import { batch } from "../parts/batch/runner.ts";
import { claude } from "../parts/claude/kind.ts";
import { codex } from "../parts/codex/kind.ts";
import { node } from "../parts/plan/runner.ts";
import type { MakeRunner, WorkerParts } from "../worker/runner.ts";

const RUNNERS: readonly MakeRunner[] = [batch, node];
const KINDS: readonly AgentKindEntry[] = [claude, codex];

export const WORKER_PARTS: WorkerParts = { runners: RUNNERS, kinds: KINDS };
