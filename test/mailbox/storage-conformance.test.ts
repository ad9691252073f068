/** The same cases on the real file system and on the one in memory: what is proved on the second holds on the first. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { systemCode } from "../../src/core/errors.ts";
import { nodeStorage } from "../../src/mailbox/node-storage.ts";
import type { Storage } from "../../src/mailbox/storage.ts";
import { MemoryDisk, memoryStorage } from "../simulation/memory-storage.ts";

const base = fs.mkdtempSync(join(os.tmpdir(), "mailchute-storage-"));
afterAll(() => fs.rmSync(base, { recursive: true, force: true }));
let rooms = 0;

interface Room {
  storage: Storage;
  root: string;
}

function openReal(): Room {
  const root = join(base, String(rooms++));
  fs.mkdirSync(root);
  return { storage: nodeStorage, root };
}

function openInMemory(): Room {
  const disk = new MemoryDisk();
  disk.makeDir("/room");
  return { storage: memoryStorage(disk), root: "/room" };
}

function codeOf(step: () => unknown): string {
  try {
    step();
    return "ok";
  } catch (error) {
    return systemCode(error);
  }
}

describe.each([
  ["on the real file system", openReal],
  ["in memory", openInMemory],
])("the storage port %s", (_where, open) => {
  let s: Storage;
  let root: string;
  const at = (name: string): string => join(root, name);
  const text = (name: string): string | undefined => s.read(at(name), 1000).bytes?.toString();
  const put = (name: string, content = name): void => s.create(at(name), Buffer.from(content));

  beforeEach(() => {
    ({ storage: s, root } = open());
    for (const dir of ["a", "b"]) s.makeDir(at(dir));
  });

  test("creates a file once, whole, and only where there is none", () => {
    put("a/x", "one");
    expect(text("a/x")).toBe("one");
    expect(s.look(at("a/x"))).toMatchObject({ size: 3, nlink: 1, kind: "file" });
    expect((s.look(at("a/x"))?.mode ?? 0) & 0o777).toBe(0o600);
    expect(codeOf(() => put("a/x", "two"))).toBe("EEXIST");
    expect(text("a/x")).toBe("one");
    expect(codeOf(() => put("none/x"))).toBe("ENOENT");
    expect(codeOf(() => put("a/x/y"))).toBe("ENOTDIR");
    expect(codeOf(() => put("a"))).toBe("EEXIST");
  });

  test("links a second name to the same file, and never replaces", () => {
    put("a/x", "one");
    put("a/y", "two");
    s.link(at("a/x"), at("b/x"));
    expect(s.look(at("b/x"))?.ino).toBe(s.look(at("a/x"))?.ino);
    expect(s.look(at("a/x"))?.nlink).toBe(2);
    expect(codeOf(() => s.link(at("a/y"), at("b/x")))).toBe("EEXIST");
    expect(codeOf(() => s.link(at("a/x"), at("a/x")))).toBe("EEXIST");
    expect(codeOf(() => s.link(at("a/none"), at("b/x")))).toBe("ENOENT");
    expect(codeOf(() => s.link(at("a/x"), at("none/x")))).toBe("ENOENT");
    expect(codeOf(() => s.link(at("a"), at("b/dir")))).toBe("EPERM");
    expect(text("b/x")).toBe("one");
    s.unlink(at("a/x"));
    expect(text("b/x")).toBe("one");
    expect(s.look(at("b/x"))?.nlink).toBe(1);
  });

  test("renames over another file silently, and keeps inode and mtime", () => {
    put("a/x", "one");
    put("b/x", "two");
    s.touch(at("a/x"), 12_345_000);
    const before = s.look(at("a/x"));
    s.rename(at("a/x"), at("b/x"));
    expect(text("b/x")).toBe("one");
    expect(s.look(at("a/x"))).toBeUndefined();
    expect(s.look(at("b/x"))).toMatchObject({ ino: before?.ino, mtimeMs: 12_345_000, nlink: 1 });
    expect(codeOf(() => s.rename(at("a/x"), at("b/x")))).toBe("ENOENT");
    expect(codeOf(() => s.rename(at("b/x"), at("none/x")))).toBe("ENOENT");
    expect(codeOf(() => s.rename(at("b/x"), at("a")))).toBe("EISDIR");
    expect(codeOf(() => s.rename(at("a"), at("b/x")))).toBe("ENOTDIR");
    expect(codeOf(() => s.rename(at("a"), at("b")))).toBe("ENOTEMPTY");
    expect(codeOf(() => s.rename(at("a"), at("a/deeper")))).toBe("EINVAL");
  });

  test("a rename between two names of one file does nothing", () => {
    put("a/x");
    s.link(at("a/x"), at("b/x"));
    s.rename(at("a/x"), at("b/x"));
    expect(s.list(at("a"))).toEqual(["x"]);
    expect(s.list(at("b"))).toEqual(["x"]);
  });

  test("moves a directory with what is in it", () => {
    put("a/x", "one");
    s.rename(at("a"), at("c"));
    expect(text("c/x")).toBe("one");
    expect(s.look(at("a"))).toBeUndefined();
  });

  test("unlinks files, and only files", () => {
    put("a/x");
    s.unlink(at("a/x"));
    expect(s.look(at("a/x"))).toBeUndefined();
    expect(codeOf(() => s.unlink(at("a/x")))).toBe("ENOENT");
    expect(codeOf(() => s.unlink(at("a")))).toBe("EISDIR");
    expect(codeOf(() => s.unlink(at("none/x")))).toBe("ENOENT");
  });

  test("lists and walks what is there", () => {
    for (const name of ["z", "x", "y"]) put(`a/${name}`);
    expect(s.list(at("a")).sort()).toEqual(["x", "y", "z"]);
    const walk = s.walk(at("a"));
    const names: string[] = [];
    for (let some = walk.next(2); some.length > 0; some = walk.next(2)) names.push(...some);
    expect(names.sort()).toEqual(["x", "y", "z"]);
    expect(walk.next(2)).toEqual([]);
    walk.close();
    const closed = s.walk(at("a"));
    closed.close();
    expect(closed.next(2)).toEqual([]);
    expect(codeOf(() => s.list(at("none")))).toBe("ENOENT");
    expect(codeOf(() => s.walk(at("none")))).toBe("ENOENT");
    expect(codeOf(() => s.list(at("a/x")))).toBe("ENOTDIR");
    expect(s.rawName(at("a"), "x")?.toString()).toBe("x");
    expect(s.rawName(at("a"), "none")).toBeUndefined();
  });

  test("reads regular files up to a size, and says what else it met", () => {
    put("a/x", "twelve bytes");
    expect(s.read(at("a/x"), 12).bytes?.toString()).toBe("twelve bytes");
    expect(s.read(at("a/x"), 11)).toMatchObject({ facts: { size: 12 }, bytes: undefined });
    expect(s.read(at("a"), 100)).toMatchObject({ facts: { kind: "directory" }, bytes: undefined });
    expect(codeOf(() => s.read(at("a/none"), 1))).toBe("ENOENT");
    expect(codeOf(() => s.read(at("a/x/y"), 1))).toBe("ENOTDIR");
  });

  test("touches what is there", () => {
    put("a/x");
    s.touch(at("a/x"), 1_000_000_000_000);
    expect(s.look(at("a/x"))?.mtimeMs).toBe(1_000_000_000_000);
    expect(codeOf(() => s.touch(at("a/none"), 1))).toBe("ENOENT");
    s.link(at("a/x"), at("b/x"));
    s.touch(at("b/x"), 2_000_000);
    expect(s.look(at("a/x"))?.mtimeMs).toBe(2_000_000);
  });

  test("makes directories with those above them, and minds none that is there", () => {
    s.makeDir(at("c/d/e"));
    s.makeDir(at("c/d"));
    expect(s.look(at("c/d/e"))?.kind).toBe("directory");
    expect((s.look(at("c"))?.mode ?? 0) & 0o777).toBe(0o700);
    put("c/x");
    expect(codeOf(() => s.makeDir(at("c/x")))).toBe("EEXIST");
    expect(codeOf(() => s.makeDir(at("c/x/y")))).toBe("ENOTDIR");
  });

  test("makes no more directories than it may", () => {
    expect(codeOf(() => s.makeDir(at("c/d"), 1))).toBe("ENOENT");
    expect(s.look(at("c"))).toBeUndefined();
    s.makeDir(at("c/d"), 2);
    s.makeDir(at("c/d/e"), 1);
    s.makeDir(at("c/d/e"), 1);
    expect(s.look(at("c/d/e"))?.kind).toBe("directory");
    put("c/x");
    expect(codeOf(() => s.makeDir(at("c/x"), 1))).toBe("EEXIST");
    expect(codeOf(() => s.makeDir(at("c/x/y"), 1))).toBe("ENOTDIR");
  });

  test("looks at nothing as nothing", () => {
    put("a/x");
    expect(s.look(at("a/none"))).toBeUndefined();
    expect(s.look(at("none/none"))).toBeUndefined();
    expect(s.look(Buffer.from(at("a/x")))?.size).toBe(3);
  });

  test("syncs files and directories, and says when one is gone", async () => {
    put("a/x");
    await s.syncFiles([at("a/x")]);
    await s.syncDirs([at("a"), at("a")]);
    await s.syncFiles([]);
    await expect(s.syncFiles([at("a/none")])).rejects.toMatchObject({ code: "ENOENT" });
    await expect(s.syncDirs([at("none")])).rejects.toMatchObject({ code: "ENOENT" });
  });
});

/** Another file system to write to, if this machine has one. */
function findOtherDevice(): string | undefined {
  const own = fs.statSync(base).dev;
  return ["/dev/shm", "/run", os.homedir()].find((dir) => {
    try {
      fs.accessSync(dir, fs.constants.W_OK);
      return fs.statSync(dir).dev !== own;
    } catch {
      return false;
    }
  });
}

test("neither links nor moves cross to another file system", ({ skip }) => {
  const other = findOtherDevice();
  if (other === undefined) return skip("this machine has one file system only");
  const real = openReal();
  const elsewhere = fs.mkdtempSync(join(other, "mailchute-storage-"));
  const disk = new MemoryDisk();
  disk.mount("/elsewhere");
  try {
    for (const { storage, from, to } of [
      { storage: real.storage, from: join(real.root, "x"), to: join(elsewhere, "x") },
      { storage: memoryStorage(disk), from: "/x", to: "/elsewhere/x" },
    ]) {
      storage.create(from, Buffer.from("x"));
      expect(codeOf(() => storage.link(from, to))).toBe("EXDEV");
      expect(codeOf(() => storage.rename(from, to))).toBe("EXDEV");
      expect(storage.look(to)).toBeUndefined();
    }
  } finally {
    fs.rmSync(elsewhere, { recursive: true, force: true });
  }
});

const name = fc.constantFrom("a", "b", "a/x", "a/y", "b/x", "b/y", "a/x/deep", "none/x", "x");
const step = fc.oneof(
  fc.record({ op: fc.constant("create" as const), to: name, text: fc.string({ maxLength: 3 }) }),
  fc.record({ op: fc.constantFrom("link" as const, "rename" as const), from: name, to: name }),
  fc.record({ op: fc.constantFrom("unlink" as const, "makeDir" as const), to: name }),
  fc.record({
    op: fc.constant("touch" as const),
    to: name,
    timeMs: fc.constantFrom(0, 1000, 86_400_000),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function take({ storage, root }: Room, s: Step): string {
  const to = join(root, s.to);
  return codeOf(() => {
    if (s.op === "create") storage.create(to, Buffer.from(s.text));
    else if (s.op === "link" || s.op === "rename") storage[s.op](join(root, s.from), to);
    else if (s.op === "touch") storage.touch(to, s.timeMs);
    else storage[s.op](to);
  });
}

/** Everything below a room as text; files with one inode share a number. */
function picture({ storage, root }: Room): string[] {
  const lines: string[] = [];
  const numbers = new Map<number, number>();
  const visit = (dir: string): void => {
    for (const name of storage.list(join(root, dir)).sort()) {
      const path = `${dir}${name}`;
      const { facts, bytes } = storage.read(join(root, path), 1000);
      if (facts.kind === "directory") {
        lines.push(`${path}/`);
        visit(`${path}/`);
        continue;
      }
      if (!numbers.has(facts.ino)) numbers.set(facts.ino, numbers.size);
      // A time that nobody set is the time of its making: not the same in two rooms.
      const time = facts.mtimeMs < 1e9 ? facts.mtimeMs : "now";
      lines.push(`${path} #${numbers.get(facts.ino)} x${facts.nlink} ${String(bytes)} ${time}`);
    }
  };
  visit("");
  return lines;
}

test("any row of steps has the same outcomes, and leaves the same tree, on both", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const real = openReal();
      const disk = new MemoryDisk();
      disk.nowMs = 1e12;
      disk.makeDir("/room");
      const memory = { storage: memoryStorage(disk), root: "/room" };
      for (const s of steps) expect(take(memory, s), JSON.stringify(s)).toBe(take(real, s));
      expect(picture(memory)).toEqual(picture(real));
      fs.rmSync(real.root, { recursive: true });
    }),
    { numRuns: 300, seed: Number(process.env["MAILCHUTE_TEST_SEED"] ?? 1) },
  );
});

describe("a power cut, in memory", () => {
  function cut(
    prepare: (disk: MemoryDisk) => void,
    kept: number,
    torn: "whole" | "half" | "nothing" = "nothing",
  ): MemoryDisk {
    const disk = new MemoryDisk();
    disk.makeDir("/a");
    disk.makeDir("/b");
    disk.sync("/a");
    disk.sync("/b");
    expect(disk.unsyncedCount).toBe(0);
    prepare(disk);
    disk.cutPower(Math.min(kept, disk.unsyncedCount), () => torn);
    return disk;
  }
  const put = (disk: MemoryDisk, path: string): void =>
    disk.fill(disk.createEmpty(path), Buffer.from("four"));

  test("loses names that nobody synced, the last ones first", () => {
    const prepare = (disk: MemoryDisk): void => {
      put(disk, "/a/x");
      disk.link("/a/x", "/b/x");
      disk.unlink("/a/x");
    };
    const left = (kept: number): string[][] => {
      const disk = cut(prepare, kept);
      return [disk.list("/a"), disk.list("/b")];
    };
    expect(left(0)).toEqual([[], []]);
    expect(left(1)).toEqual([["x"], []]);
    expect(left(2)).toEqual([["x"], ["x"]]);
    expect(left(3)).toEqual([[], ["x"]]);
  });

  test("tears bytes that nobody synced, although the name is there", () => {
    const bytes = (torn: "whole" | "half" | "nothing"): string =>
      String(cut((disk) => put(disk, "/a/x"), 1, torn).read("/a/x", 9).bytes);
    expect([bytes("whole"), bytes("half"), bytes("nothing")]).toEqual(["four", "fo", ""]);
  });

  test("keeps a synced file with its name and all that came before it", () => {
    const disk = cut((d) => {
      put(d, "/b/before");
      put(d, "/a/x");
      d.sync("/a/x");
      put(d, "/a/after");
    }, 0);
    expect([disk.list("/a"), disk.list("/b")]).toEqual([["x"], ["before"]]);
    expect(disk.read("/a/x", 9).bytes?.toString()).toBe("four");
    expect(disk.read("/b/before", 9).bytes?.toString()).toBe("");
  });

  test("keeps what a synced directory has, but not what another got later", () => {
    const disk = cut((d) => {
      put(d, "/a/x");
      d.sync("/a/x");
      d.rename("/a/x", "/b/x");
      put(d, "/a/later");
      d.sync("/b");
    }, 0);
    expect([disk.list("/a"), disk.list("/b")]).toEqual([[], ["x"]]);
    expect(disk.read("/b/x", 9).bytes?.toString()).toBe("four");
  });

  test("never has a moved file in two places or in none", () => {
    for (const kept of [0, 1]) {
      const disk = cut((d) => {
        put(d, "/a/x");
        d.sync("/a");
        d.rename("/a/x", "/b/y");
      }, kept);
      expect([...disk.list("/a"), ...disk.list("/b")]).toHaveLength(1);
    }
  });
});
