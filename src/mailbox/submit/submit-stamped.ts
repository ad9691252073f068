/** Submits a task that holds the time of its creation. A task that differs from a submitted one only in that time is the same. */
import { ErrTaskExists } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { inboxName } from "../../core/names.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { findTaskText } from "./duplicates.ts";
import { submit } from "./submit.ts";

/**
 * @param textAt the task's text, with this time as its `created_at` (unix seconds)
 * @throws ErrTaskExists, ErrInvalidTask, ErrIo
 */
export async function submitStamped(
  trays: Trays,
  id: string,
  createdAt: number,
  textAt: (createdAt: number) => string,
): Promise<"submitted" | "unchanged"> {
  const send = (atS: number): ReturnType<typeof submit> =>
    submit(trays, { id, bytes: Buffer.from(textAt(atS), "utf8") });
  try {
    return await send(createdAt);
  } catch (error) {
    const before = error instanceof ErrTaskExists ? createdAtOf(trays, id) : undefined;
    if (before === undefined) throw error;
    return send(before);
  }
}

/** The creation time of the task that has this id already. */
function createdAtOf(trays: Trays, id: string): number | undefined {
  const task = parseObject(waitingText(trays, id) ?? findTaskText(trays, id) ?? "");
  const createdAt = task?.["created_at"];
  return typeof createdAt === "number" ? createdAt : undefined;
}

function waitingText({ storage, inbox }: Trays, id: string): string | undefined {
  try {
    return storage.read(pathIn(inbox, inboxName({ id })), TASK_BYTES_MAX).bytes?.toString("utf8");
  } catch {
    // The task left the inbox just now.
    return undefined;
  }
}
