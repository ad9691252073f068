/** What a user of the library could claim now, who has no supervisor that selects. The claim itself decides who gets it. */
import { join } from "node:path";
import { decodeTask } from "../codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import { foldId, parseName, readInboxName, resultName } from "../core/names.ts";
import type { Task } from "../core/task.ts";
import { compareTasks, type WaitingTask } from "../core/waiting-task.ts";
import { liveIds } from "./submit.ts";
import type { Trays } from "./trays.ts";

/** How many names of the inbox a claim looks at: it must not get slower with the backlog. */
const CLAIM_LOOK_MAX = 256;
const UNSELECTED = { agentId: undefined, isSelected: false };

/** The best first. @throws a system error */
export function findClaimable(trays: Trays): WaitingTask[] {
  const nowMs = trays.clock.wallMs();
  // Listed before: what is on its way out then may have its successor in the inbox, which counts.
  const live = liveIds(trays, ["again", "bad"]);
  const found = [...findReady(trays, nowMs), ...findWaiting(trays, nowMs, live)];
  return found.sort(compareTasks);
}

function findReady({ storage, processing }: Trays, nowMs: number): WaitingTask[] {
  return storage.list(processing).flatMap((file): WaitingTask[] => {
    const name = parseName(file);
    if (name?.stage !== "ready" || name.isBatch === true) return [];
    const facts = storage.look(join(processing, file));
    if (facts === undefined || facts.mtimeMs > nowMs) return [];
    const { id, attempt } = name;
    return [{ ...UNSELECTED, id, file, tray: "processing", attempt, priority: 0, createdAt: 0 }];
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
      const task = readWaiting(trays, meaning.id);
      if (task === undefined || (task.not_before ?? 0) * 1000 > nowMs) return [];
      if (task.metadata?.dependencies?.every(isMet) === false) return [];
      const { id, priority = 0, created_at: createdAt = 0 } = task;
      const attempt = (task.attempts ?? 0) + 1;
      return [{ ...UNSELECTED, id, file, tray: "inbox", attempt, priority, createdAt }];
    });
  } finally {
    walk.close();
  }
}

/** Whether a task of this id, in any case, has completed. */
function resultLookup({ storage, outbox }: Trays): (id: string) => boolean {
  let listed: ReadonlySet<string> | undefined;
  // Only for who depends on what is not there under the very same spelling.
  const resultNames = (): ReadonlySet<string> => {
    listed ??= new Set(storage.list(outbox).map(foldId));
    return listed;
  };
  return (id) =>
    storage.look(join(outbox, resultName(id))) !== undefined ||
    resultNames().has(foldId(resultName(id)));
}

/** Undefined when it cannot be read, or is no task. */
function readWaiting(trays: Trays, id: string): Task | undefined {
  try {
    const { facts, bytes } = trays.storage.read(join(trays.inbox, `${id}.json`), TASK_BYTES_MAX);
    return bytes === undefined || bytes.length !== facts.size
      ? undefined
      : decodeTask(bytes, id).task;
  } catch {
    return undefined;
  }
}
