/** The port for the part that delivers mail: `say` to a name instead of a task. Types only. */
import type { Context } from "./command-spec.ts";

/** The options of `say`. This is a type, because a context accepts no interface. */
export type SayOptions = Readonly<{
  to: string[];
  scope: string | undefined;
  from: string | undefined;
  id: string | undefined;
  thread: string | undefined;
  "reply-to": string | undefined;
  "needs-human": boolean;
  /** When a running agent gets the message: at once, at its next step, or after its run. */
  when: string | undefined;
  /** The state of the message that the command waits for, and how long it waits (ms). */
  wait: string | undefined;
  timeout: number | undefined;
}>;

export type SayContext = Omit<Context, "options"> & { options: SayOptions };

/** Sends the words of the command as one message. @returns the exit code */
export type MessageSender = (ctx: SayContext) => Promise<number>;
