/** Where answers go: pipes that are closed, full or do not wait, and disks without room. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { type Cli, newCli, put } from "./run-cli.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
/** More than any pipe holds. */
const EVENT_COUNT = 5000;
/** A character that no answer has in it. */
const FILLER = "\x01";

function cliWithEvents(): Cli {
  const cli = newCli();
  put(cli, "mailbox/inbox/a.json", { exec: ["true"] });
  const lines = Array.from({ length: EVENT_COUNT }, (_, n) =>
    JSON.stringify({ event: "completed", task_id: `t${n}`, t: n, source: "w" }),
  );
  put(cli, "analytics/supervisor_lifecycle.jsonl", `${lines.join("\n")}\n`);
  return cli;
}

/** Runs a line of the shell in which `"$@"` is `mailchute events --json`. */
function shell(
  cli: Cli,
  line: string,
  fd?: number,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(
    "bash",
    ["-c", line, "bash", process.execPath, LAUNCHER, "events", "--json"],
    {
      cwd: cli.dir,
      stdio: ["ignore", "pipe", "pipe", ...(fd === undefined ? [] : [fd])],
    },
  );
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stdout, stderr })));
}

test("a reader that has seen enough ends a command without a word", async () => {
  const { code, stdout, stderr } = await shell(
    cliWithEvents(),
    'set -o pipefail; "$@" | head -n 1',
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toHaveLength(2);
});

test("what was asked for is done, and the exit code is true, also when nobody reads the answer", async () => {
  const cli = newCli();
  const lines = Array.from({ length: 600 }, (_, n) => JSON.stringify({ id: `t${n}`, title: "x" }));
  fs.writeFileSync(join(cli.dir, "tasks.ndjson"), lines.join("\n"));
  put(cli, "config.yaml", "durability: process\n");
  for (const id of ["one", "two"])
    put(cli, `mailbox/failed/${id}_error.json`, { task_id: id, status: "failed", task: { id } });
  const unread = (words: string) =>
    spawnSync(
      "bash",
      ["-c", `set -o pipefail; "$@" ${words} | true`, "bash", process.execPath, LAUNCHER],
      { cwd: cli.dir, encoding: "utf8" },
    );
  expect(unread("wait one two").status).toBe(1);
  expect(unread("enqueue --file tasks.ndjson").status).toBe(0);
  expect(unread("retry one two").status).toBe(0);
  expect(unread("cancel t1 t2 t3").status).toBe(0);
  const inbox = (mailbox: string) => fs.readdirSync(join(cli.dir, "state", mailbox, "inbox"));
  expect(inbox("mailbox")).toHaveLength(602);
  expect(inbox("control")).toHaveLength(3);
});

test("a pipe that does not wait gets everything, in its order", async () => {
  const cli = cliWithEvents();
  const fifo = join(cli.dir, "fifo");
  execFileSync("mkfifo", [fifo]);
  const fd = fs.openSync(fifo, fs.constants.O_RDWR | fs.constants.O_NONBLOCK);
  let isOver = false;
  const ended = shell(cli, '"$@" >&3', fd).finally(() => {
    isOver = true;
  });
  let text = "";
  const buffer = Buffer.alloc(4096);
  const read = () =>
    unlessItMustWait(() => {
      text += buffer.toString("latin1", 0, fs.readSync(fd, buffer));
    });
  // Kept full, with what is taken out again below, so that the command's writes find no room.
  const fill = () => unlessItMustWait(() => void fs.writeSync(fd, FILLER));
  while (!isOver) {
    if (!fill()) read();
    await new Promise((resolve) => setImmediate(resolve));
  }
  while (read());
  fs.closeSync(fd);
  expect(await ended).toEqual({ code: 0, stdout: "", stderr: "" });
  const lines = text.replaceAll(FILLER, "").trimEnd().split("\n");
  const ids = lines.map((line) => (JSON.parse(line) as { task_id: string }).task_id);
  expect(ids).toEqual(Array.from({ length: EVENT_COUNT }, (_, n) => `t${n}`));
});

/** @returns false when the pipe is full, or empty */
function unlessItMustWait(move: () => void): boolean {
  try {
    move();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return false;
    throw error;
  }
}

test("a disk without room is told, with exit code 74", async () => {
  const { code, stderr } = await shell(cliWithEvents(), '"$@" > /dev/full');
  expect(code).toBe(74);
  expect(stderr).toMatch(/^mailchute: ErrIo: cannot write the answer: .*ENOSPC/);
});
