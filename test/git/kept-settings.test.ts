/** Which settings git obeys, and who is asked about a change of them. Real repositories; the runs are only announced. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import {
  acceptSettings,
  beginRun,
  changesDuring,
  changesOf,
  changeText,
  endRun,
} from "../../src/git/kept-settings.ts";
import { isHarmless, obeyed, settingsText } from "../../src/git/obeyed-settings.ts";
import { atCommonDir, openRepository } from "../../src/git/repository.ts";
import { gitText } from "../../src/git/run-git.ts";
import { userStateDir } from "../../src/host/user-state.ts";
import { newRepository, repositoryAt, type TestRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";

interface Place {
  repo: TestRepository;
  commonDir: string;
  /** The value that our git obeys; "" for none. */
  obeys: (name: string) => Promise<string>;
}

function newPlace(): Place {
  const repo = newRepository(join(tempDir(), "repo"));
  const obeys = async (name: string): Promise<string> => {
    const call = atCommonDir(await openRepository(repo.dir));
    return gitText({ ...call, answers: [1] }, "config", "--get", name);
  };
  return { repo, commonDir: join(repo.dir, ".git"), obeys };
}

const run = (id: string): { id: string; tree: string } => ({ id, tree: "/tree" });

afterEach(() => {
  vi.unstubAllEnvs();
});

test("a change of a person is obeyed from the next run on, one that came while a run was at work only when it is accepted", async () => {
  const { repo, commonDir, obeys } = newPlace();
  repo.git("config", "filter.x.clean", "mine");
  // Nothing is known yet of who wrote it.
  expect(await obeys("filter.x.clean")).toBe("");
  await beginRun(commonDir, run("a"));
  expect(await obeys("filter.x.clean")).toBe("mine");
  repo.git("config", "filter.x.clean", "theirs");
  repo.git("config", "user.name", "harmless");
  expect(await obeys("filter.x.clean")).toBe("mine");
  const { own, found } = await changesDuring(commonDir, run("a"));
  expect(own).toMatchObject([{ names: ["filter.x.clean"], runs: ["a"] }]);
  expect(found).toHaveLength(1);
  expect((await changesDuring(commonDir, run("a"))).found).toEqual([]);
  await endRun(commonDir, run("a"));
  repo.git("config", "filter.y.clean", "mine");
  await beginRun(commonDir, run("b"));
  expect((await changesDuring(commonDir, run("b"))).own).toEqual([]);
  expect([await obeys("filter.x.clean"), await obeys("filter.y.clean")]).toEqual(["mine", "mine"]);
  expect(await obeys("user.name")).toBe("harmless");
  await endRun(commonDir, run("b"));
  expect(changesOf(commonDir, (id) => id === "a")).toHaveLength(1);
  expect(await acceptSettings(commonDir)).toEqual(["filter.x.clean"]);
  expect(await obeys("filter.x.clean")).toBe("theirs");
  expect(changesOf(commonDir, () => true)).toEqual([]);
});

test("changes of a run that could not be noted are those of its next run, and of no other", async () => {
  const { repo, commonDir, obeys } = newPlace();
  await beginRun(commonDir, run("a"));
  repo.git("config", "core.fsmonitor", "prog");
  await endRun(commonDir, run("a"), false);
  // It has ended, so that this is a change of a person.
  repo.git("config", "filter.x.clean", "mine");
  await beginRun(commonDir, run("b"));
  expect(await obeys("filter.x.clean")).toBe("mine");
  expect((await changesDuring(commonDir, run("b"))).own).toEqual([]);
  await beginRun(commonDir, run("a"));
  expect((await changesDuring(commonDir, run("a"))).own).toMatchObject([
    { names: ["core.fsmonitor"] },
  ]);
  await endRun(commonDir, run("a"));
  await beginRun(commonDir, run("a"));
  expect((await changesDuring(commonDir, run("a"))).own).toEqual([]);
});

test("of several runs at work each is asked, and no run that began later or had ended", async () => {
  const { repo, commonDir } = newPlace();
  for (const id of ["early", "a", "b"]) await beginRun(commonDir, run(id));
  await endRun(commonDir, run("early"));
  fs.writeFileSync(join(commonDir, "hooks", "pre-commit"), "#!/bin/sh\n");
  repo.git("config", "core.fsmonitor", "prog");
  await beginRun(commonDir, run("late"));
  for (const id of ["a", "b"]) {
    const { own } = await changesDuring(commonDir, run(id));
    expect(own).toMatchObject([
      { names: ["core.fsmonitor", "hooks/pre-commit"], runs: ["a", "b"] },
    ]);
    expect(changeText("R", own[0] ?? fail())).toContain(
      "while a and b ran, settings or hooks of R",
    );
  }
  expect((await changesDuring(commonDir, run("late"))).own).toEqual([]);
  // A run whose worker was killed begins again: what it may have done is not forgotten.
  await beginRun(commonDir, run("a"));
  expect((await changesDuring(commonDir, run("a"))).own).toHaveLength(1);
});

test("a folder of the user's state that cannot be made is named, with what to do", async () => {
  const { repo } = newPlace();
  const before = process.env["XDG_STATE_HOME"];
  onTestFinished(() => {
    if (before === undefined) delete process.env["XDG_STATE_HOME"];
    else process.env["XDG_STATE_HOME"] = before;
  });
  process.env["XDG_STATE_HOME"] = join(repo.dir, "README.md", "state");
  await expect(openRepository(repo.dir)).rejects.toMatchObject({
    message: expect.stringContaining("the settings of git cannot be kept in "),
    hint: expect.stringContaining("set XDG_STATE_HOME"),
  });
});

test("what was kept is gone, as after another HOME: what a run has changed is not trusted until a person accepts it", async () => {
  const { repo, commonDir, obeys } = newPlace();
  vi.stubEnv("XDG_STATE_HOME", tempDir());
  repo.git("config", "filter.x.clean", "mine");
  await beginRun(commonDir, run("a"));
  repo.git("config", "filter.x.clean", "theirs");
  await endRun(commonDir, run("a"));
  const mark = "refs/mailchute/a/settings-changed";
  repo.git("update-ref", mark, "HEAD");
  vi.stubEnv("XDG_STATE_HOME", tempDir());
  await expect(beginRun(commonDir, run("b"))).rejects.toMatchObject({
    message: expect.stringContaining(mark),
    hint: expect.stringContaining("mailchute land ID --accept-settings"),
  });
  expect(await obeys("filter.x.clean")).toBe("");
  await acceptSettings(commonDir);
  expect(await obeys("filter.x.clean")).toBe("theirs");
  await beginRun(commonDir, run("b"));
  // Without such a mark they are those of a person.
  repo.git("update-ref", "-d", mark);
  vi.stubEnv("XDG_STATE_HOME", tempDir());
  await beginRun(commonDir, run("c"));
  expect(await obeys("filter.x.clean")).toBe("theirs");
});

test.each(["", "relative"])(
  "HOME or XDG_STATE_HOME is %j: what is kept does not lie where a run can write",
  async (value) => {
    const { repo, commonDir } = newPlace();
    const there = process.cwd();
    onTestFinished(() => process.chdir(there));
    process.chdir(repo.dir);
    vi.stubEnv("XDG_STATE_HOME", value);
    vi.stubEnv("HOME", tempDir());
    await beginRun(commonDir, run("a"));
    expect(fs.existsSync(join(process.env["HOME"] ?? "", ".local/state/mailchute/git"))).toBe(true);
    vi.stubEnv("HOME", value);
    expect(userStateDir(process.env)).toBe(join(os.userInfo().homedir, ".local/state/mailchute"));
    expect(repo.git("status", "--porcelain")).toBe("");
  },
);

test("another repository at the same path is another one", async () => {
  const { repo, commonDir, obeys } = newPlace();
  repo.git("config", "filter.x.clean", "mine");
  await beginRun(commonDir, run("a"));
  await endRun(commonDir, run("a"));
  fs.renameSync(repo.dir, `${repo.dir}-before`);
  newRepository(repo.dir);
  expect(await obeys("filter.x.clean")).toBe("");
});

test("our file gives git the same values, whatever they hold", () => {
  const repo = newRepository(join(tempDir(), "repo"));
  const values = ['a "b" \\ c', " x ", "#no comment; here", "two\nlines\tand a tab", "ü", ""];
  const settings = values.map((value, n) => [`filter.a "q" \\ .b${n}.clean`, value] as const);
  const file = join(repo.dir, "file");
  fs.writeFileSync(file, settingsText([...settings, ["core.bare", null]]));
  for (const [name, value] of settings)
    expect(repositoryAt(repo.dir).git("config", "--file", file, "--get", name)).toBe(value);
  expect(repo.git("config", "--file", file, "--type=bool", "--get", "core.bare")).toBe("true");
});

test("only the sections that git needs are obeyed, and without trust no program", () => {
  const names = [
    "alias.x",
    "core.autocrlf",
    "core.hookspath",
    "core.worktree",
    "diff.e.textconv",
    "filter.x.clean",
    "hook.h.command",
    "include.path",
    "merge.x.driver",
    "extensions.objectformat",
    "extensions.worktreeconfig",
  ];
  const kept = (isTrusted: boolean): string[] =>
    obeyed(
      names.map((name) => [name, "v"]),
      isTrusted,
    ).map(([name]) => name);
  const data = ["core.autocrlf", "extensions.objectformat"];
  expect(kept(false)).toEqual(data);
  expect(kept(true).sort()).toEqual([...data, "filter.x.clean", "merge.x.driver"].sort());
});

function fail(): never {
  throw new Error("there is none");
}

test.each([
  ["branch.main.vscode-merge-base", true],
  ["branch.main.pushremote", true],
  ["remote.origin.gh-resolved", true],
  ["branch.main.mergeoptions", false],
  ["remote.origin.uploadpack", false],
  ["core.hookspath", false],
])("a change of %s is what tools write by themselves: %s", (name, isIt) => {
  expect(isHarmless(name)).toBe(isIt);
});
