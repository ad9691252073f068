import { deadLetterOf, retry as retryTask } from "../../mailbox/retry/retry.ts";
import type { CommandHandler } from "./command-context.ts";

/** Takes effect once: if another dead letter is there than at the first try, the task was put back already. */
export const retry: CommandHandler = async ({ env, queue }, inHand) => {
  const { trays, facts } = env;
  const id = inHand.command.args.node ?? "";
  const letter = deadLetterOf(trays, id);
  if (inHand.subject === undefined || inHand.subject === letter) {
    if (inHand.subject === undefined && letter !== undefined) await inHand.noteSubject(letter);
    await retryTask(trays, id);
  }
  queue.accepted.delete(id);
  facts.emit("inbox:written", `${id}.json`);
  facts.emit("processing:changed");
  return { retried: id };
};
