/** A user other than root, for whom files can be unreadable. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const NOBODY = 65_534;
const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));

/** For root no file is unreadable, so the supervisor is somebody else then. */
export function canDropRoot(): boolean {
  if (process.getuid?.() !== 0) return true;
  const { status } = spawnSync(process.execPath, [LAUNCHER, "--version"], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: "/",
  });
  if (status !== 0)
    process.stderr.write("\nSKIPPED: unreadable files: nobody (65534) cannot run this checkout\n");
  return status === 0;
}
