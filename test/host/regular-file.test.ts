/** A file that a program has put something else in the place of: nobody waits for it, follows it or writes into it. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { KV_DOCUMENT_BYTES_MAX } from "../../src/core/limits.ts";
import {
  appendRegularText,
  openToAppend,
  openToRead,
  readRegularText,
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
