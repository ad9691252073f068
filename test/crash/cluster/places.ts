/**
 * Where the walk of the bridges has its trees: one with the task, and two that work for it. What bridges do goes by `world`, where the hook
 * counts it; people and pools come by `alias`, which is the same folder, and are never struck.
 */
import fs from "node:fs";
import { join } from "node:path";
import { stateTree } from "../../../src/core/state-tree.ts";
import { openTrays, type Trays, traysAt } from "../../../src/mailbox/files/trays.ts";
import { treeName } from "../../../src/parts/cluster/tree/tree-name.ts";

export const ORIGIN = "o";
export const MACHINES = ["a", "b"] as const;
export const TASK = "t";

export const worldOf = (dir: string): string => join(dir, "world");
export const aliasOf = (dir: string): string => join(dir, "alias");

export interface Run {
  machine: string;
  /** The id of its dispatch. */
  id: string;
}

/** What people and pools have done so far. It outlives the process. */
export class Notes {
  private readonly path: string;

  constructor(dir: string) {
    this.path = join(dir, "notes.jsonl");
  }

  private lines(): { what: string; run?: Run }[] {
    if (!fs.existsSync(this.path)) return [];
    return fs
      .readFileSync(this.path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { what: string; run?: Run });
  }

  has(what: string): boolean {
    return this.lines().some((line) => line.what === what);
  }

  runs(): Run[] {
    return this.lines().flatMap(({ run }) => run ?? []);
  }

  add(what: string, run?: Run): void {
    fs.appendFileSync(this.path, `${JSON.stringify({ what, run })}\n`);
  }
}

/** The mailboxes of a tree that was made. */
export function mailboxesOf(root: string, name: string): { tasks: Trays; control: Trays } {
  const { mailbox, control } = stateTree(join(root, name));
  const options = { durability: "process" } as const;
  return { tasks: traysAt(mailbox, options), control: traysAt(control, options) };
}

/**
 * Makes the trees, and drops the task into that of the origin.
 * @param areNamed otherwise their first bridges name them
 */
export function makeTrees(dir: string, task: Record<string, unknown>, areNamed: boolean): void {
  fs.mkdirSync(worldOf(dir), { mode: 0o700 });
  fs.symlinkSync("world", aliasOf(dir));
  for (const name of [ORIGIN, ...MACHINES]) {
    fs.mkdirSync(join(worldOf(dir), name, "analytics"), { recursive: true, mode: 0o700 });
    fs.writeFileSync(join(worldOf(dir), name, "config.yaml"), "");
    const { tasks, control } = mailboxesOf(worldOf(dir), name);
    for (const trays of [tasks, control]) openTrays(trays.dir, { durability: "process" });
    if (areNamed) treeName(join(worldOf(dir), name), name);
  }
  const path = join(worldOf(dir), ORIGIN, "mailbox", "inbox", `${TASK}.json`);
  fs.writeFileSync(path, JSON.stringify({ id: TASK, agent: "far", prompt: "?", ...task }));
}
