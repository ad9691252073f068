/**
 * Roots of a few names, which are made, copied, moved and removed, and whose agents talk: a model knows which root each directory is, and
 * which root said what. No root may see an agent or a message of another one that was not addressed to it.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { createAgent, listAgents, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import type { openAt } from "../../../src/parts/mail/roots/open-own.ts";
import { formatAddress } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import type { MailFolder, MailStore } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { type SeededRandom, seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** Opens the mail of a root: `openAt`, or a variant that must be caught. */
export type Open = (store: MailStore, dir: string, stateDir: string) => ReturnType<typeof openAt>;

const NAMES = ["app", "shop"] as const;
const BRANCHES = ["main", "dev"] as const;
const KINDS = ["repository", "bare", "outside"] as const;
const AGENT = "ann";
const STEPS = 60;

interface Place {
  dir: string;
  kind: (typeof KINDS)[number];
  /** The name of its directory, which is its project if it is a repository. */
  name: string;
  branch: string;
  /** The root that it is: a copy is another one, a moved one is the same. */
  mark: number;
  /** Further worktrees, by branch. */
  worktrees: Map<string, string>;
}

/** @returns what went wrong, with the steps that led to it; "" when nothing did */
export async function play(seed: number, open: Open): Promise<string> {
  const roots = new ManyRoots(tempDir(), seededRandom(seed), open);
  try {
    for (let n = 0; n < STEPS; n++) await roots.step();
    await roots.checkAll();
    return "";
  } catch (error) {
    return `seed ${seed}: ${(error as Error).message}\n${roots.steps.join("\n")}`;
  }
}

class ManyRoots {
  readonly steps: string[] = [];
  private readonly dir: string;
  private readonly store: MailStore;
  private readonly random: SeededRandom;
  private readonly open: Open;
  private readonly places: Place[] = [];
  /** The scopes in which a root has an agent: `mark scope`. */
  private readonly expected = new Set<string>();
  /** Messages to a name, by id: the one root that has got it. That of a name which nobody has waits for the first one. */
  private readonly crossed = new Map<string, number | undefined>();
  private marks = 0;
  private count = 0;

  constructor(dir: string, random: SeededRandom, open: Open) {
    this.dir = dir;
    this.random = random;
    this.open = open;
    this.store = { dataDir: join(dir, "data"), isDurable: false, accepts: ["*"] };
  }

  /** @throws when one root sees what is another's, or does not see its own */
  async step(): Promise<void> {
    const { random } = this;
    const place = this.places.length === 0 ? undefined : random.pick(this.places);
    const acts = ["make", "copy", "move", "remove", "worktree", "cross", "live", "live", "live"];
    const act = place === undefined ? "make" : random.pick(acts);
    this.steps.push(`${act} ${place?.dir ?? ""}`);
    if (place === undefined || act === "make") this.make();
    else if (act === "copy") this.copy(place);
    else if (act === "move") this.move(place);
    else if (act === "remove") this.remove(place);
    else if (act === "worktree") this.addWorktree(place);
    else if (act === "cross") await this.cross(place);
    else await this.live(place);
  }

  /** Looks at all roots. */
  async checkAll(): Promise<void> {
    for (const place of this.places) await this.check(place);
  }

  private make(): void {
    const { random } = this;
    const place: Place = {
      dir: this.freeDir(random.pick(NAMES)),
      kind: random.pick(KINDS),
      name: "",
      branch: random.pick(BRANCHES),
      mark: ++this.marks,
      worktrees: new Map(),
    };
    place.name = nameOf(place.dir);
    const gitDir = place.kind === "bare" ? place.dir : join(place.dir, ".git");
    fs.mkdirSync(join(place.dir, "state", "mailbox", "inbox"), { recursive: true });
    if (place.kind !== "outside") {
      for (const name of ["objects", "refs"]) fs.mkdirSync(join(gitDir, name), { recursive: true });
      fs.writeFileSync(join(gitDir, "HEAD"), `ref: refs/heads/${place.branch}\n`);
    }
    this.places.push(place);
  }

  private copy(place: Place): void {
    const dir = this.freeDir(this.random.pick(NAMES));
    execFileSync("cp", ["-a", place.dir, dir]);
    // The worktrees of the original point to the original.
    const copy = { ...place, dir, name: nameOf(dir), mark: ++this.marks, worktrees: new Map() };
    this.places.push(copy);
  }

  private move(place: Place): void {
    const dir = this.freeDir(this.random.pick(NAMES));
    fs.renameSync(place.dir, dir);
    for (const [branch, worktree] of place.worktrees)
      fs.writeFileSync(join(worktree, ".git"), `gitdir: ${gitDirOf(dir, branch)}\n`);
    place.dir = dir;
    place.name = nameOf(dir);
  }

  /** Sometimes another one is made in its place at once: it may get the same inode. */
  private remove(place: Place): void {
    fs.rmSync(place.dir, { recursive: true });
    for (const worktree of place.worktrees.values()) fs.rmSync(worktree, { recursive: true });
    this.places.splice(this.places.indexOf(place), 1);
  }

  private addWorktree(place: Place): void {
    if (place.kind !== "repository") return;
    const branch = `side-${place.worktrees.size}`;
    const dir = this.freeDir("tree");
    const gitDir = gitDirOf(place.dir, branch);
    for (const one of [dir, gitDir]) fs.mkdirSync(one, { recursive: true });
    fs.writeFileSync(join(gitDir, "HEAD"), `ref: refs/heads/${branch}\n`);
    fs.writeFileSync(join(gitDir, "commondir"), "../..\n");
    fs.writeFileSync(join(dir, ".git"), `gitdir: ${gitDir}\n`);
    place.worktrees.set(branch, dir);
  }

  /** It has an agent and says something, as a supervisor with mail and a person do. */
  private async live(place: Place): Promise<void> {
    for (const { key, folder, store } of await this.scopesOf(place)) {
      if (!this.expected.has(key)) {
        const home = join(place.dir, "state");
        const draft = { name: AGENT, type: "claude", task: String(place.mark), home };
        await createAgent(folder, draft, Date.now());
        this.expected.add(key);
      }
      const { project, branch } = folder.scope;
      const to = this.random.pick([AGENT, `${branch}:${AGENT}`, `${project}:${branch}:${AGENT}`]);
      const text = `of ${place.mark}`;
      send(store, { scope: folder.scope, from: "human", via: "cli", to: [to], text }, Date.now());
    }
    await this.check(place);
  }

  /** It writes to all roots of a name: refused when there are several, else it comes to the only one. */
  private async cross(place: Place): Promise<void> {
    const { folder, store } = await this.open(this.store, place.dir, join(place.dir, "state"));
    const project = this.random.pick([...NAMES, "unknown"]);
    if (project === folder.scope.project) return;
    const id = `x-${++this.count}`;
    const to = formatAddress({ project, branch: "main", name: AGENT });
    const draft = { id, scope: folder.scope, from: "human", via: "cli" as const, to: [to] };
    try {
      send(store, { ...draft, text: `of ${place.mark}` }, Date.now());
    } catch (error) {
      if (!/is the name of several scopes/.test(String(error))) throw error;
      return;
    }
    this.crossed.set(id, undefined);
  }

  private async check(place: Place): Promise<void> {
    for (const { key, folder } of await this.scopesOf(place)) {
      const where = `${place.dir} (root ${place.mark}, ${folder.dir})`;
      for (const agent of listAgents(folder, true))
        if (agent.task !== String(place.mark))
          throw new Error(`${where} sees an agent of root ${agent.task}`);
      for (const { id, content } of new MessageReader(folder).next())
        if (content !== `of ${place.mark}` && !this.isFor(place, id, key))
          throw new Error(`${where} sees a message ${content}`);
      if (this.expected.has(key) && readAgent(folder, AGENT) === undefined)
        throw new Error(`${where} has lost its agent`);
    }
  }

  /** True if the message was addressed to the name of this root, and no other root has got it. */
  private isFor({ mark }: Place, id: string, key: string): boolean {
    if (!this.crossed.has(id)) return false;
    // A root that has written nothing yet looks at the folder that it would get.
    if (!this.expected.has(key)) return this.crossed.get(id) === undefined;
    const reader = this.crossed.get(id) ?? mark;
    this.crossed.set(id, reader);
    return reader === mark;
  }

  /** The scopes of a root: that of its directory, and those of its worktrees. */
  private async scopesOf(
    place: Place,
  ): Promise<{ key: string; folder: MailFolder; store: MailStore }[]> {
    const scopes = [];
    for (const dir of [place.dir, ...place.worktrees.values()]) {
      const own = await this.open(this.store, dir, join(place.dir, "state"));
      const { project, branch } = own.folder.scope;
      const name = place.kind === "outside" ? "unknown" : place.name;
      if (project !== name) throw new Error(`${dir} is in the project ${project}, not ${name}`);
      scopes.push({ ...own, key: `${place.mark} ${project}:${branch}` });
    }
    return scopes;
  }

  /** A directory of this name that is free. Those of roots that have gone are used again. */
  private freeDir(name: string): string {
    for (let n = 0; ; n++) {
      const dir = join(this.dir, String(n), name);
      if (fs.existsSync(dir)) continue;
      fs.mkdirSync(join(dir, ".."), { recursive: true });
      return dir;
    }
  }
}

const nameOf = (dir: string): string => dir.split("/").at(-1) ?? "";
const gitDirOf = (dir: string, branch: string): string => join(dir, ".git", "worktrees", branch);
