/** The list of children that a process has now. Kept open, it costs one call, and stays that process's when its number is used again. */
import fs from "node:fs";
import { askProc } from "./read-proc.ts";

/** The system fills at most one page with whole numbers; less than that is the end of the list. A number has at most 10 digits and a space. */
const PAGE_BYTES = 4096;
const NUMBER_BYTES = 11;
const page = Buffer.allocUnsafe(PAGE_BYTES);

export class ProcessChildren {
  private constructor(private readonly fd: number) {}

  /**
   * Only children of the first thread: orphans become children of that one.
   * @returns undefined when the process is gone, or the system shows no children
   * @throws the system's error when no descriptors are left
   */
  static open(pid: number): ProcessChildren | undefined {
    const fd = askProc(() => fs.openSync(`/proc/${pid}/task/${pid}/children`, "r"));
    return fd === undefined ? undefined : new ProcessChildren(fd);
  }

  /** None when the process has ended. @throws the system's error when it cannot be read now */
  read(): number[] {
    let text = "";
    for (let bytes = 0; ; ) {
      const count = fs.readSync(this.fd, page, 0, PAGE_BYTES, bytes);
      bytes += count;
      text += page.toString("latin1", 0, count);
      if (count < PAGE_BYTES - NUMBER_BYTES) return text.split(" ").slice(0, -1).map(Number);
    }
  }

  close(): void {
    fs.closeSync(this.fd);
  }
}
