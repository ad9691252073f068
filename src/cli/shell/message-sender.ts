/** The port for the part that keeps mail: `say` to a name instead of a task. Types only. */
import type { Context } from "./command-spec.ts";

/** What `say` was told. A type, because a context takes no interface. */
export type SayOptions = Readonly<{
  to: string[];
  scope: string | undefined;
  from: string | undefined;
  id: string | undefined;
  thread: string | undefined;
  "reply-to": string | undefined;
  "needs-human": boolean;
  /** When an agent that runs gets it: at once, at its next step, or after its run. */
  when: string | undefined;
  /** How far it has to come before the command ends, and for how long that waits (ms). */
  wait: string | undefined;
  timeout: number | undefined;
}>;

export type SayContext = Omit<Context, "options"> & { options: SayOptions };

/** Sends the words of the command as one message. @returns the exit code */
export type MessageSender = (ctx: SayContext) => Promise<number>;
