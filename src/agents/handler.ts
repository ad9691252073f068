/** The arguments of a function that runs tasks, and the errors that it may throw. */
import type { Task } from "../core/task.ts";

/** What a handler gets besides the task. */
export interface HandlerContext {
  /** It is aborted when the attempt must stop: at its time limit, by a cancel, by a shutdown, or when the lease is lost. */
  signal: AbortSignal;
  /** From 1. */
  attempt: number;
  lease: string;
  /** The task's JSON text exactly as dropped, for payloads with numbers that JavaScript cannot hold. */
  taskText: string;
  /** Phase of a node's work process; undefined for tasks that belong to no node. */
  phase: string | undefined;
  /** Path of the packet of a node's run; undefined for tasks that belong to no node. */
  packetFile: string | undefined;
  /** Writes a `progress` event. */
  progress: (details: Record<string, unknown>) => void;
  /** Appends a line to this run's stdout.log. */
  log: (...parts: unknown[]) => void;
}

/** `export default` of a handler module. What it returns is the result's `output`; what it throws fails the attempt. */
export type Handler = (task: Task, context: HandlerContext) => unknown;

/** Thrown by a handler to say that another run cannot help. */
export class NoRetryError extends Error {
  readonly canRetry = false;
}
