/** Checks whether a pool can have the processes and threads that it wants: reads the limits, and starts some as a trial. */
import { spawnSync } from "node:child_process";
import { DEFAULT_SETTINGS, type Settings } from "../../core/settings.ts";
import { describeRoom, type ProcessRoom, processRoom } from "../../host/process-room.ts";
import { threadsWanted } from "../../host/threads.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";

/** Threads of a running supervisor, and of each worker process without its threads for the disk. */
const SUPERVISOR_THREADS = 11;
const WORKER_THREADS = 8;
const TRIAL_MS_MAX = 20_000;
const NAME = "processes";
const RAISE =
  "raise the limit of processes and threads: ulimit -u, TasksMax= of the service, --pids-limit of the container";

/**
 * @param settings undefined when they cannot be read
 * @param isRunning true if a pool has started its processes already, so only its programs need room. It reports its failures itself
 */
export function checkProcesses(settings: Settings | undefined, isRunning: boolean): CheckResult {
  const { processes, workers, durability } = settings ?? DEFAULT_SETTINGS;
  const threads = threadsWanted(durability);
  const room = processRoom();
  const limit = room === undefined ? "" : `; ${describeRoom(room)}`;
  if (!isRunning && !canHaveThreads(threads, room)) {
    if (!canHaveThreads(1, room))
      return failing(NAME, `no worker process can be started${limit}`, RAISE);
    const what = `a worker process cannot have its ${threads} threads for the disk, and makes do with fewer${limit}`;
    return warned(NAME, what, RAISE);
  }
  const own = SUPERVISOR_THREADS + Math.min(processes, workers) * (WORKER_THREADS + threads);
  const wanted = (isRunning ? 0 : own) + workers;
  if (room !== undefined && room.left < wanted) {
    const what = isRunning ? `${workers} programs at once` : `a pool with ${workers} slots`;
    return warned(
      NAME,
      `${what} may want ${wanted} more${limit}: what cannot be started waits`,
      `${RAISE}; or run fewer slots (workers)`,
    );
  }
  const what = isRunning ? "there is room" : `a worker process can have its ${threads} threads`;
  return ok(NAME, `${what}${limit}`);
}

/** Tries it in a separate process, because on failure libuv aborts the process or Node hangs. */
function canHaveThreads(count: number, room: ProcessRoom | undefined): boolean {
  if (room !== undefined && room.left < WORKER_THREADS + count) return false;
  const script =
    "require('node:fs').access('/', () => {}); new (require('node:worker_threads').Worker)('', { eval: true });";
  const { status } = spawnSync(process.execPath, ["-e", script], {
    env: { ...process.env, UV_THREADPOOL_SIZE: String(count), NODE_OPTIONS: "" },
    stdio: "ignore",
    timeout: TRIAL_MS_MAX,
    killSignal: "SIGKILL",
  });
  return status === 0;
}
