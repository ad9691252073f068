/** A program that cannot be started for want of file descriptors: the error comes as that of any other. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { expect, it } from "vitest";
import { tempDir } from "../support/temp-dir.ts";

const SPAWN = fileURLToPath(new URL("../../src/host/spawn.ts", import.meta.url));
const RUN_GIT = fileURLToPath(new URL("../../src/git/run-git.ts", import.meta.url));

/** Takes all descriptors of a process, starts something with 0 to 8 of them left, and prints how each ended. */
async function endsOf(setUp: string, start: string): Promise<string[]> {
  const dir = tempDir();
  const entry = join(dir, "entry.ts");
  fs.writeFileSync(
    entry,
    `import fs from "node:fs";
    ${setUp}
    const taken: number[] = [];
    try {
      for (;;) taken.push(fs.openSync("/dev/null"));
    } catch {}
    const ends: string[] = [];
    for (let left = 0; left <= 8; left++) {
      ends.push(await ${start});
      fs.closeSync(taken.pop() ?? 0);
    }
    for (const fd of taken.splice(0)) fs.closeSync(fd);
    ends.push(await ${start});
    console.log(ends.join("\\n"));`,
  );
  const file = join(dir, "entry.mjs");
  const build = await rolldown({ input: entry, platform: "node" });
  await build.write({ file, codeSplitting: false });
  await build.close();
  const args = ["-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, file];
  return execFileSync("sh", args, { encoding: "utf8" }).trim().split("\n");
}

it("a child without descriptors has streams at their end, and says its error", async () => {
  const ends = await endsOf(
    `import { spawn } from ${JSON.stringify(SPAWN)};
     const start = (stdio: "pipe") => new Promise<string>((resolve) => {
       const child = spawn("true", [], { stdio });
       child.stdin.end("more than it can hold ".repeat(10_000));
       child.stdin.on("error", () => {});
       let ended = 0;
       for (const stream of [child.stdout, child.stderr]) stream.resume().on("end", () => ended++);
       child.on("error", ({ code }: NodeJS.ErrnoException) => setImmediate(() => resolve(code + " " + ended)));
       child.on("exit", (code) => resolve(String(code)));
     });`,
    'start("pipe")',
  );
  expect(ends[0]).toBe("EMFILE 2");
  expect(ends.at(-1)).toBe("0");
  for (const end of ends) expect(["EMFILE 2", "0"]).toContain(end);
});

it("a call of git without descriptors fails, and ends nothing else", async () => {
  const ends = await endsOf(
    `import { askGit } from ${JSON.stringify(RUN_GIT)};
     const start = () => askGit({ cwd: "/", isPlain: true }, "config", "--list").then(() => "fine", (error: Error) => "failed: " + error.message.replaceAll("\\n", " "));
     await start();`,
    "start()",
  );
  expect(ends[0]).toMatch(/^failed: .*EMFILE/);
  expect(ends.at(-1)).toBe("fine");
});
