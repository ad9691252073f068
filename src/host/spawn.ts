/**
 * Starts programs. When no file descriptor is free, Node's `spawn` returns a child without streams and emits the error in the next tick: what
 * uses the streams at once breaks before that. Here such a child has streams, at their end.
 */
import { type ChildProcess, spawn as spawnOfNode } from "node:child_process";

export const spawn = ((...args: Parameters<typeof spawnOfNode>): ChildProcess => {
  const child = spawnOfNode(...args);
  return (child.stdio as unknown) === undefined ? withStreams(child) : child;
}) as typeof spawnOfNode;

/** Nothing comes out of them, and what is written is lost. */
function withStreams(child: ChildProcess): ChildProcess {
  const { PassThrough } = process.getBuiltinModule("node:stream");
  const stdin = new PassThrough().resume();
  const [stdout, stderr] = [new PassThrough().end(), new PassThrough().end()];
  return Object.assign(child, { stdin, stdout, stderr, stdio: [stdin, stdout, stderr] });
}
