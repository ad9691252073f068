/**
 * A run in a worktree with everything that makes git look away: marks, a cone, attributes, odd line ends, submodules, links, modes. Then
 * its end, as a worker does it. Each byte that stood there must be on the branch, in a save, or still in the worktree.
 */
import { execFileSync, type StdioOptions } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  GIT_ENVIRONMENT,
  newRepository,
  type TestRepository,
} from "../../support/git-repository.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";

export interface Act {
  /** A script that runs in the worktree. */
  script: string;
  /** A file that must be on the branch when the run has completed, with a text that it must hold. */
  lands?: readonly [path: string, text: string];
}

export interface Walk {
  /** Settings of the repository, as the person has them. */
  settings: readonly string[];
  isSparse: boolean;
  setup: readonly string[];
  acts: readonly Act[];
  isCompleted: boolean;
}

const ALLOW = "git -c protocol.file.allow=always -c user.name=x -c user.email=x@x";
export const SUBMODULE = `${ALLOW} submodule --quiet update --init`;

const SETTINGS = [
  ["core.autocrlf=true"],
  ["core.autocrlf=input", "core.safecrlf=true"],
  ["core.fileMode=false"],
  ["core.symlinks=false"],
  ["core.ignoreStat=true"],
  ["core.trustctime=false", "core.checkStat=minimal"],
  ["core.untrackedCache=true", "core.splitIndex=true"],
  ["core.ignoreCase=true"],
  ["index.sparse=true"],
] as const;

const TRACKED = [
  "a.txt",
  "src/s.txt",
  "docs/d.md",
  "crlf.txt",
  "id.txt",
  "enc.txt",
  "run.sh",
  "link",
];

/** Acts of a run; `$F` is a tracked file, `$N` a number that no other act has. */
const ACTS: readonly string[] = [
  "git update-index --skip-worktree $F; rm -f $F; echo skipped $N > $F",
  "git update-index --assume-unchanged $F; rm -f $F; echo assumed $N > $F",
  "mkdir -p docs src; echo changed $N >> $F",
  "touch -r $F /tmp/stamp.$$; printf x | dd of=$F bs=1 conv=notrunc 2> /dev/null; touch -r /tmp/stamp.$$ $F; rm /tmp/stamp.$$",
  "git update-index --skip-worktree $F; rm -f $F",
  "rm -f $F; mkdir $F; echo inside > $F/file$N",
  "rm -rf src; echo was a directory > src",
  "rm -f $F; ln -s nowhere$N $F",
  "ln -s a.txt new-link$N",
  "chmod +x $F; chmod -x run.sh",
  "git add -N .; echo intent $N > intent$N.txt; git add -N intent$N.txt",
  "echo one > staged$N; git add -f staged$N; echo two > staged$N",
  "printf 'one\\r\\ntwo\\nthree\\r\\n' > mixed$N.txt",
  "printf 'a\\r\\nb\\r\\n' > crlf.txt",
  "printf '$Id: mine $ %s\\n' $N > id.txt",
  "printf '\\377\\376\\000' > enc.txt",
  "printf x > \"$(printf 'not-utf8-\\377-%s' $N)\"",
  "printf x > \"$(printf 'line\\nend %s' $N)\"; printf x > ':(top)colon'$N; printf x > '\"quoted'$N",
  `printf x > $(printf '%0240d' $N)`,
  "mkdir -p empty$N/deep",
  "echo '*' >> .gitignore; echo hidden > hidden$N.txt",
  "mkdir -p build; echo $N > build/x$N; echo x > x.log",
  "echo '* -text' > .gitattributes",
  "echo '*.txt text eol=crlf' >> .gitattributes",
  "echo '* export-ignore ident' >> .gitattributes; echo '$Id$' > new-id$N.txt",
  "git init -q inner$N; echo x > inner$N/x",
  `mkdir -p sub; ${SUBMODULE} || true; echo dirty > sub/README.md`,
  `${SUBMODULE} || true; cd sub; echo $N > y; ${ALLOW} add -A; ${ALLOW} commit -qm y`,
  `${SUBMODULE} || true; echo x > sub/x.log; rm -rf sub`,
  "echo in a submodule > sub/file$N || true",
  `echo own$N > own$N.txt; git add -A . || true; ${ALLOW} commit -qm own || true`,
  `git checkout -q --detach; echo $N > det$N; ${ALLOW} add -f det$N; ${ALLOW} commit -qm det || true`,
  "git sparse-checkout set src",
  "git sparse-checkout disable; echo $N > docs/d.md",
  "git update-index --index-version 4; echo $N > v4.txt",
  "mkdir -p .GIT; echo x > .GIT/file",
  "git rm -q --cached $F; echo uncached $N > $F",
  "git mv a.txt b$N.txt; echo moved >> b$N.txt",
  "mv a.txt A.TXT; echo case > A.TXT",
  "rm -rf docs",
  "echo broken > $(git rev-parse --git-dir)/index",
  "rm $(git rev-parse --git-dir)/index",
  "mkfifo pipe$N; ln -s / root$N",
  "rm -rf src; ln -s docs src",
  "echo secret.txt >> $(git rev-parse --git-common-dir)/info/exclude; echo $N > secret.txt",
  "rm .git",
  `rm .git; git init -q; echo $N > own$N; ${ALLOW} add -A; ${ALLOW} commit -qm own`,
];

/** Acts whose file is sure to land, unless a later one is in the way. */
export const LANDS: readonly Act[] = [
  { script: "mkdir -p docs; echo new > docs/new.md", lands: ["docs/new.md", "new"] },
  {
    script: "git update-index --assume-unchanged a.txt; echo landed > a.txt",
    lands: ["a.txt", "landed"],
  },
];

export function randomWalk(random: SeededRandom): Walk {
  const some = <T>(from: readonly T[], most: number): T[] =>
    Array.from({ length: random.below(most + 1) }, () => random.pick(from));
  const acts = [...some(ACTS, 6), random.pick(ACTS)].map((script, n) => ({
    script: script.replaceAll("$F", random.pick(TRACKED)).replaceAll("$N", String(n)),
  }));
  return {
    settings: some(SETTINGS, 2).flat(),
    isSparse: random.below(3) === 0,
    setup: some([SUBMODULE, "mkdir -p build; echo made > build/made", "echo x > made.txt"], 2),
    acts,
    isCompleted: random.below(3) > 0,
  };
}

/** The parts of mailchute that work at the end of a run. */
async function load(src: string) {
  const from = <T>(path: string): Promise<T> =>
    import(/* @vite-ignore */ pathToFileURL(join(src, path)).href) as Promise<T>;
  return {
    ...(await from<typeof import("../../../src/parts/worktrees/make.ts")>(
      "parts/worktrees/make.ts",
    )),
    ...(await from<typeof import("../../../src/parts/worktrees/commit-work.ts")>(
      "parts/worktrees/commit-work.ts",
    )),
    ...(await from<typeof import("../../../src/parts/worktrees/save.ts")>(
      "parts/worktrees/save.ts",
    )),
    ...(await from<typeof import("../../../src/parts/worktrees/holdings.ts")>(
      "parts/worktrees/holdings.ts",
    )),
    ...(await from<typeof import("../../../src/parts/worktrees/remove.ts")>(
      "parts/worktrees/remove.ts",
    )),
    ...(await from<typeof import("../../../src/git/snapshot.ts")>("git/snapshot.ts")),
  };
}

/** @param src the sources to try. @returns what was lost, a line for each file */
export async function walk(dir: string, one: Walk, src: string): Promise<string[]> {
  const mc = await load(src);
  const repo = newPersonalRepository(dir, one);
  const made = await makeFor(mc, dir, repo);
  const { repository, worktree } = made;
  const { path } = worktree;
  for (const script of one.setup) run(path, script);
  const afterSetup = filesIn(path);
  await mc.markReady("a", made);
  for (const { script } of one.acts) run(path, script);
  const there = filesIn(path);
  const order = { repository, worktree, id: "a", attempt: 1 };
  if (one.isCompleted) await mc.commitWork(order, { id: "a", exec: ["true"] } as never);
  await mc.saveWork(order);
  const holdings = await mc.lookAt(repository, worktree, "a", []);
  const mustStay = mc.reasonsToStay({ ...holdings, commits: 0 });
  const isKept = async (): Promise<string[]> => {
    if (fs.existsSync(path)) return [];
    const kept = await keptFiles(dir, repo, mc.writeFilesOf);
    return [...there].flatMap(([name, contents]) => {
      const isSpare = /^(?:build|sub)\//.test(name) && afterSetup.get(name) === contents;
      // Without links on disk, the text of a file is that of a link.
      const asLink = one.settings.includes("core.symlinks=false")
        ? contents.replace(/^\w+/, "link")
        : contents;
      const isHeld = [contents, asLink, blobOf(contents)].some((text) =>
        kept.has(`${name}\0${text}`),
      );
      return isSpare || isHeld ? [] : [JSON.stringify(name)];
    });
  };
  const lost: string[] = [];
  for (const { lands } of one.isCompleted ? one.acts : []) {
    if (lands === undefined) continue;
    const text = run(repo.dir, `git show 'mailchute/a:${lands[0]}'`);
    if (!text.includes(lands[1])) lost.push(`${lands[0]} is not on the branch`);
  }
  if (mustStay.length === 0) await mc.removeWorktree(order, join(dir, "worktrees"));
  lost.push(...(await isKept()));
  // As `worktrees clean ID` does it.
  if (fs.existsSync(path) && holdings.ignored.length === 0) {
    await mc.removeWorktree(order, join(dir, "worktrees"));
    lost.push(...(await isKept()));
  }
  return lost;
}

/** A run that commits, and removes its worktree with its branch. @returns its commits that no ref has at its end */
export async function lostCommitsOf(
  dir: string,
  acts: string,
  setting: string,
  src: string,
): Promise<string[]> {
  const mc = await load(src);
  const plain = { isSparse: false, setup: [], acts: [], isCompleted: true };
  const repo = newPersonalRepository(dir, { ...plain, settings: [setting] });
  const made = await makeFor(mc, dir, repo);
  const { repository, worktree } = made;
  await mc.markReady("a", made);
  const commit = `commit() { git add -A; ${ALLOW} commit -qm own; git rev-parse HEAD; }`;
  const commits = run(worktree.path, `${commit}; ${acts}`).trim().split("\n");
  run(repo.dir, `git worktree remove --force ${worktree.path}; git branch -D mailchute/a`);
  const gone = { ...worktree, path: undefined };
  await mc.saveWork({ repository, worktree: gone, id: "a", attempt: 1 });
  return commits.filter((one) => repo.git("for-each-ref", "--contains", one) === "");
}

function makeFor(
  mc: Awaited<ReturnType<typeof load>>,
  dir: string,
  repo: TestRepository,
): ReturnType<typeof mc.makeWorktree> {
  return mc.makeWorktree({
    id: "a",
    user: "a",
    isUnfinished: () => false,
    attempt: 1,
    dir: repo.dir,
    buildsOn: undefined,
    worktreesDir: join(dir, "worktrees"),
    takeRoom: async () => {},
    env: GIT_ENVIRONMENT,
  });
}

function newPersonalRepository(dir: string, { settings, isSparse }: Walk): TestRepository {
  const remote = newRepository(join(dir, "remote"));
  const repo = newRepository(join(dir, "repo"));
  const script = `mkdir src docs
    echo one > a.txt; echo s > src/s.txt; echo d > docs/d.md; printf 'a\\nb\\n' > crlf.txt
    printf '$Id$ text\\n' > id.txt; printf 'text\\n' | iconv -t UTF-16 > enc.txt; ln -s a.txt link
    echo '#!/bin/sh' > run.sh; chmod +x run.sh
    printf 'id.txt ident\\nenc.txt working-tree-encoding=UTF-16\\ncrlf.txt text\\n' > .gitattributes
    ${ALLOW} submodule --quiet add ${remote.dir} sub; git add -A; ${ALLOW} commit -qm all`;
  run(repo.dir, script);
  for (const one of settings) repo.git("config", ...one.split("="));
  if (isSparse) run(repo.dir, "git sparse-checkout init --cone; git sparse-checkout set src");
  return repo;
}

function run(cwd: string, script: string): string {
  const env = { ...process.env, ...GIT_ENVIRONMENT };
  try {
    const stdio: StdioOptions = ["ignore", "pipe", "ignore"];
    return execFileSync("sh", ["-c", script], {
      cwd,
      env,
      encoding: "utf8",
      stdio,
      timeout: 60_000,
    });
  } catch {
    // An act may not fit after others. What it has left is there all the same.
    return "";
  }
}

/** All files below a directory, by path (latin1 text), with their kinds and contents. */
function filesIn(root: string): Map<string, string> {
  const files = new Map<string, string>();
  const look = (dir: string): void => {
    const at = (name: string): Buffer => Buffer.from(`${root}/${dir}${name}`, "latin1");
    for (const entry of fs.readdirSync(at(""), { withFileTypes: true, encoding: "latin1" })) {
      const { name } = entry;
      if (dir === "" && name === ".git" && !entry.isDirectory()) continue;
      if (entry.isDirectory()) look(`${dir}${name}/`);
      else if (entry.isSymbolicLink())
        files.set(dir + name, `link ${fs.readlinkSync(at(name), "latin1")}`);
      // A pipe holds no bytes, and a look into it would wait for ever.
      else if (entry.isFile()) {
        const isExecutable = (fs.statSync(at(name)).mode & 0o100) !== 0;
        files.set(dir + name, `${isExecutable} ${fs.readFileSync(at(name), "latin1")}`);
      }
    }
  };
  look("");
  return files;
}

/** The mode and the id of the blob of a file, as a tree has it. */
function blobOf(contents: string): string {
  const [kind = ""] = contents.split(" ", 1);
  const bytes = Buffer.from(contents.slice(kind.length + 1), "latin1");
  const oid = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
  const modes: Record<string, string> = { link: "120000", true: "100755", false: "100644" };
  return `${modes[kind]} ${oid}`;
}

/** What the branch and all saves would give back, and their blobs. */
async function keptFiles(
  dir: string,
  repo: TestRepository,
  write: typeof import("../../../src/git/snapshot.ts")["writeFilesOf"],
): Promise<Set<string>> {
  const refs = repo.git("for-each-ref", "--format=%(refname)", "refs/mailchute", "refs/heads");
  const kept = new Set<string>();
  for (const [n, ref] of refs.split("\n").entries()) {
    if (/\/(?:base|ended|settings-changed)$/.test(ref)) continue;
    const to = join(dir, `kept${n}`);
    fs.mkdirSync(to, { recursive: true });
    const index = join(dir, `index${n}`);
    const commonDir = join(repo.dir, ".git");
    const env = { ...GIT_ENVIRONMENT, GIT_INDEX_FILE: index, GIT_COMMON_DIR: commonDir };
    const settings = ["core.sparseCheckout=false", "core.symlinks=true"];
    await write({ cwd: to, gitDir: join(repo.dir, ".git"), env, settings }, ref);
    for (const [name, contents] of filesIn(to)) kept.add(`${name}\0${contents}`);
    fs.rmSync(to, { recursive: true });
    const listed = execFileSync("git", ["ls-tree", "-r", "-z", ref], { cwd: repo.dir });
    for (const line of listed.toString("latin1").split("\0")) {
      const [, mode, oid, name] = /^(\d+) \w+ ([0-9a-f]+)\t(.*)$/s.exec(line) ?? [];
      kept.add(`${name}\0${mode} ${oid}`);
    }
  }
  return kept;
}
