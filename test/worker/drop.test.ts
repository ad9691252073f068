/** The folder of a run that ends: what a program leaves there at any moment is taken, or the program is told that it is not. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { basename, join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { dropTask } from "../../src/cli/shell/inside-run.ts";
import { dropDirOf, stateTree } from "../../src/core/state-tree.ts";
import { ownerSequence } from "../../src/host/identity.ts";
import { Drop, type DropPlace, takeLeftDrops } from "../../src/worker/drop.ts";
import { tempDir } from "../support/temp-dir.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

function newDrop() {
  const tree = stateTree(tempDir());
  const lease = `s.1.${ownerSequence()()}`;
  const dir = dropDirOf(tree, "work", lease);
  const taken: string[] = [];
  let isFull = false;
  const take = async (
    _place: unknown,
    { path, id, sender }: { path: string; id: string; sender: { taskId: string } },
  ) => {
    if (isFull) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
    taken.push(`${id} of ${sender.taskId}`);
    return { name: basename(path) };
  };
  const place = { tree, requests: [{ ending: ".word", take }] } as unknown as DropPlace;
  const drop = new Drop(place, dir);
  drop.open();
  /** @returns whether the program is told that it is taken */
  const leave = (id: string): boolean => {
    try {
      fs.writeFileSync(join(dir, `.${id}`), "{}");
      fs.linkSync(join(dir, `.${id}`), join(dir, `${id}.word`));
      return true;
    } catch {
      return false;
    }
  };
  return {
    tree,
    lease,
    dir,
    drop,
    place,
    taken,
    leave,
    setFull: (full: boolean) => (isFull = full),
  };
}

it.each(["renameSync", "readdirSync", "rmdirSync", "openSync"] as const)(
  "a file that comes before the last %s is taken, or was refused",
  async (call) => {
    const { drop, dir, leave, taken } = newDrop();
    leave("early");
    const left: string[] = [];
    const before = fs[call] as (...args: unknown[]) => unknown;
    let n = 0;
    vi.spyOn(fs, call).mockImplementation(((...args: unknown[]) => {
      const id = `late${n++}`;
      if (leave(id)) left.push(id);
      return before(...args);
    }) as never);
    await drop.close();
    vi.restoreAllMocks();
    expect(n).toBeGreaterThan(0);
    for (const id of ["early", ...left]) expect(taken).toContain(`${id} of work`);
    expect(leave("after")).toBe(false);
    expect(() => dropTask(dir, "after", "{}")).toThrow("the run has ended");
    expect(fs.readdirSync(join(dir, ".."))).toEqual([]);
  },
);

it("what the disk refuses at the end is taken by a later look, also of the same process, once", async () => {
  const { drop, leave, place, taken, setFull, dir } = newDrop();
  leave("word");
  setFull(true);
  await drop.close();
  expect(taken).toEqual([]);
  setFull(false);
  await Promise.all([takeLeftDrops(place), takeLeftDrops(place)]);
  expect(taken).toEqual(["word of work"]);
  expect(fs.readdirSync(join(dir, "..")).filter((name) => name.includes("@"))).toEqual([]);
});

it.each(["a pipe", "a link", "a directory", "a large file"])(
  "%s with the name of a task is refused when the run ends, and kept",
  async (what) => {
    const { drop, dir, place, tree } = newDrop();
    const path = join(dir, "odd.json");
    if (what === "a pipe") execFileSync("mkfifo", [path]);
    else if (what === "a link") fs.symlinkSync("/dev/zero", path);
    else if (what === "a directory") fs.mkdirSync(path);
    else {
      fs.writeFileSync(path, "{");
      fs.truncateSync(path, 10 * 2 ** 30);
    }
    await drop.close();
    await takeLeftDrops(place);
    const [alert = ""] = fs.readFileSync(tree.alerts, "utf8").split("\n");
    expect(JSON.parse(alert)).toMatchObject({ alert: "drop_refused" });
    const [, kept = ""] = /it is in (.+?)"/.exec(alert) ?? [];
    expect(fs.lstatSync(join(kept, "odd.json"))).toBeDefined();
    expect(fs.readdirSync(join(dir, ".."))).toEqual([]);
  },
);
