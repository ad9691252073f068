/** Prints many messages with one call: a call for each would take longer than reading them. */
import type { Context } from "../../../cli/shell/command-spec.ts";
import { visibleJson } from "../../../core/visible.ts";
import { localTime } from "../../../text/local-time.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import type { Numbered } from "../store/read-messages.ts";
import { documentOf, linesOf } from "./open-mail.ts";

const PRINTED_CHARS = 32 * 1024;

export class Printer {
  private text = "";

  constructor(
    private readonly ctx: Pick<Context, "out" | "json">,
    private readonly folder: MailFolder,
  ) {}

  /** Collects the message and prints it with the next ones, once there are enough or at `flush`. @returns a promise if it printed */
  add(message: Numbered): Promise<void> | undefined {
    const { folder } = this;
    const lines = this.ctx.json
      ? [visibleJson(documentOf(folder, message))]
      : linesOf(folder, message, localTime(message.created_at * 1000));
    this.text += `${lines.join("\n")}\n`;
    return this.text.length >= PRINTED_CHARS ? this.flush() : undefined;
  }

  /** Resolves when all messages are written. */
  async flush(): Promise<void> {
    const { text } = this;
    this.text = "";
    if (text !== "") await this.ctx.out.raw(text);
  }
}
