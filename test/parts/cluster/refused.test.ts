/** What the servers do not take is sent again within seconds, however long they have refused it; it neither floods them nor holds up the rest. */
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { Mailbox } from "../../../src/library/mailbox.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { stubBridge } from "./stub-bridge.ts";

const MINUTE_MS = 60_000;
/** Within this time all is sent when the servers are back (ms). */
const SOON_MS = 5000;
const UNAVAILABLE = new Error("JetStream system temporarily unavailable");

afterEach(() => {
  vi.useRealTimers();
});

function started() {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const stub = stubBridge({ serves: ["gpu"] });
  const { machine, trays } = stub;
  const mailbox = Mailbox.open(trays.dir);
  return {
    ...stub,
    /** A task of another tree ends here. @returns its id */
    end: async (task: string): Promise<string> => {
      const dispatch = { tree: "desk.abcd2345", task, submission: "s", attempt: 1 };
      const id = dispatchId(dispatch);
      await machine.submit(id, { dispatch, target: "gpu", task: { agent: "coder", prompt: "?" } });
      machine.saveNote(id, { dispatch, target: "gpu", lease: "1 x", state: "taken" });
      await mailbox.complete(mailbox.claim());
      return id;
    },
    pass: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  };
}

test("a result is told within seconds after servers that have refused it once a second", async () => {
  const { bridge, broker, results, end, pass } = started();
  const id = await end("t");
  const refused = vi.spyOn(broker, "publishResult").mockRejectedValue(UNAVAILABLE);
  bridge.start();
  await pass(2 * MINUTE_MS);
  expect(refused.mock.calls.length).toBeGreaterThan(90);
  expect(refused.mock.calls.length).toBeLessThan(130);
  refused.mockRestore();
  await pass(SOON_MS);
  expect(results).toEqual([id]);
});

test("a job is sent within seconds after servers that were asked for it once a second", async () => {
  const { bridge, broker, published, hold, pass } = started();
  const refused = vi.spyOn(broker, "hasJob").mockRejectedValue(UNAVAILABLE);
  const first = vi.spyOn(broker, "publishJob").mockRejectedValueOnce(UNAVAILABLE);
  hold("t");
  bridge.start();
  await pass(2 * MINUTE_MS);
  expect(first).not.toHaveBeenCalledTimes(2);
  expect(refused.mock.calls.length).toBeGreaterThan(90);
  expect(refused.mock.calls.length).toBeLessThan(130);
  refused.mockResolvedValue(false);
  await pass(SOON_MS);
  expect(published).toHaveLength(1);
});

test("a result is told while the servers do not say which jobs of this tree they have", async () => {
  const { bridge, broker, results, end, pass } = started();
  let answer = (): void => {};
  vi.spyOn(broker, "jobs").mockImplementation(
    () =>
      new Promise((resolve) => {
        answer = () => resolve([]);
      }),
  );
  const id = await end("t");
  bridge.start();
  await pass(SOON_MS);
  answer();
  expect(results).toEqual([id]);
});

test("a result is told while the servers do not answer for another one", async () => {
  const { bridge, broker, results, end, pass } = started();
  let answer = (): void => {};
  const publish = vi.spyOn(broker, "publishResult").mockImplementationOnce(
    () =>
      new Promise((resolve) => {
        answer = () => resolve(undefined);
      }),
  );
  // The bridge waits for its calls when it is stopped.
  onTestFinished(() => answer());
  await end("first");
  bridge.start();
  await pass(1000);
  expect(publish).toHaveBeenCalledTimes(1);
  const second = await end("second");
  await pass(SOON_MS);
  expect(results).toEqual([second]);
});
