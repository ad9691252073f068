/** Tells how a task has ended that was waited for, and what its program wrote to stdout. */
import fs from "node:fs";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import type { StateTree } from "../../core/state-tree.ts";
import { openToRead } from "../../host/regular-file.ts";
import { safe, safeOutput } from "../../text/render.ts";
import { findLog } from "../../view/know-task.ts";
import type { Settled } from "../../view/task-ends.ts";
import type { Context } from "../shell/command-spec.ts";

const CHUNK_BYTES = 64 * 1024;

/** Tells the end of a task that `--wait` has waited for. @param isProgram prints what its program wrote */
export async function tellEnd(
  ctx: Pick<Context, "out" | "isTerminal">,
  tree: StateTree,
  settled: Settled | undefined,
  { id, isProgram }: { id: string; isProgram: boolean },
): Promise<void> {
  if (isProgram) await printOutput(ctx, tree, id);
  if (settled?.status === "failed") ctx.out.note(`${id} failed: ${safe(settled.error ?? "")}`);
}

/** A file or pipe gets the bytes as they are. Nothing is printed of a run at another machine. */
async function printOutput(
  { out, isTerminal }: Pick<Context, "out" | "isTerminal">,
  tree: StateTree,
  id: string,
): Promise<void> {
  const { run } = await findLog(tree, id);
  if (run === undefined) return;
  let fd: number;
  try {
    fd = openToRead(join(run, "stdout.log"));
  } catch {
    return;
  }
  try {
    const decoder = new StringDecoder("utf8");
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      const bytes = chunk.subarray(0, fs.readSync(fd, chunk, 0, CHUNK_BYTES, null));
      if (bytes.length === 0) break;
      await out.raw(isTerminal ? safeOutput(decoder.write(bytes)) : bytes);
    }
  } finally {
    fs.closeSync(fd);
  }
}
