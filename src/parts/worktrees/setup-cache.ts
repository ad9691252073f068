/**
 * Gives a new worktree the folders that `setup` has made in an earlier one with the same key (`cache`). An entry is made only by `setup`,
 * in a worktree in which no run was, and which begins at a commit that no unlanded work has; it becomes whole by one rename. Its files
 * are never written again: one that has changed is thrown away.
 */
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { readPrograms } from "../../codec/task-rules.ts";
import { messageOf } from "../../core/errors.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { CacheFields } from "../../core/setup-cache.ts";
import { isNumber, isText, listOf, oneOf, shape } from "../../core/shape.ts";
import { RUN_DIR_DEPTH } from "../../core/state-tree.ts";
import { commitOf } from "../../git/repository.ts";
import { askGit } from "../../git/run-git.ts";
import { type FoundFiles, shown, walkFiles } from "../../git/walk-files.ts";
import { copyTree, factsOfTree, filesThatName, hasReflinks } from "../../host/copy-tree.ts";
import { readDocument, touchDocument } from "../../host/documents.ts";
import { lockFile } from "../../host/file-lock.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import {
  appendRegularText,
  tryReadText,
  writeAnew,
  writeRegularText,
} from "../../host/regular-file.ts";
import type { AssignedAgent } from "../../worker/runner.ts";
import { runSetup } from "../../worker/setup.ts";
import type { MadeWorktree } from "./make.ts";
import { cacheDir } from "./names.ts";
import { discard, isOfOthers } from "./remove.ts";

/** Of an entry. Its time says when it was last used. */
export const NOTE = "note.json";
export const cacheNote = shape({
  v: oneOf(1),
  /** Of all its files. */
  stamp: isText,
  bytes: isNumber,
  /** The worktree in which it was made. */
  origin: isText,
  paths: listOf(isText),
  /** Files that name that worktree, for each of the paths. */
  naming: listOf(listOf(isText)),
});

interface Place {
  here: AssignedAgent;
  id: string;
  made: MadeWorktree;
  /** Tells a person, in the journal of alerts. */
  alert: (message: string) => void;
}

/** Makes a new worktree ready: from the cache, or by `setup`. @returns why the run fails or waits. @throws ErrGit, system errors */
export async function setUp(place: Place): Promise<AttemptOutcome | undefined> {
  const { assignment, agent } = place.here;
  const cache = assignment.task.cache ?? agent.settings.cache;
  const programs = assignment.task.setup ?? readPrograms(agent.settings.setup ?? []);
  const isThere = (path: string): boolean =>
    fs.lstatSync(join(place.made.cwd, path), { throwIfNoEntry: false }) !== undefined;
  // What is in the place of a folder came from the commit, from a run, or from a setup that was killed.
  if (cache === undefined || programs.length === 0 || cache.paths.some(isThere))
    return runSetup(place.here);
  const key = await keyOf(place, cache, programs);
  return key === undefined ? runSetup(place.here) : new SetupCache(place, cache, key).setUp();
}

/** Undefined when the commit has none of the files on which it depends. */
async function keyOf(
  { here, made: { repository, worktree } }: Place,
  { paths, key, link }: CacheFields,
  programs: readonly (readonly string[])[],
): Promise<string | undefined> {
  const call = { cwd: worktree.path, gitDir: worktree.gitDir, env: repository.env };
  const files = key.map((path) => `${repository.prefix}${path}`);
  const asked = ["--literal-pathspecs", "ls-tree", "-z", "--full-tree", "HEAD", "--"];
  const contents = (await askGit(call, ...asked, ...files)).out.toString("latin1");
  if (contents === "") return undefined;
  const { env, env_from } = here.assignment.task;
  const machine = [process.platform, process.arch, process.versions.modules];
  const { commonDir, prefix } = repository;
  const all = [1, commonDir, prefix, paths, contents, programs, env, env_from, link, machine];
  return createHash("sha256").update(JSON.stringify(all)).digest("hex").slice(0, 32);
}

class SetupCache {
  private readonly dir: string;
  private readonly entry: string;
  private readonly log: string;
  private readonly isLinked: boolean;

  constructor(
    private readonly place: Place,
    private readonly cache: CacheFields,
    private readonly key: string,
  ) {
    const { here, made } = place;
    this.dir = cacheDir(dirname(made.worktree.path));
    this.entry = join(this.dir, key);
    this.log = join(here.assignment.runDir, "setup.log");
    makeDirs(this.dir, 1);
    // A program that is root writes also into files that are read-only.
    this.isLinked = cache.link === true && process.getuid?.() !== 0 && !hasReflinks(this.dir);
  }

  /** Others with the same key wait for the first one. */
  async setUp(): Promise<AttemptOutcome | undefined> {
    const { here } = this.place;
    const mayMake = await this.mayMake();
    for (;;) {
      if (fs.existsSync(this.entry) && (await this.fill())) return undefined;
      if (!mayMake || fs.existsSync(this.whyNot)) return runSetup(here);
      const release = await lockFile(`${this.entry}.lock`);
      try {
        if (release === undefined && here.assignment.stop.reason === undefined) continue;
        if (!fs.existsSync(this.entry) && !fs.existsSync(this.whyNot)) return await this.make();
      } finally {
        await release?.();
      }
    }
  }

  /** Says why the folders cannot be kept. Then no task waits for them. */
  private get whyNot(): string {
    return `${this.entry}.why`;
  }

  private async mayMake(): Promise<boolean> {
    const { made, id } = this.place;
    if (!made.isNew) return false;
    const { repository, worktree } = made;
    const call = { cwd: worktree.path, gitDir: worktree.gitDir, env: repository.env };
    const begin = await commitOf(call, "HEAD");
    return begin !== undefined && (await isOfOthers(repository, id, begin, true));
  }

  /** @returns false when there is no good entry. @throws a system error, such as ENOSPC */
  private async fill(): Promise<boolean> {
    const { alert, made } = this.place;
    const note = readDocument(join(this.entry, NOTE), cacheNote);
    const facts = await factsOfTree(join(this.entry, "files"), this.isLinked).catch(
      () => undefined,
    );
    if (note === undefined || facts?.stamp !== note.stamp) {
      // Another one may have found it at the same time.
      if (await discard(this.entry))
        alert(
          `what setup has made was changed after it was kept, and is made again: ${this.entry}`,
        );
      return false;
    }
    touchDocument(join(this.entry, NOTE));
    const staged = join(this.dir, `fill-${randomBytes(8).toString("hex")}`);
    try {
      makeDirs(staged, 1);
      for (const [n, naming] of note.naming.entries())
        await copyTree(join(this.entry, "files", String(n)), join(staged, String(n)), {
          isReadOnly: false,
          isLinked: this.isLinked,
          replaced: { files: new Set(naming), from: note.origin, to: made.worktree.path },
        });
      for (const [n, path] of note.paths.entries()) {
        makeDirs(dirname(join(made.cwd, path)), Number.POSITIVE_INFINITY);
        fs.renameSync(join(staged, String(n)), join(made.cwd, path));
      }
    } catch (error) {
      if (fs.existsSync(this.entry)) throw error;
      // Its retention was over just now.
      return false;
    } finally {
      await discard(staged);
    }
    this.say(`${note.paths.join(", ")}: from the cache, so setup does not run (${this.key})`);
    return true;
  }

  private async make(): Promise<AttemptOutcome | undefined> {
    const { made, here } = this.place;
    const before = await walkFiles(made.worktree.path, new Set());
    const fault = await runSetup(here);
    if (fault !== undefined) return fault;
    const staged = join(this.dir, `new-${randomBytes(8).toString("hex")}`);
    try {
      const why = this.explainUnfit(before, await walkFiles(made.worktree.path, new Set()));
      if (why === undefined) await this.keep(staged);
      else this.refuse(why);
    } catch (error) {
      this.say(`not kept for other worktrees: ${messageOf(error)}`);
    } finally {
      await discard(staged);
    }
    return undefined;
  }

  /** Why its folders alone do not make another worktree ready; undefined when they do. */
  private explainUnfit(before: FoundFiles, after: FoundFiles): string | undefined {
    const { prefix } = this.place.made.repository;
    const paths = this.cache.paths.map((path) => `${prefix}${path}`);
    const isOutside = (name: string): boolean =>
      !paths.some((path) => `${shown(name)}/`.startsWith(`${path}/`));
    const names = new Set([...before.files.keys(), ...after.files.keys()]);
    const changed = [...names].filter(
      (name) => before.files.get(name)?.stamp !== after.files.get(name)?.stamp,
    );
    const inner = [...after.inner.keys()].filter((name) => this.isLinked || isOutside(name));
    const other = [...changed.filter(isOutside), ...inner, ...after.unreadable].map(shown);
    if (other.length > 0) return `setup has made or changed ${other[0]}, which is not in paths`;
    const cwd = this.place.made.cwd;
    const missing = this.cache.paths.find(
      (path) => fs.lstatSync(join(cwd, path), { throwIfNoEntry: false })?.isDirectory() !== true,
    );
    return missing === undefined ? undefined : `setup has made no folder ${missing}`;
  }

  /** A crash before the rename leaves a folder that is not used. */
  private async keep(staged: string): Promise<void> {
    const { made } = this.place;
    const { paths } = this.cache;
    const files = join(staged, "files");
    makeDirs(files, 2);
    const naming: string[][] = [];
    for (const [n, path] of paths.entries()) {
      const copy = join(files, String(n));
      await copyTree(join(made.cwd, path), copy, { isReadOnly: true, isLinked: this.isLinked });
      naming.push(await filesThatName(copy, made.worktree.path));
    }
    const origin = made.worktree.path;
    const facts = await factsOfTree(files, this.isLinked);
    writeAnew(join(staged, NOTE), JSON.stringify({ v: 1, ...facts, origin, paths, naming }));
    fs.renameSync(staged, this.entry);
    this.say(`${paths.join(", ")}: kept for other worktrees (${this.key})`);
  }

  private refuse(why: string): void {
    this.say(`not kept for other worktrees: ${why}`);
    if (tryReadText(this.whyNot) === why) return;
    writeRegularText(this.whyNot, why);
    this.place.alert(`cache: nothing is kept, and setup runs in each worktree: ${why}`);
  }

  private say(what: string): void {
    makeDirs(dirname(this.log), RUN_DIR_DEPTH);
    appendRegularText(this.log, `# ${what}\n`);
  }
}
