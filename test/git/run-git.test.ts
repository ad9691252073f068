/** The door to git: what it passes on, and that each call ends. A filter of the person's own settings stands for whatever git starts. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { beginRun } from "../../src/git/kept-settings.ts";
import { openRepository } from "../../src/git/repository.ts";
import { askGit, endCalls, type GitCall } from "../../src/git/run-git.ts";
import { newRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** A call that runs a script as a filter. @returns a call, and where the script may write */
async function withFilter(script: string): Promise<{ call: GitCall; out: string }> {
  const dir = tempDir();
  const repo = newRepository(join(dir, "repo"));
  const out = join(dir, "out");
  repo.git("config", "filter.f.clean", `sh -c '${script.replaceAll("OUT", out)}; cat'`);
  fs.writeFileSync(join(repo.dir, ".gitattributes"), "x filter=f\n");
  fs.writeFileSync(join(repo.dir, "x"), "x\n");
  const { commonDir, env } = await openRepository(repo.dir, { MAILCHUTE_LEASE: dir });
  await beginRun(commonDir, { id: "a", tree: dir });
  return { call: { cwd: repo.dir, gitDir: commonDir, env }, out };
}

test("what git starts sees no variable that it does not need", async () => {
  process.env["SECRET_OF_A_TEST"] = "secret";
  process.env["GIT_SSH_COMMAND"] = "evil";
  onTestFinished(() => {
    delete process.env["SECRET_OF_A_TEST"];
    delete process.env["GIT_SSH_COMMAND"];
  });
  const { call, out } = await withFilter("env > OUT");
  await askGit(call, "add", "x");
  const seen = fs.readFileSync(out, "utf8");
  expect(seen).toContain("\nPATH=");
  expect(seen).toContain(`MAILCHUTE_LEASE=${call.env?.["MAILCHUTE_LEASE"]}`);
  expect(seen).not.toMatch(/SECRET_OF_A_TEST|evil/);
});

test.each([undefined, ""])(
  "with HOME %j git still finds the settings of the person",
  async (home) => {
    const { call, out } = await withFilter("env > OUT");
    vi.stubEnv("HOME", home);
    onTestFinished(() => void vi.unstubAllEnvs());
    await askGit(call, "add", "x");
    expect(fs.readFileSync(out, "utf8")).toContain(`\nHOME=${os.userInfo().homedir}\n`);
  },
);

test("a call ends after its time, or when it is told to, with the programs that it has started", async () => {
  const { call, out } = await withFilter("echo $$ > OUT; exec sleep 1000");
  await expect(askGit({ ...call, limitMs: 300 }, "add", "x")).rejects.toThrow(
    "git add did not end within",
  );
  fs.rmSync(out, { force: true });
  fs.rmSync(join(call.gitDir ?? "", "index.lock"), { force: true });
  const asked = askGit(call, "add", "x");
  asked.catch(() => {});
  const pid = await waitFor(
    () => (fs.existsSync(out) ? Number(fs.readFileSync(out, "utf8")) || undefined : undefined),
    { what: "the filter" },
  );
  endCalls("MAILCHUTE_LEASE", "another run");
  expect(fs.existsSync(`/proc/${pid}`)).toBe(true);
  endCalls("MAILCHUTE_LEASE", call.env?.["MAILCHUTE_LEASE"] ?? "");
  await expect(asked).rejects.toThrow("git add was killed");
});

test("a git that runs for long is ended at a device without an end, but not at a hook that a person has switched off", async () => {
  const { call } = await withFilter("sleep 0.6");
  const hooks = join(call.gitDir ?? "", "hooks");
  fs.mkdirSync(hooks, { recursive: true });
  fs.symlinkSync("/dev/null", join(hooks, "pre-commit"));
  expect((await askGit(call, "add", "x")).code).toBe(0);
  fs.symlinkSync("/dev/zero", join(hooks, "pre-push"));
  fs.writeFileSync(join(call.cwd, "x"), "another one\n");
  await expect(askGit(call, "add", "x")).rejects.toThrow("pre-push is a pipe or a device");
});

test("a call without the settings that are kept is refused, unless it starts no program", async () => {
  const repo = newRepository(join(tempDir(), "repo"));
  await expect(askGit({ cwd: repo.dir }, "status")).rejects.toThrow("needs the settings");
  await expect(askGit({ cwd: repo.dir, isPlain: true }, "status")).rejects.toThrow("needs");
  expect((await askGit({ cwd: repo.dir, isPlain: true }, "rev-parse", "HEAD")).code).toBe(0);
});

test("refs that are kept in tables and locked: a call waits for them, as for any lock", async () => {
  const dir = tempDir();
  const repo = newRepository(join(dir, "repo"));
  const { commonDir, env } = await openRepository(repo.dir);
  const script = `#!/bin/sh
    echo >> ${dir}/calls
    [ "$(wc -l < ${dir}/calls)" -gt 2 ] && exit 0
    echo "fatal: update_ref failed for ref 'refs/heads/x': cannot lock references" >&2; exit 128`;
  fs.writeFileSync(join(dir, "git"), script, { mode: 0o755 });
  const { PATH } = process.env;
  process.env["PATH"] = `${dir}:${PATH}`;
  onTestFinished(() => {
    process.env["PATH"] = PATH;
  });
  const call = { cwd: commonDir, env: { ...env, GIT_DIR: commonDir } };
  expect((await askGit(call, "update-ref", "refs/heads/x", "HEAD")).code).toBe(0);
});
