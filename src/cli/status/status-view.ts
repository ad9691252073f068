/** What `status` reads repeatedly: one state tree, or all trees that have names. */
import type { Context } from "../shell/command-spec.ts";

export type StatusContext = Pick<Context, "colour" | "columns" | "isTerminal" | "stateFrom">;

export interface StatusView {
  look(nowMs: number): Promise<StatusLook>;
  close(): void;
}

export interface StatusLook {
  json(): object;
  /** The lines, each at most `columns` cells wide. */
  lines(ctx: StatusContext): string[];
}
