/** A result that the servers do not take is kept with its job: the job is renewed, so that no other machine runs it again. */
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { Mailbox } from "../../../src/library/mailbox.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { encodeMessage } from "../../../src/parts/cluster/protocol/message-codec.ts";
import { stubBridge } from "./stub-bridge.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };
const JOB = { dispatch: DISPATCH, target: "gpu", task: { agent: "coder", prompt: "?" } };
const ID = dispatchId(DISPATCH);
const ACK_WAIT_MS = 3000;

afterEach(() => {
  vi.useRealTimers();
});

/** A machine with a run that has ended, and servers that take no results. */
async function started() {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const { bridge, machine, trays, broker, deliver } = stubBridge({ serves: ["gpu"] });
  const mailbox = Mailbox.open(trays.dir);
  await machine.submit(ID, JOB);
  machine.saveNote(ID, { dispatch: DISPATCH, target: "gpu", lease: "1 x", state: "taken" });
  await mailbox.complete(mailbox.claim());
  let answer: (error?: Error) => void = () => {};
  const publish = vi.fn(async (): Promise<void> => {
    await new Promise<void>((resolve, reject) => {
      answer = (error) => (error === undefined ? resolve() : reject(error));
    });
  });
  const renewed: string[] = [];
  const given: string[] = [];
  Object.assign(broker, {
    publishResult: publish,
    renew: async (lease: string) => void renewed.push(lease),
  });
  bridge.start();
  // It waits for its calls when it is stopped.
  onTestFinished(() => {
    publish.mockImplementation(async () => {});
    answer();
  });
  return {
    publish,
    machine,
    given,
    answer: (error?: Error) => answer(error),
    /** The leases that are renewed while that time passes. */
    pass: async (ms: number): Promise<string[]> => {
      renewed.length = 0;
      await vi.advanceTimersByTimeAsync(ms);
      return [...renewed];
    },
    deliver: (lease: string) => {
      const delivery = {
        done: async () => void given.push("done"),
        later: async () => void given.push("later"),
      };
      const message = { names: ["gpu", ID], bytes: encodeMessage(JOB), lease, turn: lease };
      deliver({ ...message, sinceMs: performance.now(), delivery });
    },
  };
}

test("its job is renewed while the servers do not answer, and while they refuse the result", async () => {
  const { pass, publish, answer } = await started();
  expect((await pass(ACK_WAIT_MS)).length).toBeGreaterThanOrEqual(5);
  expect(publish).toHaveBeenCalledTimes(1);
  answer(new Error("JetStream system temporarily unavailable"));
  expect((await pass(ACK_WAIT_MS)).length).toBeGreaterThanOrEqual(5);
  expect(publish).toHaveBeenCalledTimes(2);
});

test("its job is renewed no longer when the servers have taken the result", async () => {
  const { pass, publish, answer } = await started();
  await pass(ACK_WAIT_MS);
  answer();
  await pass(1);
  expect(await pass(3 * ACK_WAIT_MS)).toEqual([]);
  expect(publish).toHaveBeenCalledTimes(1);
});

test("a job that comes again is not given to another machine because the servers do not take its result", async () => {
  const { pass, answer, deliver, given } = await started();
  await pass(ACK_WAIT_MS);
  deliver("1 y");
  answer(new Error("JetStream system temporarily unavailable"));
  await pass(ACK_WAIT_MS);
  answer(new Error("JetStream system temporarily unavailable"));
  const renewed = await pass(ACK_WAIT_MS);
  expect(new Set(renewed)).toEqual(new Set(["1 y"]));
  expect(given).toEqual([]);
});
