/** A whole pool in the process of the caller: the supervisor, and one worker whose agents are functions. */
import type { Handler } from "../agents/handler.ts";
import { ErrInvalidConfig } from "../core/errors.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { RunSummary, Supervisor, SupervisorOptions } from "../supervisor/supervisor.ts";
import { LocalWorker } from "../worker/local-worker.ts";
import type { WorkerParts } from "../worker/runner.ts";

export interface PoolOptions {
  /** Functions, by the name that tasks give as their `agent`. They replace agents of config.yaml with the same name. */
  handlers?: Readonly<Record<string, Handler>>;
  /** How many tasks run at once; left out: `workers` of config.yaml. */
  slots?: number;
  /** The pool ends when no task is left that could run. */
  drain?: boolean;
  /** Ends the pool: running tasks are asked to stop, and are given back. */
  signal?: AbortSignal | undefined;
  /** Called with lines for people, as things happen. */
  onNotice?: (notice: string) => void;
}

/** What a pool is made of: its supervisor and its worker. */
export interface PoolParts {
  makeSupervisor(options: SupervisorOptions): Supervisor;
  readonly worker: WorkerParts;
}

const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * @returns the summary of the run, when the pool has drained, or was stopped by a signal or the command `stop`
 * @throws ErrSupervisorRunning when a pool runs in this tree already; ErrInvalidConfig; ErrPlugin; ErrMailboxDir; ErrIo
 */
export async function runPool(
  tree: StateTree,
  settings: Settings,
  options: PoolOptions,
  parts: PoolParts,
): Promise<RunSummary> {
  const { handlers = {}, slots, drain = false, signal, onNotice } = options;
  signal?.throwIfAborted();
  const names = Object.keys(handlers);
  const bad = names.find((name) => !AGENT_NAME.test(name));
  if (bad !== undefined)
    throw new ErrInvalidConfig(`handlers: ${JSON.stringify(bad)} is no name of an agent`);
  if (slots !== undefined && !(Number.isInteger(slots) && slots > 0))
    throw new ErrInvalidConfig("slots must be a whole number above 0");
  const others = settings.agents.filter(({ name }) => !names.includes(name));
  const supervisor = parts.makeSupervisor({
    tree,
    settings: {
      ...settings,
      workers: slots ?? settings.workers,
      processes: 1,
      agents: [...names.map((name) => agentOf(name)), ...others],
    },
    drain,
    ...(slots === undefined ? {} : { areWorkersGiven: true }),
    ...(onNotice === undefined ? {} : { onNotice }),
    startWorker: (orders) =>
      new LocalWorker(orders, { ...parts.worker, handlers: new Map(Object.entries(handlers)) }),
  });
  const stop = (): void => supervisor.stop(false);
  signal?.addEventListener("abort", stop);
  try {
    return await supervisor.run();
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** The agent names no module, because its function is in this process. */
function agentOf(name: string): AgentSettings {
  return { name, kind: "module" };
}
