/** A machine that stood still for longer than `ack_wait` does not believe that its jobs are still its own. */
import { describe, expect, test } from "vitest";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { Machine } from "../../../src/parts/cluster/protocol/machine.ts";
import type { MachineTree, Note } from "../../../src/parts/cluster/protocol/ports.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };
const JOB = { dispatch: DISPATCH, target: "gpu", task: { agent: "coder", prompt: "?" } };
const ID = dispatchId(DISPATCH);
const ACK_WAIT_MS = 30_000;

function newMachine() {
  let nowMs = 0;
  let note: Note | undefined;
  let hasTask = false;
  const stops: string[] = [];
  const returned: string[] = [];
  const renewal = { takesMs: 1, isAnswered: true };
  const unused = async (): Promise<never> => expect.unreachable("not in these tests");
  const tree: MachineTree = {
    note: () => note,
    saveNote: (_, next) => {
      note = next;
    },
    removeNote: () => {
      note = undefined;
    },
    placeOf: () => (hasTask ? "unsettled" : "none"),
    whyRefused: () => undefined,
    submit: async () => {
      hasTask = true;
    },
    endOf: () => undefined,
    cancel: async (id) => void stops.push(id),
    runAgain: unused,
  };
  const broker = {
    publishResult: unused,
    finishJob: unused,
    renew: async () => {
      nowMs += renewal.takesMs;
      if (!renewal.isAnswered) throw new Error("no answer");
    },
  };
  const delivery = { done: unused, later: async () => void returned.push("later") };
  const machine = new Machine({
    name: "box",
    tree,
    broker,
    nowMs: () => nowMs,
    ackWaitMs: ACK_WAIT_MS,
  });
  return {
    renewal,
    stops,
    returned,
    state: () => note?.state,
    pass: (ms: number) => {
      nowMs += ms;
    },
    take: (sinceMs?: number) => machine.onJob(JOB, "1 x", delivery, sinceMs),
    renew: () => machine.renew(ID),
  };
}

describe("a run", () => {
  test("goes on when its job was renewed in time", async () => {
    const { take, pass, renew, stops, state } = newMachine();
    await take();
    for (let n = 0; n < 5; n++) {
      pass(0.9 * ACK_WAIT_MS);
      await renew();
    }
    expect([state(), stops]).toEqual(["taken", []]);
  });

  test("is stopped when the servers may have given its job away before they answered", async () => {
    const { take, pass, renew, stops, state } = newMachine();
    await take();
    pass(ACK_WAIT_MS);
    await renew();
    expect([state(), stops]).toEqual(["left", [ID]]);
  });

  test("is stopped when the answer itself came too late", async () => {
    const { take, pass, renew, renewal, stops } = newMachine();
    await take();
    pass(0.5 * ACK_WAIT_MS);
    renewal.takesMs = 0.5 * ACK_WAIT_MS;
    await renew();
    expect(stops).toEqual([ID]);
  });

  test("counts from when its last renewal was asked for, not from when it was answered", async () => {
    const { take, pass, renew, renewal, stops } = newMachine();
    await take();
    renewal.takesMs = 0.2 * ACK_WAIT_MS;
    await renew();
    renewal.isAnswered = false;
    renewal.takesMs = 0;
    pass(0.39 * ACK_WAIT_MS);
    await renew();
    expect(stops).toEqual([]);
    pass(0.02 * ACK_WAIT_MS);
    await renew();
    expect(stops).toEqual([ID]);
  });
});

describe("a job that lay here unread", () => {
  test("counts from when it was asked for, when that is not long ago", async () => {
    const { take, pass, renew, renewal, stops } = newMachine();
    renewal.isAnswered = false;
    pass(0.2 * ACK_WAIT_MS);
    await take(0);
    pass(0.4 * ACK_WAIT_MS);
    await renew();
    expect(stops).toEqual([ID]);
  });

  test("is renewed before it is begun, and counts from then", async () => {
    const { take, pass, renew, renewal, stops, state } = newMachine();
    pass(0.9 * ACK_WAIT_MS);
    await take(0);
    renewal.isAnswered = false;
    pass(0.5 * ACK_WAIT_MS);
    await renew();
    expect([state(), stops]).toEqual(["taken", []]);
    pass(0.1 * ACK_WAIT_MS);
    await renew();
    expect([state(), stops]).toEqual(["left", [ID]]);
  });

  test("is neither begun nor given back when it is not renewed, or too late", async () => {
    const { take, pass, renewal, returned, state } = newMachine();
    pass(0.9 * ACK_WAIT_MS);
    renewal.isAnswered = false;
    await take(0);
    renewal.isAnswered = true;
    renewal.takesMs = 0.1 * ACK_WAIT_MS;
    await take(0);
    expect([state(), returned]).toEqual([undefined, []]);
  });

  test("is neither begun nor given back when another machine may have it", async () => {
    const { take, pass, returned, state } = newMachine();
    pass(ACK_WAIT_MS);
    await take(0);
    expect([state(), returned]).toEqual([undefined, []]);
  });
});
