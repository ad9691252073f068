/** Parts of the logs of runs that a machine has for others: bounded, by their place, and only for the tree that has the task. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { formatName, runOf } from "../../../src/core/names.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { ownerSequence } from "../../../src/host/identity.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { LogCopy } from "../../../src/parts/cluster/log-copy.ts";
import {
  BadMessage,
  decodeLogAsk,
  decodeLogPart,
  encodeMessage,
} from "../../../src/parts/cluster/protocol/message-codec.ts";
import {
  LOG_BYTES_MAX,
  type LogAsk,
  type LogPart,
} from "../../../src/parts/cluster/protocol/messages.ts";
import { LocalLogs } from "../../../src/parts/cluster/tree/local-logs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const TREE = "laptop.abcd2345";
const dispatch = { tree: TREE, task: "t", submission: "s", attempt: 1 };
const ID = `${TREE}.t.s.1`;
const ask: LogAsk = { request: "1", dispatch, file: "stdout.log", from: 0 };

/** A tree in which the task runs, and the folder of its run. */
function newTree() {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  const token = ownerSequence()();
  const name = { id: ID, submission: "z", attempt: 1, stage: "w", token } as const;
  const claim = join(trays.processing, formatName(name));
  fs.writeFileSync(claim, "{}");
  const dir = join(tree.runs, runOf(name));
  fs.mkdirSync(dir, { recursive: true });
  return { tree, trays, claim, dir };
}

const textOf = ({ data }: LogPart): string => Buffer.from(data, "base64").toString();

test("each part says where it is, and whether more will come", async () => {
  const { tree, trays, claim, dir } = newTree();
  const logs = (): LocalLogs => new LocalLogs(tree);
  const empty = await logs().part(ask);
  expect(empty).toMatchObject({ request: "1", is_found: true, has_ended: false });
  expect(empty).toMatchObject({ size: 0, from: 0, data: "" });
  const log = join(dir, "stdout.log");
  fs.writeFileSync(log, `${"x".repeat(LOG_BYTES_MAX)}end`);
  const size = LOG_BYTES_MAX + 3;
  const first = await logs().part(ask);
  expect(first).toMatchObject({ from: 0, size });
  expect(textOf(first)).toHaveLength(LOG_BYTES_MAX);
  expect(decodeLogPart(encodeMessage(first))).toEqual(first);
  const places: [number, number, string][] = [
    [LOG_BYTES_MAX, LOG_BYTES_MAX, "end"],
    [-3, LOG_BYTES_MAX, "end"],
    [size, size, ""],
    [size + 100, size, ""],
  ];
  for (const [wanted, from, text] of places) {
    const part = await logs().part({ ...ask, from: wanted });
    expect(part).toMatchObject({ from, size, has_ended: false });
    expect(textOf(part)).toBe(text);
  }
  expect((await logs().part({ ...ask, from: -10 * size })).from).toBe(0);
  fs.rmSync(claim);
  const record = { task_id: ID, status: "completed", run: runOf0(dir) };
  fs.writeFileSync(join(trays.outbox, `${ID}_result.json`), JSON.stringify(record));
  expect(await logs().part(ask)).toMatchObject({ is_found: true, has_ended: true });
  fs.rmSync(dir, { recursive: true });
  expect(await logs().part(ask)).toMatchObject({ is_found: false, has_ended: true, size: 0 });
});

const runOf0 = (dir: string): string => dir.split("/runs/")[1] ?? "";

test("a copy has what the run has written so far, and grows with it", async () => {
  const { tree, dir } = newTree();
  const logs = new LocalLogs(tree);
  const copyOf = (isStderr: boolean): LogCopy => {
    const ask = (one: LogAsk): Promise<LogPart> =>
      logs
        .part(decodeLogAsk(encodeMessage(one), TREE))
        .then(encodeMessage)
        .then(decodeLogPart);
    const copy = new LogCopy({ dispatch, isStderr, ask, note: (text) => expect.fail(text) });
    onTestFinished(() => copy.remove());
    return copy;
  };
  const [out, err] = [copyOf(false), copyOf(true)];
  const write = (file: string, text: string): void => fs.appendFileSync(join(dir, file), text);
  const expectSame = (copy: LogCopy, file: string): void =>
    expect(fs.readFileSync(join(copy.dir, file), "utf8")).toBe(
      fs.readFileSync(join(dir, file), "utf8"),
    );
  write("stderr.log", "wrong\n");
  expect(await err.pull()).toBe("is on");
  expectSame(err, "stderr.log");
  expect(await out.pull()).toBe("is on");
  expect(fs.readdirSync(out.dir)).toEqual([]);
  write("session.json", JSON.stringify({ v: 1, kind: "claude" }));
  for (const round of [1, 2]) {
    write("events.jsonl", `${String(round).repeat(LOG_BYTES_MAX + 1)}\n`);
    write("events.times", `${round}\n`);
    expect(await out.pull()).toBe("is on");
    for (const file of ["session.json", "events.jsonl", "events.times"]) expectSame(out, file);
  }
  out.remove();
  expect(fs.existsSync(out.dir)).toBe(false);
});

test("what is no log is not read", async () => {
  const { tree, dir } = newTree();
  fs.writeFileSync(join(tree.dir, "secret"), "secret");
  fs.symlinkSync(join(tree.dir, "secret"), join(dir, "stdout.log"));
  await expect(new LocalLogs(tree).part(ask)).rejects.toThrow();
});

test.each<[string, object]>([
  ["a file that is none of them", { file: "../../config.yaml" }],
  ["a task of another tree", { dispatch: { ...dispatch, tree: "desk.abcd2345" } }],
  ["an id that is none", { dispatch: { ...dispatch, task: "../x" } }],
  ["a place that is none", { from: 0.5 }],
])("a question for %s is refused", (_, more) => {
  const bytes = encodeMessage({ ...ask, ...more });
  expect(() => decodeLogAsk(bytes, TREE)).toThrow(BadMessage);
  expect(decodeLogAsk(encodeMessage(ask), TREE)).toEqual(ask);
});
