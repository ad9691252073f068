/** A run that has left work in a repository of its machine has ended when that work has landed. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Mailbox } from "../../../src/library/mailbox.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { decodeResult, encodeMessage } from "../../../src/parts/cluster/protocol/message-codec.ts";
import { LocalRuns } from "../../../src/parts/cluster/tree/local-runs.ts";
import { type LandingOrder, writeLanding } from "../../../src/worker/landing-files.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { stubBridge } from "./stub-bridge.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };
const JOB = { dispatch: DISPATCH, target: "gpu", task: { agent: "coder", prompt: "?" } };
const ID = dispatchId(DISPATCH);
const WORK = {
  branch: `mailchute/${ID}`,
  base: "0".repeat(40),
  target: "main",
  diffstat: { files: 1, insertions: 2, deletions: 3 },
};

/** @param landing what the record says of its work */
async function settled(landing: string) {
  const { machine, trays, tree } = stubBridge();
  const mailbox = Mailbox.open(trays.dir);
  await machine.submit(ID, JOB);
  machine.saveNote(ID, { dispatch: DISPATCH, target: "gpu", lease: "1 x", state: "taken" });
  const held = mailbox.claim();
  await mailbox.complete(held, { output: "text" });
  const path = join(trays.outbox, `${ID}_result.json`);
  const record = JSON.parse(fs.readFileSync(path, "utf8"));
  fs.writeFileSync(path, JSON.stringify({ ...record, landing, ...WORK }));
  const { lease } = held;
  const order = { v: 1, task_id: ID, lease, land: "exec", ...WORK } as LandingOrder;
  return { machine, mailbox, tree, lease, order };
}

test("it has not ended while its work lands, and is not cancelled then", async () => {
  const { machine, mailbox, tree, lease, order } = await settled("pending");
  writeLanding(tree.dir, ID, "order", order);
  expect(machine.placeOf(ID)).toBe("unsettled");
  writeLanding(tree.dir, ID, "sent", { v: 1, lease });
  await mailbox.enqueue({ id: `${ID}.land`, prompt: "?" });
  expect(machine.placeOf(ID)).toBe("unsettled");
  await machine.cancel(ID);
  expect(fs.readdirSync(join(tree.control, "inbox"))).toEqual([]);
  await mailbox.complete(mailbox.claim());
  machine.listAnew();
  expect(machine.placeOf(ID)).toBe("settled");
  const end = machine.endOf(ID);
  expect(end).toMatchObject({ status: "completed", work: { landing: "landed", ...WORK } });
  const result = { dispatch: DISPATCH, target: "gpu", machine: "laptop", end: end ?? never() };
  expect(decodeResult(encodeMessage(result), ID, result)).toEqual(result);
});

test("it has not ended while it cannot be known whether it has a landing, and all else is told", async () => {
  const { machine, tree, order } = await settled("pending");
  writeLanding(tree.dir, ID, "order", order);
  const lines = { lastLineOf: () => null, keepOnly: () => {} };
  const runs = new LocalRuns({ tree, prices: {}, lines });
  expect([...runs.news(new Set([ID])).keys()]).toEqual([ID]);
  const landings = join(tree.dir, "landings");
  fs.renameSync(landings, `${landings}.away`);
  fs.writeFileSync(landings, "a file in its place");
  expect(machine.placeOf(ID)).toBe("unsettled");
  expect(() => machine.endOf(ID)).toThrow("ENOTDIR");
  expect(runs.news(new Set([ID]))).toEqual(new Map());
  fs.rmSync(landings);
  fs.renameSync(`${landings}.away`, landings);
  expect(machine.placeOf(ID)).toBe("unsettled");
  expect(machine.endOf(ID)).toBeDefined();
});

test("it has failed when its work did not land", async () => {
  const { machine, mailbox, tree, lease, order } = await settled("pending");
  writeLanding(tree.dir, ID, "order", order);
  writeLanding(tree.dir, ID, "sent", { v: 1, lease });
  await mailbox.enqueue({ id: `${ID}.land`, prompt: "?" });
  await mailbox.fail(mailbox.claim(), "rejected", { kind: "landing", canRetry: false });
  machine.listAnew();
  expect(machine.placeOf(ID)).toBe("settled");
  expect(machine.endOf(ID)).toMatchObject({
    status: "failed",
    kind: "landing",
    error: `its work did not land: rejected (${ID}.land)`,
    output: "text",
  });
});

test("a run is cancelled although a file of its name was refused before", async () => {
  const { machine, trays, tree } = stubBridge();
  await machine.submit(ID, JOB);
  machine.saveNote(ID, { dispatch: DISPATCH, target: "gpu", lease: "1 x", state: "left" });
  fs.writeFileSync(join(trays.failed, `${ID}_error.json`), JSON.stringify({ status: "failed" }));
  await machine.cancel(ID);
  expect(fs.readdirSync(join(tree.control, "inbox"))).toHaveLength(1);
});

test.each(["branch", "nothing"])("with landing: %s it ends with its run", async (landing) => {
  const { machine, tree, order } = await settled(landing);
  if (landing === "branch") writeLanding(tree.dir, ID, "order", { ...order, land: "branch" });
  expect(machine.placeOf(ID)).toBe("settled");
  expect(machine.endOf(ID)).toMatchObject({ status: "completed", work: { landing, ...WORK } });
});

test.each([
  ["landed", /landed at box1/, /^t.*has completed$/m],
  ["branch", /it stays on its branch at box1/, /its work stays on its branch at box1/],
])("at home, work with landing: %s is told as that of its machine", async (landing, shown, why) => {
  const pool = newPool({ config: QUICK_CONFIG });
  const lease = "s.1.box1";
  const record = { task_id: "t", status: "completed", verdict: "pass", lease, attempts: 1 };
  const more = { landing, ...WORK, machine: "box1", task: { id: "t", prompt: "?" } };
  fs.writeFileSync(join(pool.outbox, "t_result.json"), JSON.stringify({ ...record, ...more }));
  expect((await pool.run(["show", "t"])).stdout).toMatch(shown);
  expect((await pool.run(["why", "t"])).stdout).toMatch(why);
});

function never(): never {
  throw new Error("it has ended");
}
