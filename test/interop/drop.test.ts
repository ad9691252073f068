/** Dropping a file by any means from any language is a way in: whole, in pieces, slowly, or before anybody runs. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { onProc } from "../support/needs-proc.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const echo = (text: string): { exec: string[] } => ({ exec: ["echo", "-n", text] });

/** Runs a foreign program to its end. Its arguments never go through a shell of ours. */
async function runProgram(program: string, args: readonly string[]): Promise<void> {
  const child = startWriter(program, args);
  child.stdin?.end();
  expect(await ended(child), `${program} ${args.join(" ")}`).toBe(0);
}

function startWriter(program: string, args: readonly string[]): ChildProcess {
  const child = spawn(program, args, { stdio: ["pipe", "inherit", "inherit"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  });
}

function write(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdin?.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** Resolves when the settle time is over for everything that was dropped before: a file that stays half is refused then. */
async function settleTimeOver(pool: Pool, id: string): Promise<void> {
  fs.writeFileSync(join(pool.inbox, `${id}.json`), '{"exec":');
  await pool.error(id);
}

function sizeOf(path: string): number {
  return fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

describe("files dropped by other programs", () => {
  const PYTHON_IN_PLACE = `
import json, sys
with open(sys.argv[1], "w") as f:
    json.dump({"exec": ["echo", "-n", "from python, in place"], "priority": 1}, f, indent=2)
`;
  const PYTHON_RENAME = `
import json, os, sys
staged = sys.argv[2] + "/.python.staged"
with open(staged, "w") as f:
    json.dump({"exec": ["echo", "-n", "from python, é"]}, f)
    f.flush()
    os.fsync(f.fileno())
os.rename(staged, sys.argv[1])
`;
  const NODE_STREAM = `
const stream = require("node:fs").createWriteStream(process.argv[1]);
for (const piece of JSON.stringify({ exec: ["echo", "-n", "from node, in pieces"] })) stream.write(piece);
stream.end();
`;
  const NODE_RENAME = `
const fs = require("node:fs");
fs.writeFileSync(process.argv[2] + "/.node.staged", JSON.stringify({ exec: ["echo", "-n", "from node"] }));
fs.renameSync(process.argv[2] + "/.node.staged", process.argv[1]);
`;

  it("end as results with their output, whatever wrote them and however it did", async () => {
    const pool = newPool();
    await pool.start();
    const source = (id: string): string => {
      const path = join(pool.dir, `${id}.source`);
      fs.writeFileSync(path, JSON.stringify(echo(`from ${id}`)));
      return path;
    };
    const target = (id: string): string => join(pool.inbox, `${id}.json`);
    const bash = (script: string, id: string): Promise<void> =>
      runProgram("bash", ["-c", script, "bash", source(id), target(id)]);
    await Promise.all([
      bash('cp "$1" "$2"', "cp"),
      bash('mv "$1" "$2"', "mv"),
      bash('cat < "$1" > "$2"', "cat"),
      bash('while IFS= read -rn1 c; do printf %s "$c"; done < "$1" > "$2"', "drip"),
      bash('tee "$2" < "$1" > /dev/null', "tee"),
      bash('dd if="$1" of="$2" bs=7 status=none', "dd"),
      bash('cp "$1" "$2.tmp" && mv "$2.tmp" "$2"', "cp-mv"),
      runProgram("python3", ["-c", PYTHON_IN_PLACE, target("python"), pool.inbox]),
      runProgram("python3", ["-c", PYTHON_RENAME, target("python-mv"), pool.inbox]),
      runProgram(process.execPath, ["-e", NODE_STREAM, target("node"), pool.inbox]),
      runProgram(process.execPath, ["-e", NODE_RENAME, target("node-mv"), pool.inbox]),
    ]);
    for (const id of ["cp", "mv", "cat", "drip", "tee", "dd", "cp-mv"])
      expect(await pool.result(id)).toMatchObject({
        status: "completed",
        output: `from ${id}`,
        attempts: 1,
      });
    expect((await pool.result("python")).output).toBe("from python, in place");
    expect((await pool.result("python-mv")).output).toBe("from python, é");
    expect((await pool.result("node")).output).toBe("from node, in pieces");
    expect((await pool.result("node-mv")).output).toBe("from node");
    expect(pool.errors()).toEqual([]);
    expect(fs.readdirSync(pool.inbox)).toEqual([]);
  });

  onProc(
    "a slow `cat >` that pauses longer than the settle time is waited for while it has the file open",
    async () => {
      const pool = newPool();
      await pool.start();
      const path = join(pool.inbox, "slow.json");
      const cat = startWriter("bash", ["-c", 'cat > "$1"', "bash", path]);
      const isOver = ended(cat);
      const text = JSON.stringify(echo("slow but whole"));
      await write(cat, text.slice(0, 12));
      await waitFor(() => sizeOf(path) === 12, { what: "the first half" });
      await settleTimeOver(pool, "half-1");
      await settleTimeOver(pool, "half-2");
      expect(sizeOf(path)).toBe(12);
      await write(cat, text.slice(12));
      cat.stdin?.end();
      await isOver;
      expect((await pool.result("slow")).output).toBe("slow but whole");
      expect(
        pool
          .errors()
          .map((record) => record.task_id)
          .sort(),
      ).toEqual(["half-1", "half-2"]);
    },
  );

  it("a file that is closed between its halves is waited for up to the settle time", async () => {
    const pool = newPool({ config: QUICK_CONFIG.replace("settle_ms: 300", "settle_ms: 3000") });
    await pool.start();
    const path = join(pool.inbox, "halves.json");
    const text = JSON.stringify(echo("two halves"));
    fs.writeFileSync(path, text.slice(0, 12));
    // A good file dropped after it has gone all the way: the half was seen.
    pool.drop("good", echo("good"));
    await pool.result("good");
    fs.appendFileSync(path, text.slice(12));
    expect((await pool.result("halves")).output).toBe("two halves");
    expect(pool.errors()).toEqual([]);
  });

  it("an empty file that is filled later by another program runs once it is whole", async () => {
    const pool = newPool({ config: QUICK_CONFIG.replace("settle_ms: 300", "settle_ms: 3000") });
    await pool.start();
    const path = join(pool.inbox, "touched.json");
    await runProgram("touch", [path]);
    pool.drop("good", echo("good"));
    await pool.result("good");
    await runProgram("python3", [
      "-c",
      'import sys; open(sys.argv[1], "a").write(sys.argv[2])',
      path,
      JSON.stringify(echo("filled")),
    ]);
    expect((await pool.result("touched")).output).toBe("filled");
  });

  it("what was there before the supervisor runs as well", async () => {
    const pool = newPool();
    for (let i = 0; i < 20; i++) pool.drop(`early-${i}`, echo(String(i)));
    await pool.start();
    for (let i = 0; i < 20; i++) expect((await pool.result(`early-${i}`)).output).toBe(String(i));
  });
});

describe("enqueue without a supervisor", () => {
  it("puts the task into the inbox; `run --drain` runs it and ends with 0", async () => {
    const pool = newPool();
    const one = await pool.run(["enqueue", "--id", "one", "--", "printf", "%s", "a  b"]);
    expect(one).toMatchObject({ code: 0, stdout: "one\n" });
    const two = await pool.run(
      ["enqueue", "--file", "-"],
      '{"id":"two","exec":["echo","2"]}\n{"id":"three","exec":["sh","-c","exit 64"],"priority":5}\n',
    );
    expect(two.code).toBe(0);
    expect(fs.readdirSync(pool.inbox).sort()).toEqual(["one.json", "three.json", "two.json"]);
    expect(fs.existsSync(join(pool.state, "supervisor.json"))).toBe(false);

    const drained = await pool.run(["run", "--drain"]);
    expect(drained, drained.stderr).toMatchObject({ code: 1, stdout: "2 completed, 1 failed\n" });
    expect((await pool.result("one")).output).toBe("a  b");
    expect((await pool.result("two")).output).toBe("2\n");
    expect(await pool.error("three")).toMatchObject({ kind: "exit", exit_code: 64, attempts: 1 });
    expect(fs.readdirSync(pool.inbox)).toEqual([]);
    expect(fs.readdirSync(pool.processing)).toEqual([]);
    expect(pool.pids()).toEqual([]);
  });
});
