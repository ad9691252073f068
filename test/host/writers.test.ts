/** Who writes: found by looking at all processes, in slices. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import { hasWriter } from "../../src/host/writers.ts";
import { onProc } from "../support/needs-proc.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** The answer, once it is one. */
function answer(path: string, sinceMs = 0): Promise<{ isWritten: boolean }> {
  return waitFor(
    () => {
      const isWritten = hasWriter(fs.statSync(path), sinceMs);
      return isWritten === "unsure" ? undefined : { isWritten };
    },
    { what: "an answer" },
  );
}

describe("hasWriter", () => {
  onProc(
    "tells a file that another process has open for writing from one that is only read, or closed",
    async () => {
      const dir = tempDir();
      const paths = ["written", "appended", "read", "closed"].map((name) => join(dir, name));
      for (const path of paths) fs.writeFileSync(path, "x");
      const script = 'exec 3>"$1" 4>>"$2" 5<"$3"; echo ready; read line';
      const child = spawn("bash", ["-c", script, "bash", ...paths]);
      onTestFinished(() => {
        child.kill("SIGKILL");
      });
      await new Promise((resolve) => {
        child.stdout.once("data", resolve);
      });
      // A look that began before they were open may still serve.
      await waitFor(async () => (await answer(join(dir, "written"))).isWritten, {
        what: "a writer",
      });
      expect(await answer(join(dir, "appended"))).toEqual({ isWritten: true });
      expect(await answer(join(dir, "read"))).toEqual({ isWritten: false });
      expect(await answer(join(dir, "closed"))).toEqual({ isWritten: false });
      child.stdin.end("\n");
      await waitFor(async () => !(await answer(join(dir, "written"))).isWritten, {
        what: "its end",
      });
    },
  );

  onProc("does not go by a look that began before it is asked about", async () => {
    const path = join(tempDir(), "written");
    fs.writeFileSync(path, "x");
    const child = spawn("bash", [
      "-c",
      'read line; exec 3>>"$1"; echo ready; read line',
      "bash",
      path,
    ]);
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    expect(await answer(path, performance.now())).toEqual({ isWritten: false });
    child.stdin.write("\n");
    await new Promise((resolve) => {
      child.stdout.once("data", resolve);
    });
    expect(await answer(path, performance.now())).toEqual({ isWritten: true });
  });
});
