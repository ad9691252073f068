/** The same cases on the real file system and on the one in memory: what is proved on the second holds on the first. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { systemCode } from "../../src/core/errors.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../src/mailbox/files/storage.ts";
import { overDisk, usePort } from "../simulation/descriptors.ts";
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
  type Trees = string[];
  const put = (disk: MemoryDisk, path: string, text = "four"): void =>
    disk.fill(disk.createEmpty(path), Buffer.from(text));
  const show = (disk: MemoryDisk): string =>
    ["/a", "/b"].map((dir) => `${dir}: ${disk.list(dir).join(" ")}`).join(", ");

  /** What every possible cut leaves. */
  function cuts(
    prepare: (disk: MemoryDisk) => void,
    torn: "whole" | "half" | "nothing" = "nothing",
  ): MemoryDisk[] {
    const disk = new MemoryDisk();
    disk.makeDir("/a");
    disk.makeDir("/b");
    disk.sync("/a");
    disk.sync("/b");
    expect(disk.waysToCut(100)).toEqual([[]]);
    prepare(disk);
    return disk.waysToCut(1000).map((kept) => {
      const cut = disk.copy();
      cut.cutPower(kept, () => torn);
      return cut;
    });
  }
  const trees = (prepare: (disk: MemoryDisk) => void): Trees =>
    [...new Set(cuts(prepare).map(show))].sort();

  test("loses the last changes of one directory first", () => {
    const left = trees((disk) => {
      put(disk, "/a/x");
      put(disk, "/a/y");
      disk.unlink("/a/x");
    });
    expect(left).toEqual(["/a: , /b: ", "/a: x y, /b: ", "/a: x, /b: ", "/a: y, /b: "]);
  });

  test("keeps a later change of one directory without an earlier one of another", () => {
    const left = trees((disk) => {
      put(disk, "/a/x");
      disk.link("/a/x", "/b/x");
    });
    expect(left).toEqual(["/a: , /b: ", "/a: , /b: x", "/a: x, /b: ", "/a: x, /b: x"]);
  });

  test("counts the names that a file has left", () => {
    const counts = cuts((disk) => {
      put(disk, "/a/x");
      disk.link("/a/x", "/b/x");
      disk.unlink("/a/x");
    }).map((disk) => `${show(disk)} ${(disk.look("/a/x") ?? disk.look("/b/x"))?.nlink}`);
    expect([...new Set(counts)].sort()).toEqual([
      "/a: , /b:  undefined",
      "/a: , /b: x 1",
      "/a: x, /b:  1",
      "/a: x, /b: x 2",
    ]);
  });

  test("has a moved file in one place, and in the order of both directories", () => {
    const left = trees((disk) => {
      put(disk, "/a/x");
      disk.rename("/a/x", "/b/x");
      put(disk, "/b/y");
    });
    expect(left).toEqual(["/a: , /b: ", "/a: , /b: x", "/a: , /b: x y", "/a: x, /b: "]);
  });

  test("tears bytes that nobody synced, although the name is there", () => {
    const bytes = (torn: "whole" | "half" | "nothing"): string =>
      String(cuts((disk) => put(disk, "/a/x"), torn)[1]?.read("/a/x", 9).bytes);
    expect([bytes("whole"), bytes("half"), bytes("nothing")]).toEqual(["four", "fo", ""]);
  });

  test("keeps a synced file with its name, and nothing of another directory", () => {
    const left = cuts((disk) => {
      put(disk, "/b/before");
      put(disk, "/a/before");
      put(disk, "/a/x");
      disk.sync("/a/x");
    });
    expect([...new Set(left.map(show))].sort()).toEqual([
      "/a: before x, /b: ",
      "/a: before x, /b: before",
    ]);
    for (const disk of left) expect(disk.read("/a/x", 9).bytes?.toString()).toBe("four");
  });

  test("keeps what a synced directory has, and what a move into it rests on", () => {
    const left = cuts((disk) => {
      put(disk, "/a/before");
      put(disk, "/a/x");
      disk.sync("/a/x");
      put(disk, "/a/too");
      disk.rename("/a/x", "/b/x");
      put(disk, "/a/later");
      disk.sync("/b");
    });
    expect([...new Set(left.map(show))].sort()).toEqual([
      "/a: before later too, /b: x",
      "/a: before too, /b: x",
    ]);
    for (const disk of left) expect(disk.read("/b/x", 9).bytes?.toString()).toBe("four");
  });

  test("keeps the bytes of a synced file under whatever name survives", () => {
    const left = cuts((disk) => {
      put(disk, "/a/x");
      disk.sync("/a/x");
      disk.link("/a/x", "/b/x");
      disk.unlink("/a/x");
      disk.sync("/a");
    });
    expect(left.map(show).sort()).toEqual(["/a: , /b: ", "/a: , /b: x"]);
    expect(
      left.flatMap((disk) => (disk.look("/b/x") ? [String(disk.read("/b/x", 9).bytes)] : [])),
    ).toEqual(["four"]);
  });

  test("has nothing in a directory that did not survive", () => {
    const left = trees((disk) => {
      disk.makeDir("/a/d");
      put(disk, "/a/d/x");
      disk.link("/a/d/x", "/b/x");
      disk.sync("/a/d");
    });
    expect(left).toEqual(["/a: d, /b: ", "/a: d, /b: x"]);
  });
});

/** Descriptors of the disk in memory, as batches and their results use them. */
function descriptorsInMemory(): { files: typeof fs; root: string } {
  const disk = new MemoryDisk();
  disk.makeDir("/m");
  usePort({
    ...memoryStorage(disk),
    openNew: (path) => disk.createEmpty(path),
    openToRead: (path) => {
      const { facts, bytes } = disk.read(path, Number.MAX_SAFE_INTEGER);
      return { facts, bytes: bytes ?? Buffer.alloc(0) };
    },
    append: (ino, bytes) => disk.append(ino, bytes),
    lookAt: (ino) => disk.lookAt(ino),
    syncData: async (ino) => disk.syncData(ino),
  });
  return { files: overDisk(fs) as typeof fs, root: "/m" };
}

test.each([
  ["on the real file system", () => ({ files: fs, root: openReal().root })],
  ["in memory", descriptorsInMemory],
])(
  "descriptors %s read and write a file past the port, even when its name is gone",
  (_where, open) => {
    const { files, root } = open();
    const { O_WRONLY, O_CREAT, O_EXCL } = fs.constants;
    const NEW = O_WRONLY | O_CREAT | O_EXCL;
    const path = join(root, "x");
    const read = (): string => {
      const fd = files.openSync(path, fs.constants.O_RDONLY);
      const buffer = Buffer.alloc(100);
      const got = [0, 3].map((at) => files.readSync(fd, buffer, at, 3, at));
      const { size, nlink } = files.fstatSync(fd);
      files.closeSync(fd);
      return `${got.join()} ${buffer.toString("utf8", 0, size)} ${nlink}`;
    };
    expect(codeOf(() => files.openSync(path, fs.constants.O_RDONLY))).toBe("ENOENT");
    const fd = files.openSync(path, NEW, 0o600);
    expect(codeOf(() => files.openSync(path, NEW, 0o600))).toBe("EEXIST");
    expect(files.writeSync(fd, Buffer.from("zabcz"), 1, 3)).toBe(3);
    expect(read()).toBe("3,0 abc 1");
    files.writeSync(fd, Buffer.from("de"), 0, 2);
    expect(read()).toBe("3,2 abcde 1");
    files.futimesSync(fd, 5, 5);
    expect(files.statSync(path, { throwIfNoEntry: false })).toMatchObject({
      size: 5,
      mtimeMs: 5000,
    });
    files.rmSync(path, { force: true });
    files.rmSync(path, { force: true });
    files.writeSync(fd, Buffer.from("f"), 0, 1);
    expect(files.fstatSync(fd)).toMatchObject({ size: 6, nlink: 0 });
    expect(files.statSync(path, { throwIfNoEntry: false })).toBeUndefined();
    files.closeSync(fd);
  },
);
