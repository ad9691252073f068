/** A file that a program has put something else in the place of: nobody waits for it, follows it or writes into it. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { KV_DOCUMENT_BYTES_MAX } from "../../src/core/limits.ts";
import {
  appendRegularText,
  lookInto,
  NAMED,
  openInput,
  openToAppend,
  openToRead,
  readInput,
  readRegular,
  readRegularText,
  statOf,
  tryReadText,
  writeAnew,
  writeRegularText,
} from "../../src/host/regular-file.ts";
import { tempDir } from "../support/temp-dir.ts";

it("what is not a regular file is refused at once, and left as it is", () => {
  const dir = tempDir();
  const target = join(dir, "target");
  fs.writeFileSync(target, "precious");
  const [pipe, link, folder] = ["pipe", "link", "folder"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  execFileSync("mkfifo", [pipe]);
  fs.symlinkSync(target, link);
  fs.mkdirSync(folder);
  // With a reader a pipe can be opened for writing, too.
  const reader = fs.openSync(pipe, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  for (const path of [pipe, link, folder]) {
    expect(() => openToRead(path), path).toThrow(/EINVAL|ELOOP/);
    expect(() => openToAppend(path), path).toThrow(/EINVAL|ELOOP|EISDIR/);
    expect(() => writeRegularText(path, "x"), path).toThrow(/EINVAL|ELOOP|EISDIR/);
  }
  fs.closeSync(reader);
  expect(() => openToAppend(pipe)).toThrow("ENXIO");
  expect(fs.readFileSync(target, "utf8")).toBe("precious");
});

it("a file with a second name is read, and not written into; anew it is another file", () => {
  const dir = tempDir();
  const target = join(dir, "target");
  fs.writeFileSync(target, "precious");
  const links = ["hard", "soft"].map((name) => join(dir, name)) as [string, string];
  fs.linkSync(target, links[0]);
  fs.symlinkSync(target, links[1]);
  expect(readRegularText(links[0])).toBe("precious");
  for (const path of links) {
    for (const write of [appendRegularText, writeRegularText])
      expect(() => write(path, "x"), path).toThrow(/EINVAL|ELOOP/);
    writeAnew(path, "x");
    expect(readRegularText(path)).toBe("x");
  }
  expect(fs.readFileSync(target, "utf8")).toBe("precious");
});

it("a regular file is written, added to and read", () => {
  const path = join(tempDir(), "file");
  writeRegularText(path, "longer than what follows");
  writeRegularText(path, "a");
  appendRegularText(path, "b");
  expect(readRegularText(path)).toBe("ab");
  expect(fs.statSync(path).mode & 0o777).toBe(0o600);
});

it("what is larger than anything of ours is not read", () => {
  const path = join(tempDir(), "file");
  fs.writeFileSync(path, "a");
  fs.truncateSync(path, 2 * KV_DOCUMENT_BYTES_MAX + 1);
  expect(() => readRegularText(path)).toThrow("EFBIG");
});

it("what a person names may be a link to a regular file, and to nothing else", () => {
  const dir = tempDir();
  const at = (name: string): string => join(dir, name);
  fs.writeFileSync(at("file"), "text");
  execFileSync("mkfifo", [at("pipe")]);
  fs.mkdirSync(at("folder"));
  for (const [name, target] of [
    ["far", "near"],
    ["near", "file"],
    ["to-pipe", "pipe"],
    ["to-folder", "folder"],
    ["to-device", "/dev/zero"],
    ["to-nothing", "nothing"],
    ["circle", "circle"],
  ] as const)
    fs.symlinkSync(target, at(name));
  expect(readRegularText(at("far"), NAMED)).toBe("text");
  expect(() => readRegularText(at("far"))).toThrow("EINVAL: it is a link");
  expect(tryReadText(at("far"))).toBeUndefined();
  for (const name of ["to-pipe", "to-folder", "to-device"])
    expect(() => readRegularText(at(name), NAMED), name).toThrow("it is not a regular file");
  expect(() => readRegularText(at("to-nothing"), NAMED)).toThrow("ENOENT");
  expect(() => readRegularText(at("circle"), NAMED)).toThrow("ELOOP");
  for (const name of ["to-nothing", "circle", "file/below"])
    expect(statOf(at(name))).toBeUndefined();
  expect(statOf(at("far"))?.size).toBe(4);
});

it("of a file that grows while it is read only what it had is taken, and the growth is told", () => {
  const path = join(tempDir(), "file");
  fs.writeFileSync(path, "abc");
  const { readSync } = fs;
  const read = vi.spyOn(fs, "readSync").mockImplementation(((
    ...args: Parameters<typeof readSync>
  ) => {
    fs.appendFileSync(path, "more".repeat(1000));
    return readSync(...args);
  }) as never);
  try {
    expect(readRegular(path).toString()).toBe("abc");
    const { stats, bytes } = lookInto(path);
    expect(bytes).toHaveLength(stats.size + 1);
  } finally {
    read.mockRestore();
  }
});

it("a command reads a descriptor of its own by the name that the shell gives it, and no pipe in a folder", () => {
  const dir = tempDir();
  const path = join(dir, "file");
  fs.writeFileSync(path, "lines");
  expect(openInput("/dev/stdin")).toBe(0);
  const fd = fs.openSync(path, "r");
  expect(readInput(`/dev/fd/${fd}`, 5).toString()).toBe("lines");
  expect(() => readInput(path, 4)).toThrow("it has 5 bytes, more than the limit of 4");
  execFileSync("mkfifo", [join(dir, "pipe")]);
  expect(() => openInput(join(dir, "pipe"))).toThrow("it is not a regular file");
});
