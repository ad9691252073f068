/** The id of a directory: it goes with a move, a copy gets its own, and processes that ask at once agree. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ownIdOf } from "../../src/host/own-id.ts";
import { startProgram } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const fileOf = (dir: string): string => join(dir, "mailchute-id");
const idOf = (dir: string): string => ownIdOf(dir, { path: fileOf(dir), key: "id", chars: 32 });

function newDir(name = "a"): string {
  const dir = join(tempDir(), name);
  fs.mkdirSync(dir);
  return dir;
}

/** The ids that so many processes get which ask at the same moment. */
async function askAtOnce(dir: string, count: number): Promise<string[]> {
  const programs = Array.from({ length: count }, () => startProgram("asks-own-id.mjs", [dir]));
  await waitFor(() => programs.every((one) => one.stdout().startsWith("ready")), {
    what: "all processes",
    timeoutMs: 60_000,
  });
  for (const { child } of programs) child.stdin?.end("go\n");
  for (const one of programs) expect(await one.ended, one.stderr()).toMatchObject({ exitCode: 0 });
  return programs.map((one) => one.stdout().split("\n")[1] ?? "");
}

describe("the id of a directory", () => {
  it("is made once, and stays", () => {
    const dir = newDir();
    const id = idOf(dir);
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(idOf(dir)).toBe(id);
    expect(idOf(newDir())).not.toBe(id);
    expect(fs.readdirSync(dir)).toEqual(["mailchute-id"]);
  });

  it("goes with a directory that is moved, and a new one in its place gets another", () => {
    const dir = newDir();
    const id = idOf(dir);
    const moved = `${dir}-moved`;
    fs.renameSync(dir, moved);
    expect(idOf(moved)).toBe(id);
    fs.mkdirSync(dir);
    expect(idOf(dir)).not.toBe(id);
  });

  it("is another one in a copy, at its first question and for ever, and the original keeps its own", () => {
    const dir = newDir();
    const id = idOf(dir);
    execFileSync("cp", ["-a", dir, `${dir}-copy`]);
    const other = idOf(`${dir}-copy`);
    expect(other).not.toBe(id);
    execFileSync("cp", ["-a", `${dir}-copy`, `${dir}-third`]);
    execFileSync("cp", ["-a", `${dir}-copy`, `${dir}-fourth`]);
    const ids = [dir, `${dir}-copy`, `${dir}-third`, `${dir}-fourth`].map(idOf);
    expect(ids.slice(0, 2)).toEqual([id, other]);
    expect(new Set(ids).size).toBe(4);
  });

  it("stays when only the number of the device has changed, as after a mount", () => {
    const dir = newDir();
    const id = idOf(dir);
    const { ino } = fs.statSync(dir);
    const text = fs.readFileSync(fileOf(dir), "utf8");
    fs.writeFileSync(fileOf(dir), text.replace(/"of": ".*"/, `"of": "1:${ino}"`));
    expect(idOf(dir)).toBe(id);
    fs.renameSync(dir, `${dir}-moved`);
    expect(idOf(`${dir}-moved`)).toBe(id);
  });

  it("of a file that earlier versions wrote, which name no path, is kept", () => {
    const dir = newDir();
    const { dev, ino } = fs.statSync(dir);
    const id = "0123456789abcdef0123456789abcdef";
    fs.writeFileSync(fileOf(dir), JSON.stringify({ id, of: `${dev}:${ino}` }));
    expect(idOf(dir)).toBe(id);
  });

  it.each([
    ["empty", ""],
    ["no JSON", "not json\n"],
    ["torn", '{"v":1,"id":"0123'],
    ["of another form", '{"id":"../../etc"}'],
    ["too long", `{"id":"0123456789abcdef0123456789abcdef","x":"${"x".repeat(100_000)}"}`],
  ])("is made anew when its file is %s, once", (_what, text) => {
    const dir = newDir();
    fs.writeFileSync(fileOf(dir), text);
    const id = idOf(dir);
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(idOf(dir)).toBe(id);
  });

  it.each([
    ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
    ["a directory", (path: string) => fs.mkdirSync(path)],
    ["a link", (path: string) => fs.symlinkSync("/etc/passwd", path)],
    ["a link to nothing", (path: string) => fs.symlinkSync("gone", path)],
  ])("is that of its path when %s is in the place of its file, which stays", (_what, put) => {
    const dir = newDir();
    put(fileOf(dir));
    const before = fs.lstatSync(fileOf(dir)).ino;
    const id = idOf(dir);
    expect(idOf(dir)).toBe(id);
    expect(fs.lstatSync(fileOf(dir)).ino).toBe(before);
    execFileSync("cp", ["-a", dir, `${dir}-copy`]);
    expect(idOf(`${dir}-copy`)).not.toBe(id);
  });

  it.runIf(process.getuid?.() === 0)(
    "is that of its path where this user may not write, also in the copy of a directory that has one",
    () => {
      const dir = newDir();
      const id = idOf(dir);
      const copy = `${dir}-copy`;
      execFileSync("cp", ["-a", dir, copy]);
      for (const one of [join(dir, ".."), dir, copy]) fs.chmodSync(one, 0o755);
      const ask = (of: string): string => {
        process.seteuid?.(65_534);
        try {
          return idOf(of);
        } finally {
          process.seteuid?.(0);
        }
      };
      expect(ask(dir)).toBe(id);
      const found = ask(copy);
      expect(found).toMatch(/^[0-9a-f]{32}$/);
      expect(found).not.toBe(id);
      expect(ask(copy)).toBe(found);
      expect(JSON.parse(fs.readFileSync(fileOf(copy), "utf8")).id).toBe(id);
    },
  );

  it("is that of the process which replaced a damaged file while this one had it open", () => {
    const dir = newDir();
    fs.writeFileSync(fileOf(dir), "");
    let other = "";
    const open = fs.openSync;
    const spy = vi.spyOn(fs, "openSync").mockImplementation((...args) => {
      const fd = open(...args);
      if (args[0] === fileOf(dir) && other === "") {
        spy.mockRestore();
        other = idOf(dir);
      }
      return fd;
    });
    onTestFinished(() => spy.mockRestore());
    expect(idOf(dir)).toBe(other);
    expect(other).toMatch(/^[0-9a-f]{32}$/);
    expect(idOf(dir)).toBe(other);
  });

  it.each(["a new directory", "a copy", "a damaged file"])(
    "is the same for 6 processes that ask at once in %s",
    async (what) => {
      const dir = newDir();
      if (what === "a copy") idOf(dir);
      const asked = what === "a copy" ? `${dir}-copy` : dir;
      if (what === "a copy") execFileSync("cp", ["-a", dir, asked]);
      if (what === "a damaged file") fs.writeFileSync(fileOf(dir), "");
      const ids = await askAtOnce(asked, 6);
      expect(ids[0]).toMatch(/^[0-9a-f]{32}$/);
      expect(new Set(ids).size).toBe(1);
      expect(idOf(asked)).toBe(ids[0]);
      expect(fs.readdirSync(asked)).toEqual(["mailchute-id"]);
    },
  );
});
