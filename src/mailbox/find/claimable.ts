/**
 * Finds the tasks that a user of the library could claim when no supervisor selects them. The claim itself decides which process
 * gets a task.
 */
import { join } from "node:path";
import { decodeTask } from "../../codec/task-codec.ts";
import { type Dependency, readDependencies } from "../../core/dependencies.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { errorName, foldId, parseName, readInboxName, resultName } from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import { compareTasks, type WaitingTask, waitingTask } from "../../core/waiting-task.ts";
import { explainOwner } from "../files/dropped-file.ts";
import type { FileFacts } from "../files/storage.ts";
import { closeTickets } from "../files/tickets.ts";
import type { Trays } from "../files/trays.ts";
import { isFailed, lastOf } from "./failures.ts";
import { liveIds } from "./locate.ts";
import type { ReadyWaits } from "./ready-waits.ts";

/** How many names of the inbox one claim looks at, so that a claim does not get slower as the backlog grows. */
const CLAIM_LOOK_MAX = 256;
const UNSELECTED = { agentId: undefined, isSelected: false };

/** Returns the best task first. @throws a system error */
export function findClaimable(trays: Trays, waits: ReadyWaits): WaitingTask[] {
  const nowMs = trays.clock.wallMs();
  // List `processing/` first: by then the inbox may hold the successor of a task that was leaving, and the successor counts.
  const live = liveIds(trays, ["again", "bad"]);
  const found = [...findReady(trays, waits), ...findWaiting(trays, nowMs, live)];
  return found.sort(compareTasks);
}

function findReady({ storage, processing }: Trays, waits: ReadyWaits): WaitingTask[] {
  const files = storage.list(processing);
  waits.keepOnly(new Set(files));
  return files.flatMap((file): WaitingTask[] => {
    const name = parseName(file);
    if (name?.stage !== "ready" || name.isBatch === true) return [];
    if (waits.leftMs(file) !== 0) return [];
    const { id, attempt } = name;
    const place = { id, file, tray: "processing", attempt } as const;
    return [{ ...UNSELECTED, ...place, priority: 0, createdAt: 0, arrivedMs: 0 }];
  });
}

function findWaiting(trays: Trays, nowMs: number, live: ReadonlySet<string>): WaitingTask[] {
  const { storage, inbox } = trays;
  const isMet = resultLookup(trays);
  const walk = storage.walk(inbox);
  try {
    return walk.next(CLAIM_LOOK_MAX).flatMap((file): WaitingTask[] => {
      const meaning = readInboxName(file);
      if (meaning.kind !== "task" || meaning.isBatch === true || live.has(foldId(meaning.id)))
        return [];
      const waiting = readWaiting(trays, meaning.id);
      if (waiting === undefined) return [];
      const { task, facts } = waiting;
      if ((task.not_before ?? 0) * 1000 > nowMs) return [];
      if (!readDependencies(task.metadata?.dependencies).every(isMet)) return [];
      const attempt = (task.attempts ?? 0) + 1;
      // The user of the library decides which agent runs it.
      return [
        waitingTask(task, { id: task.id, file, tray: "inbox", attempt, ...facts }, [], () => true),
      ];
    });
  } finally {
    walk.close();
  }
}

/** Returns a function that says whether a dependency has completed, or has ended where that is enough. The case of an id does not matter. */
function resultLookup(trays: Trays): (dependency: Dependency) => boolean {
  const hasResult = lookup(trays, "outbox", resultName);
  const hasError = lookup(trays, "failed", errorName);
  return ({ id, required }) =>
    hasResult(id) ||
    (hasError(id) &&
      (hasResult(lastOf(trays, id)) || (required === "terminal" && isFailed(trays, id))));
}

function lookup(
  { storage, ...trays }: Trays,
  tray: "outbox" | "failed",
  nameOf: (id: string) => string,
): (id: string) => boolean {
  const dir = trays[tray];
  let listed: ReadonlySet<string> | undefined;
  // The listing is needed only when no record has exactly the same spelling.
  const names = (): ReadonlySet<string> => {
    listed ??= new Set(storage.list(dir).map(foldId));
    return listed;
  };
  return (id) =>
    storage.look(join(dir, nameOf(id))) !== undefined || names().has(foldId(nameOf(id)));
}

/** Undefined when the file cannot be read, is no task, or belongs to a user whose files are not run. */
function readWaiting(trays: Trays, id: string): { task: Task; facts: FileFacts } | undefined {
  try {
    const { facts, bytes } = trays.storage.read(join(trays.inbox, `${id}.json`), TASK_BYTES_MAX);
    if (facts.nlink > 1) closeTickets(trays, id, facts.ino);
    const isBad = explainOwner(facts.uid, trays.uids) !== undefined;
    return isBad || bytes === undefined || bytes.length !== facts.size
      ? undefined
      : { task: decodeTask(bytes, id).task, facts };
  } catch {
    return undefined;
  }
}
