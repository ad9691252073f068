/** The person's file is read whole, and never replaced unread. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readList, realListPath, replaceList } from "../../../src/parts/list/list-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

function newList(text: string): string {
  const path = join(tempDir(), "todo.md");
  fs.writeFileSync(path, text);
  return path;
}

it("a text that a person saved after it was read is not replaced", async () => {
  const path = newList("- [ ] a\n");
  const list = await readList(path);
  fs.writeFileSync(path, "- [ ] a\n- [ ] mine\n");
  expect(replaceList(list, "- [x] a\n")).toBe(false);
  expect(fs.readFileSync(path, "utf8")).toBe("- [ ] a\n- [ ] mine\n");
  expect(fs.readdirSync(join(path, ".."))).toEqual(["todo.md"]);
});

it("a file that was removed after it was read is not made again", async () => {
  const path = newList("- [ ] a\n");
  const list = await readList(path);
  fs.rmSync(path);
  expect(replaceList(list, "- [x] a\n")).toBe(false);
  expect(fs.existsSync(path)).toBe(false);
});

it("what a killed process staged is removed by the next tick, and files of a person are left", async () => {
  const path = newList("- [ ] a\n");
  const staging = join(path, "..", ".todo.md.mailchute");
  fs.mkdirSync(staging);
  fs.writeFileSync(join(staging, "todo.md.4711"), "half");
  fs.writeFileSync(`${path}.4711`, "of a person");
  expect(replaceList(await readList(path), "- [x] a\n")).toBe(true);
  expect(fs.readdirSync(join(path, "..")).sort()).toEqual(["todo.md", "todo.md.4711"]);
});

it("a file that is being written is read when its writer is done", async () => {
  const path = newList("");
  const fd = fs.openSync(path, "w");
  fs.writeSync(fd, "- [ ] a\n");
  const reading = readList(path);
  fs.writeSync(fd, "- [ ] b\n");
  fs.closeSync(fd);
  expect((await reading).text).toBe("- [ ] a\n- [ ] b\n");
});

it("the list of a link is the file that it leads to, also after that file is gone", () => {
  const path = newList("- [ ] a\n");
  const link = join(path, "..", "link.md");
  fs.symlinkSync("todo.md", link);
  expect(realListPath(link)).toBe(path);
  fs.rmSync(link);
  fs.rmSync(path);
  expect(realListPath(path)).toBe(path);
});
