/** The clients in other languages pass the conformance suite, which finds each planted fault; and they work with a real pool. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it, test } from "vitest";
import { newPool } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { CHECKS, runChecks } = (await import(
  pathToFileURL(join(ROOT, "contrib/conformance/suite.mjs")).href
)) as {
  CHECKS: Readonly<Record<string, unknown>>;
  runChecks: (
    words: readonly string[],
    options?: { only?: string },
  ) => Promise<{ name: string; fault?: string }[]>;
};
const CLIENTS = {
  python: join(ROOT, "contrib/python/mailchute.py"),
  bash: join(ROOT, "contrib/bash/mailchute.sh"),
};
const FAULTY = join(ROOT, "test/fixtures/clients/faulty.py");
const LIBRARY = join(ROOT, "test/fixtures/clients/library.mjs");
const has = (program: string): boolean => spawnSync(program, ["--version"]).error === undefined;
const canRun = has("python3") && has("jq") && has("strace");

/** Each fault, and the check that must find it. */
const FAULTS: Readonly<Record<string, string>> = {
  "in-place": "never written in place",
  "no-fsync-of-file": "on the disk before it is acknowledged, and",
  "no-fsync-of-folder": "on the disk before it is acknowledged, and",
  overwrites: "another task under an id in use",
  "look-then-rename": "never written in place",
  "bad-ids": "bad ids",
  "ignores-errors": "wait gives the error",
  "half-results": "not published yet",
  "too-early": "not published yet",
  "old-records": "being retried",
  "loses-unicode": "no character of a task",
  "keeps-staged": "leaves nothing staged",
  "refuses-resend": "may be sent again",
  "exit-code": "wait gives the error",
};

describe.skipIf(!canRun)("the conformance suite", () => {
  it.each(Object.entries(CLIENTS))("holds for the client in %s", async (_name, client) => {
    const results = await runChecks([client]);
    expect(results).toEqual(Object.keys(CHECKS).map((name) => ({ name })));
  });

  it("holds for the library, as far as it needs no supervisor", async () => {
    const names = Object.keys(CHECKS).filter(
      (name) => !/command|list|without a|forbidden/.test(name),
    );
    for (const only of names)
      expect(await runChecks([process.execPath, LIBRARY], { only })).toEqual([{ name: only }]);
  });

  it.each(Object.entries(FAULTS))("finds the planted fault %s", async (fault, only) => {
    const results = await runChecks([FAULTY, fault], { only });
    expect(results).toHaveLength(1);
    expect(results[0]?.fault).toBeDefined();
  });

  it("ends with 1 and names what does not hold, and with 2 when no client is named", () => {
    const suite = join(ROOT, "contrib/conformance/suite.mjs");
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [suite, ...args], { cwd: ROOT, encoding: "utf8" });
    const bad = run("--only", "bad ids", "test/fixtures/clients/faulty.py", "bad-ids");
    expect(bad.status).toBe(1);
    expect(bad.stdout).toMatch(/^FAILED {2}bad ids .*\n {8}the id "\.\.\/a"/);
    expect(bad.stdout).toMatch(/0 of 1 checks hold\n$/);
    expect(run("--only", "list", CLIENTS.python)).toMatchObject({ status: 0 });
    expect(run("--only", "no such check", CLIENTS.python)).toMatchObject({ status: 1 });
    expect(run()).toMatchObject({ status: 2 });
  });
});

test.skipIf(!canRun)(
  "both clients work with a real pool, commands and cancels included",
  async () => {
    const pool = newPool();
    fs.mkdirSync(join(pool.state, "control"));
    await pool.start();
    for (const [name, client] of Object.entries(CLIENTS)) {
      const call = (words: string[], input = ""): unknown => {
        const env = { ...process.env, MAILCHUTE_STATE: pool.state };
        return JSON.parse(spawnSync(client, words, { env, input, encoding: "utf8" }).stdout);
      };
      const [good, bad, long] = [`${name}-good`, `${name}-bad`, `${name}-long`];
      call(["submit", good], '{"exec": ["printf", "%s", "é😀"]}');
      call(["submit", bad], '{"exec": ["sh", "-c", "exit 64"]}');
      call(["submit", long], '{"exec": ["sleep", "600"]}');
      expect(call(["wait", good])).toEqual({ id: good, status: "completed", output: "é😀" });
      expect(call(["wait", bad])).toMatchObject({ status: "failed", code: "ErrExit" });
      const args = JSON.stringify({ node: long, final: true });
      expect(call(["command", "cancel", args])).toHaveProperty("result");
      expect(call(["wait", long])).toMatchObject({ status: "failed", code: "ErrCancelled" });
      expect(call(["command", "retry", '{"node": "no-such-task"}'])).toMatchObject({
        code: "ErrTaskNotFound",
      });
      expect(call(["submit", good], '{"exec": ["true"]}')).toMatchObject({ code: "ErrTaskExists" });
    }
  },
);

test.skipIf(!canRun)("the examples of docs/clients.md do what they say", () => {
  const page = fs.readFileSync(join(ROOT, "docs/clients.md"), "utf8");
  const dir = tempDir();
  fs.mkdirSync(join(dir, "node_modules"));
  fs.symlinkSync(ROOT, join(dir, "node_modules", "mailchute"));
  execFileSync(process.execPath, [join(ROOT, "bin/mailchute.js"), "init"], { cwd: dir });
  const run = (program: string, language: string): string => {
    const [, code = ""] =
      new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page) ?? [];
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
    return execFileSync(program, ["-c", code], { cwd: dir, env, encoding: "utf8", stdio: "pipe" });
  };
  expect(run("python3", "python")).toBe("ErrTaskExists\nErrWaitTimedOut\n");
  expect(run("bash", "bash")).toMatch(/^exit code 124: .*\n\{"waiting":\["t-.*"\],"running":\[\]/);
});
