/** The mailbox as a library, together with what is done after a task has settled. */
import { Mailbox as MailboxWithoutParts } from "../library/mailbox.ts";
import type { MailboxOptions } from "../library/mailbox-options.ts";
import { FOLLOW } from "./follow.ts";

export class Mailbox extends MailboxWithoutParts {
  /**
   * Opens the mailbox in `dir`, and makes its trays if they are missing.
   * @throws ErrMailboxDir when it cannot be used safely, or the state tree around it needs a newer program
   */
  static override open(dir: string, options: MailboxOptions = {}): Mailbox {
    return MailboxWithoutParts.open(dir, options, FOLLOW[0]);
  }
}
