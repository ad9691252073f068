/** What changes between two commits, as git tells it: each kind of change, names and contents that look like something else, limits. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type FileDiff, readDiff, readPicture } from "../../src/git/diff.ts";
import { atCommonDir, openRepository } from "../../src/git/repository.ts";
import type { GitCall } from "../../src/git/run-git.ts";
import { newRepository, type TestRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";
import { hostileSettings } from "./ways.ts";

const LIMITS = { files: 100, lines: 1000, fileLines: 200, fileBytes: 100_000 };
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

interface Scene {
  repo: TestRepository;
  from: string;
  call: GitCall;
  write: (name: string, text: string | Buffer) => void;
  /** Commits all, and reads the difference by path. */
  read: (limits?: Partial<typeof LIMITS>, only?: string) => Promise<Map<string, FileDiff>>;
}

async function begun(files: Readonly<Record<string, string | Buffer>>): Promise<Scene> {
  const repo = newRepository(join(tempDir(), "repo"));
  const write = (name: string, text: string | Buffer): void => {
    fs.mkdirSync(dirname(join(repo.dir, name)), { recursive: true });
    fs.writeFileSync(join(repo.dir, name), text);
  };
  for (const [name, text] of Object.entries(files)) write(name, text);
  const from = repo.commit({});
  const call = atCommonDir(await openRepository(repo.dir));
  const read: Scene["read"] = async (limits = {}, only) => {
    repo.git("add", "--all");
    const changed = repo.git("status", "--porcelain") !== "";
    const to = changed ? repo.commit({}) : repo.git("rev-parse", "HEAD");
    const found = await readDiff(call, [from, to], { ...LIMITS, ...limits }, only);
    return new Map(found.map((file) => [file.path, file]));
  };
  return { repo, from, call, write, read };
}

const linesOf = (file: FileDiff | undefined): string[] =>
  file?.hunks.flatMap(({ lines }) => lines.map(({ is, text }) => `${is}${text}`)) ?? [];
const count = (n: number): string => Array.from({ length: n }, (_, i) => `line ${i}\n`).join("");

test("each kind of change is told: new, gone, changed, renamed, another mode, a link in place of a file, a submodule", async () => {
  const { repo, write, read } = await begun({
    "changed.txt": count(20),
    "gone.txt": "a\n",
    "before.txt": count(9),
    "run.sh": "true\n",
    "link.txt": "text\n",
    "picture.png": PNG,
  });
  write("changed.txt", count(20).replace("line 3\n", "").replace("line 18", "LINE 18"));
  write("new.txt", "one\ntwo");
  write("empty.txt", "");
  fs.rmSync(join(repo.dir, "gone.txt"));
  fs.renameSync(join(repo.dir, "before.txt"), join(repo.dir, "after.txt"));
  fs.chmodSync(join(repo.dir, "run.sh"), 0o755);
  fs.rmSync(join(repo.dir, "link.txt"));
  fs.symlinkSync("/etc/passwd", join(repo.dir, "link.txt"));
  write("picture.png", Buffer.concat([PNG, Buffer.from([0, 1])]));
  const sub = newRepository(join(repo.dir, "sub")).git("rev-parse", "HEAD");
  const files = await read();
  expect([...files].map(([path, { status, was }]) => [path, status, was])).toEqual([
    ["after.txt", "renamed", "before.txt"],
    ["changed.txt", "changed", null],
    ["empty.txt", "added", null],
    ["gone.txt", "removed", null],
    ["link.txt", "type changed", null],
    ["new.txt", "added", null],
    ["picture.png", "changed", null],
    ["run.sh", "changed", null],
    ["sub", "added", null],
  ]);
  const changed = files.get("changed.txt");
  expect(changed).toMatchObject({ insertions: 1, deletions: 2, folded: null });
  expect(changed?.hunks.map(({ old, new: now }) => [old, now])).toEqual([
    [1, 1],
    [16, 15],
  ]);
  expect(linesOf(changed).filter((line) => !line.startsWith(" "))).toEqual([
    "-line 3",
    "-line 18",
    "+LINE 18",
  ]);
  expect(linesOf(files.get("new.txt"))).toEqual(["+one", "+two", "\\ No newline at end of file"]);
  expect(linesOf(files.get("link.txt"))).toEqual([
    "-text",
    "+/etc/passwd",
    "\\ No newline at end of file",
  ]);
  expect(linesOf(files.get("sub"))).toEqual([`+Subproject commit ${sub}`]);
  expect(files.get("run.sh")).toMatchObject({ modes: ["100644", "100755"], hunks: [] });
  expect(files.get("picture.png")).toMatchObject({ folded: "binary", insertions: null });
});

test("names and contents that look like a patch are what they are", async () => {
  const names = [
    "a\ndiff --git a/x b/x\n@@ -1 +1 @@\n+evil",
    ":1 2 3\t4",
    '"quoted"',
    "*.txt",
    "é\t",
  ];
  const fake = "diff --git a/y b/y\nindex 1..2\n@@ -1,9 +1,9 @@\n-- a\n++ b\n\\ No newline\n";
  const { write, read } = await begun(Object.fromEntries(names.map((name) => [name, "old\n"])));
  for (const name of names) write(name, fake);
  const files = await read();
  expect([...files.keys()].sort()).toEqual([...names].sort());
  for (const name of names)
    expect(linesOf(files.get(name))).toEqual([
      "-old",
      ...fake
        .trim()
        .split("\n")
        .map((l) => `+${l}`),
    ]);
  const alone = await read({}, "*.txt");
  expect([...alone.keys()]).toEqual(["*.txt"]);
});

test("lock files and what the commit before calls generated are folded; the work cannot fold itself", async () => {
  const { repo, write, read } = await begun({
    ".gitattributes": "*.gen.ts linguist-generated\nlater.ts linguist-generated=false\n",
  });
  for (const name of ["package-lock.json", "a.gen.ts", "later.ts", "evil.ts", "app.min.js"])
    write(name, "x\n");
  write(".gitattributes", "* linguist-generated\n");
  const folded = (files: Map<string, FileDiff>): unknown =>
    Object.fromEntries([...files].map(([path, one]) => [path, one.folded]));
  expect(folded(await read())).toEqual({
    ".gitattributes": null,
    "a.gen.ts": "generated",
    "app.min.js": "generated",
    "evil.ts": null,
    "later.ts": null,
    "package-lock.json": "generated",
  });
  const only = await read({}, "package-lock.json");
  expect(linesOf(only.get("package-lock.json"))).toEqual(["+x"]);
  expect(
    fs.readdirSync(join(repo.dir, ".git")).filter((name) => name.startsWith("mailchute")),
  ).toEqual([]);
});

test("a long line is cut, and what is above a limit is folded and still counted", async () => {
  const { write, read } = await begun({ "a.txt": "a\n" });
  write("a-long-line.js", `${"x".repeat(90_000)}\n`);
  write("b-huge-line.js", `${"x".repeat(10_000_000)}\n`);
  write("c-many-lines.txt", count(300));
  for (let n = 0; n < 8; n++) write(`d${n}.txt`, count(150));
  const files = await read();
  expect(linesOf(files.get("a-long-line.js"))[0]).toMatch(/^\+x{1000}… \(89000 more characters\)$/);
  expect(files.get("b-huge-line.js")).toMatchObject({ folded: "large", insertions: 1 });
  expect(files.get("c-many-lines.txt")).toMatchObject({ folded: "large", insertions: 300 });
  expect(files.get("d5.txt")?.folded).toBe(null);
  expect(files.get("d7.txt")).toMatchObject({ folded: "many", insertions: 150 });
  const few = await read({ files: 2 });
  expect([...few.values()].filter(({ hunks }) => hunks.length > 0)).toHaveLength(1);
  expect((await read({}, "d7.txt")).get("d7.txt")?.hunks).toHaveLength(1);
});

test("a repository with hostile settings and attributes starts no program, and hides nothing", async () => {
  const { repo, call, write } = await begun({ "a.txt": "old\n", "p.bin": PNG });
  const ran = join(repo.dir, "..", "ran");
  const program = join(repo.dir, "..", "program");
  fs.writeFileSync(program, `#!/bin/sh\necho "$1" >> ${ran}\n`, { mode: 0o755 });
  fs.appendFileSync(join(repo.dir, ".git/config"), hostileSettings(program, "here", "/none"));
  fs.appendFileSync(
    join(repo.dir, ".git/config"),
    "[diff]\n\tnoprefix = true\n\trenames = false\n\tsuppressBlankEmpty = true\n\tignoreSubmodules = all\n[color]\n\tui = always\n\tdiff = always\n",
  );
  fs.mkdirSync(join(repo.dir, ".git/info"), { recursive: true });
  fs.writeFileSync(join(repo.dir, ".git/info/attributes"), "* diff=e\n");
  write(".git/hooks/post-index-change", `#!/bin/sh\n${program} hook\n`);
  fs.chmodSync(join(repo.dir, ".git/hooks/post-index-change"), 0o755);
  write("a.txt", "new\n\nlast\n");
  // Committed by a git that obeys none of this.
  const plain = [
    "-c",
    "core.hooksPath=/none",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "commit.gpgSign=false",
  ];
  repo.git(...plain, "-c", "filter.e.clean=cat", "add", "a.txt");
  repo.git(...plain, "commit", "--quiet", "-m", "work");
  fs.rmSync(ran, { force: true });
  const to = repo.git("rev-parse", "HEAD");
  const [file] = await readDiff(call, [repo.git("rev-parse", "HEAD~"), to], LIMITS);
  expect(linesOf(file)).toEqual(["-old", "+new", "+", "+last"]);
  expect(await readPicture(call, repo.git("rev-parse", "HEAD:p.bin"), 100)).toEqual({
    type: "image/png",
    bytes: PNG,
  });
  expect(fs.existsSync(ran)).toBe(false);
});

test("a picture is known by its bytes, and a large one is left out", async () => {
  const { repo, call, write } = await begun({ "no.png": "<svg onload=alert(1)>", "yes.png": PNG });
  write("large.png", Buffer.concat([PNG, Buffer.alloc(1000)]));
  repo.commit({});
  const read = (name: string) => readPicture(call, repo.git("rev-parse", `HEAD:${name}`), 1000);
  expect(await read("no.png")).toBeUndefined();
  expect(await read("large.png")).toBeUndefined();
  expect((await read("yes.png"))?.type).toBe("image/png");
  expect(await readPicture(call, "0".repeat(40), 1000)).toBeUndefined();
  expect(await readPicture(call, repo.git("rev-parse", "HEAD"), 1000)).toBeUndefined();
});
