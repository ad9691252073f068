/** Lists the parts that the command `say` can pass a message for a name to. */
import type { MessageSender } from "../cli/shell/message-sender.ts";
import { sayTo } from "../parts/mail/verbs/say-to.ts";

export const MESSAGE_SENDERS: readonly MessageSender[] = [sayTo];
