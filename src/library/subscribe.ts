/** Follows the events of a pool as they are written, through rotations of the journal. Reads only. */
import { dirname } from "node:path";
import type { LifecycleEvent, LifecycleEventName } from "../core/events.ts";
import { ChangeSignal } from "../host/change-signal.ts";
import { statOf } from "../host/regular-file.ts";
import { readJournal } from "../journal/read.ts";
import { rotatedOf } from "../journal/rotated.ts";
import { JournalTail } from "../journal/tail.ts";

export interface SubscribeOptions {
  /** Ends the events; no error is thrown. */
  signal?: AbortSignal | undefined;
  /** Only events of this task, or of these. */
  task?: string | readonly string[];
  /** Only events of this name, or of these. */
  event?: LifecycleEventName | readonly LifecycleEventName[];
  /** Earlier events first, from this time on, as far as the journal goes back. Left out: only what comes from now on. */
  since?: Date;
}

/** The place in the journal at which the events begin is that of this call, not that of the first read. */
export function subscribe(
  path: string,
  options: SubscribeOptions = {},
): AsyncGenerator<LifecycleEvent, void, void> {
  const { since } = options;
  const current = statOf(path);
  const tail =
    since === undefined
      ? new JournalTail(path, current?.size ?? 0, current?.ino ?? 0)
      : new JournalTail(path, 0, current?.ino ?? 0);
  return follow(path, tail, options);
}

async function* follow(
  path: string,
  tail: JournalTail,
  options: SubscribeOptions,
): AsyncGenerator<LifecycleEvent, void, void> {
  const { signal, since } = options;
  const isWanted = filterOf(options);
  const isOver = (): boolean => signal?.aborted === true;
  if (isOver()) return;
  const change = new ChangeSignal([dirname(path)]);
  const ring = (): void => change.ring();
  signal?.addEventListener("abort", ring);
  try {
    if (since !== undefined)
      for await (const line of rotatedBefore(path, tail.ino))
        if (isOver()) return;
        else if (isWanted(line)) yield line as LifecycleEvent;
    for (;;) {
      for (let lines = tail.next(); lines.length > 0; lines = tail.next())
        for (const line of lines) {
          if (isOver()) return;
          if (isWanted(line)) yield line as LifecycleEvent;
        }
      if (isOver()) return;
      await change.next();
    }
  } finally {
    signal?.removeEventListener("abort", ring);
    change.close();
    tail.close();
  }
}

/** The lines of the files that were rotated away before the file with this inode. */
async function* rotatedBefore(path: string, ino: number): AsyncGenerator<object> {
  for (const file of rotatedOf(path)) {
    if (statOf(file)?.ino === ino) return;
    yield* readJournal(file);
  }
}

function filterOf({ task, event, since }: SubscribeOptions): (line: object) => boolean {
  const tasks = task === undefined ? undefined : new Set<unknown>([task].flat());
  const events = event === undefined ? undefined : new Set<unknown>([event].flat());
  const fromMs = since?.getTime() ?? Number.NEGATIVE_INFINITY;
  return (line) => {
    const { task_id: id, event: name, t } = line as Partial<LifecycleEvent>;
    return (
      typeof name === "string" &&
      (tasks === undefined || tasks.has(id)) &&
      (events === undefined || events.has(name)) &&
      Number(t) >= fromMs
    );
  };
}
