/** Builds trays with very many files, and counts what is read of them. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { type StateTree, stateTree } from "../../src/core/state-tree.ts";

/** `MAILCHUTE_VIEW_FILES=1000000` for a larger tray. */
export const MANY = Number(process.env["MAILCHUTE_VIEW_FILES"] ?? 120_000);

/** A state tree with empty trays, in memory where the system has such a place; it goes away with the test. */
export function newTree(): StateTree {
  const parent = fs.existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();
  const dir = fs.mkdtempSync(join(parent, "mailchute-view-"));
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }));
  const tree = stateTree(dir);
  for (const tray of ["inbox", "processing", "outbox", "failed"])
    fs.mkdirSync(join(tree.mailbox, tray), { recursive: true });
  fs.mkdirSync(join(dir, "analytics"));
  return tree;
}

/** Many names of one old and empty file. */
export function fill(dir: string, ending: string, count: number, begin = "old"): void {
  const first = join(dir, `${begin}-0${ending}`);
  fs.writeFileSync(first, "{}");
  fs.utimesSync(first, 1_000_000_000, 1_000_000_000);
  for (let n = 1; n < count; n++) fs.linkSync(first, join(dir, `${begin}-${n}${ending}`));
}

interface Reads {
  /** Names that directories gave. */
  names: number;
  /** Files whose times were asked for. */
  stats: number;
  /** Files that were opened or read whole. */
  opened: number;
}

/** What was read meanwhile. */
export async function readsOf(act: () => unknown): Promise<Reads> {
  const reads = { names: 0, stats: 0, opened: 0 };
  const spies = [
    spyOn(fs.Dir.prototype, "readSync", () => reads.names++),
    spyOn(fs, "lstatSync", () => reads.stats++),
    spyOn(fs, "statSync", () => reads.stats++),
    spyOn(fs, "openSync", () => reads.opened++),
    spyOn(fs, "readFileSync", () => reads.opened++),
  ];
  try {
    await act();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return reads;
}

function spyOn(owner: object, name: string, count: () => void): { mockRestore(): void } {
  const methods = owner as Record<string, (...args: unknown[]) => unknown>;
  const real = methods[name];
  return vi.spyOn(methods, name).mockImplementation(function (this: unknown, ...args: unknown[]) {
    count();
    return real?.apply(this, args);
  });
}
