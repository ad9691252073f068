/** The shell that sets limits becomes the program: its words, its variables and its ways to end stay what they are. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { expect, it, test } from "vitest";
import { wrapProgram } from "../../../src/parts/run-limits/wrap.ts";
import { onProc } from "../../support/needs-proc.ts";
import { tempDir } from "../../support/temp-dir.ts";

function run(words: readonly string[], limits: Parameters<typeof wrapProgram>[1], env = {}) {
  const all = { PATH: process.env["PATH"], ...env };
  const [program = "", ...args] = wrapProgram(words, limits, all);
  return spawnSync(program, args, { env: all, encoding: "utf8" });
}

const ALL = { cpuS: 100, fileBytes: 1024 * 1024, userProcesses: 100_000, isFirstToGo: true };

it("without limits nothing is put before it", () => {
  expect(wrapProgram(["a", "b"], {}, {})).toEqual(["a", "b"]);
});

it("every word reaches it as it is", () => {
  const odd = ["", "a b", "$HOME", "'", '"', "`id`", "\n", "*", "-x", "ä\u0001"];
  const script = "process.stdout.write(JSON.stringify(process.argv.slice(1)))";
  const { stdout } = run([process.execPath, "-e", script, "--", ...odd], ALL);
  expect(JSON.parse(stdout)).toEqual(odd);
});

it("its variables, too, also names that a shell does not know", () => {
  const env = { "A.b": "x y", "npm-x": "1", B: "two\nlines", "C%": "$HOME" };
  const script = "process.stdout.write(JSON.stringify(process.env))";
  const { stdout } = run([process.execPath, "-e", script], ALL, env);
  expect(JSON.parse(stdout)).toMatchObject(env);
});

it("it ends as it would by itself", () => {
  expect(run(["sh", "-c", "echo out; echo err >&2; exit 7"], ALL)).toMatchObject({
    status: 7,
    stdout: "out\n",
    stderr: "err\n",
  });
  expect(run(["sh", "-c", "kill -9 $$"], ALL).signal).toBe("SIGKILL");
});

test.each(["dash", "bash"])("%s sets what it is asked to", (shell) => {
  const link = spawnSync("sh", ["-c", `command -v ${shell}`], { encoding: "utf8" }).stdout.trim();
  if (link === "") return;
  const [, , script = ""] = wrapProgram(["x"], ALL, {});
  const shown = execFileSync(link, [
    ...(shell === "bash" ? ["--posix"] : []),
    "-c",
    script,
    "sh",
    "sh",
    "-c",
    "ulimit -S -t; ulimit -H -t; ulimit -f",
  ]);
  expect(shown.toString().trim().split("\n")).toEqual(["100", "105", "2048"]);
});

it("a limit that is tighter already stays, and nothing is said", () => {
  const words = [
    "sh",
    "-c",
    'ulimit -t 50; exec "$@"',
    "sh",
    ...wrapProgram(["sh", "-c", "ulimit -t"], ALL, {}),
  ];
  const { stdout, stderr } = spawnSync(words[0] ?? "", words.slice(1), { encoding: "utf8" });
  expect([stdout.trim(), stderr]).toEqual(["50", ""]);
});

it("a file that becomes too large ends it by a signal", () => {
  const file = `${tempDir()}/big`;
  const limits = { fileBytes: 64 * 1024 };
  expect(run(["dd", "if=/dev/zero", `of=${file}`, "bs=4096", "count=64"], limits).signal).toBe(
    "SIGXFSZ",
  );
  expect(fs.statSync(file).size).toBe(64 * 1024);
});

onProc("the kernel takes it first when memory is short", () => {
  expect(run(["cat", "/proc/self/oom_score_adj"], ALL).stdout).toBe("500\n");
});
