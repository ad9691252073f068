/** Reads parts of the logs of runs that this machine has or had for other trees. */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../../core/errors.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { openToRead } from "../../../host/regular-file.ts";
import { findLog } from "../../../view/know-task.ts";
import { dispatchId } from "../protocol/dispatch.ts";
import { LOG_BYTES_MAX, type LogAsk, type LogPart } from "../protocol/messages.ts";

/** The folder of a run is not searched again within this time, because a log is requested part by part (ms). */
const KNOWN_MS = 500;

export class LocalLogs {
  private known: { id: string; atMs: number; found: ReturnType<typeof findLog> } | undefined;

  constructor(private readonly tree: StateTree) {}

  /** A missing file gives an empty part. @throws a system error when a file cannot be read */
  async part({ request, dispatch, file, from }: LogAsk): Promise<LogPart> {
    // Asks first whether the run has ended. If so, the read sees all that was written.
    const { run, isSettled, isKnown } = await this.find(dispatchId(dispatch));
    const part = { request, is_found: run !== undefined, has_ended: isSettled || !isKnown };
    const bytes = run === undefined ? NOTHING : read(join(run, file), from);
    return { ...part, size: bytes.size, from: bytes.from, data: bytes.data.toString("base64") };
  }

  private find(id: string): ReturnType<typeof findLog> {
    const nowMs = performance.now();
    if (this.known?.id !== id || nowMs - this.known.atMs > KNOWN_MS)
      this.known = { id, atMs: nowMs, found: findLog(this.tree, id) };
    return this.known.found;
  }
}

interface Bytes {
  size: number;
  from: number;
  data: Buffer;
}

const NOTHING: Bytes = { size: 0, from: 0, data: Buffer.alloc(0) };

function read(path: string, wanted: number): Bytes {
  let fd: number;
  try {
    fd = openToRead(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return NOTHING;
    throw error;
  }
  try {
    const { size } = fs.fstatSync(fd);
    const from = Math.min(size, wanted < 0 ? Math.max(0, size + wanted) : wanted);
    const data = Buffer.alloc(Math.min(LOG_BYTES_MAX, size - from));
    return { size, from, data: data.subarray(0, fs.readSync(fd, data, 0, data.length, from)) };
  } finally {
    fs.closeSync(fd);
  }
}
