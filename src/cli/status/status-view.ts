/** What `status` looks at again and again: one state tree, or all that have names. */
import type { Context } from "../shell/command-spec.ts";

export type StatusContext = Pick<Context, "colour" | "columns" | "isTerminal" | "stateFrom">;

export interface StatusView {
  look(nowMs: number): StatusLook;
  close(): void;
}

export interface StatusLook {
  json(): object;
  /** Of at most `columns` cells. */
  lines(ctx: StatusContext): string[];
}
