/**
 * Import this first: what this process starts then keeps the mail and the other state of a user in a temporary folder, which goes when
 * this process ends. So a test or a benchmark leaves nothing in the folders of the person who runs it.
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";

// Vitest loads its configuration, and so this, once for each project.
const MARK = Symbol.for("mailchute own folders");
if (globalThis[MARK] === undefined) {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-user-"));
  globalThis[MARK] = dir;
  process.env.XDG_STATE_HOME = join(dir, "state");
  process.env.XDG_DATA_HOME = join(dir, "share");
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
}
