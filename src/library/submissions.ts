/** Submits the tasks of a program: each gets an id and the time of its creation, and is checked before anything is written. */
import { decodeTask } from "../codec/task-codec.ts";
import { wallSeconds } from "../core/clock.ts";
import { ErrTaskExists } from "../core/errors.ts";
import type { Task } from "../core/task.ts";
import { newId } from "../mailbox/files/random.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { SettledNames } from "../mailbox/find/settled-names.ts";
import { type SubmitOutcome, submitAll } from "../mailbox/submit/submit.ts";
import { submitStamped } from "../mailbox/submit/submit-stamped.ts";

/** How many tasks are submitted together. */
const GROUP = 256;

/** A task to submit: without an id it gets a new one. */
export type NewTask = Omit<Known<Task>, "id"> & { id?: string; [key: string]: unknown };

/** Removes the index signature. With it, `Omit` would lose the named members. */
type Known<T> = { [Key in keyof T as string extends Key ? never : Key]: T[Key] };

/** A task that can be submitted. */
interface Prepared {
  id: string;
  createdAt: number;
  textAt: (createdAt: number) => string;
}

/** @returns its id. @throws ErrInvalidTask, ErrTaskExists, a system error */
export async function submitNew(trays: Trays, task: NewTask): Promise<string> {
  const { id, createdAt, textAt } = prepare(trays, task);
  await submitStamped(trays, id, createdAt, textAt);
  return id;
}

/** See `Mailbox.enqueueAll`. @throws ErrInvalidTask, the reason of the signal, a system error */
export async function submitAllNew(
  trays: Trays,
  tasks: readonly NewTask[],
  signal: AbortSignal | undefined,
): Promise<SubmitOutcome[]> {
  const prepared = tasks.map((task) => prepare(trays, task));
  const settled = new SettledNames(trays);
  const outcomes: SubmitOutcome[] = [];
  for (let from = 0; from < prepared.length; from += GROUP) {
    signal?.throwIfAborted();
    const group = prepared.slice(from, from + GROUP);
    const submissions = group.map(({ id, createdAt, textAt }) => ({
      id,
      bytes: Buffer.from(textAt(createdAt), "utf8"),
    }));
    const submitted = await submitAll(trays, submissions, settled);
    for (const [index, outcome] of submitted.entries()) {
      const isTaken = outcome.outcome === "refused" && outcome.error instanceof ErrTaskExists;
      const one = group[index];
      outcomes.push(isTaken && one !== undefined ? await again(trays, one, outcome) : outcome);
    }
  }
  return outcomes;
}

/** Tries once more, because the same task may be there with an earlier creation time. */
async function again(trays: Trays, one: Prepared, refused: SubmitOutcome): Promise<SubmitOutcome> {
  try {
    const { id, createdAt, textAt } = one;
    return { id, outcome: await submitStamped(trays, id, createdAt, textAt) };
  } catch {
    return refused;
  }
}

/** @throws ErrInvalidTask */
function prepare({ clock }: Trays, task: NewTask): Prepared {
  const id = task.id ?? newId(clock.wallMs());
  const createdAt = wallSeconds(clock);
  const textAt = (atS: number): string => `${JSON.stringify({ created_at: atS, ...task, id })}\n`;
  decodeTask(Buffer.from(textAt(createdAt)), id);
  return { id, createdAt, textAt };
}
