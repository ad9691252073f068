/** A request for messages that neither brings some nor ends. */
import { afterEach, expect, it, vi } from "vitest";
import { Intake } from "../../../src/parts/cluster/nats/intake.ts";
import type { PullConsumer, StreamMsg } from "../../../src/parts/cluster/nats/packages.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** Messages that never come, until they are stopped. */
function silence(): AsyncIterable<StreamMsg> & { stop(): void } {
  let stop = (): void => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  return {
    stop,
    [Symbol.asyncIterator]: () => ({
      next: () => stopped.then(() => ({ done: true, value: undefined })),
    }),
  };
}

it("is given up, and another one is made with what the servers say of the consumer then", async () => {
  vi.useFakeTimers();
  let gets = 0;
  let fetches = 0;
  const fetch: PullConsumer["fetch"] = () => {
    fetches++;
    return Promise.resolve(silence());
  };
  const pull = { fetch } as PullConsumer;
  const consumers = {
    birth: () => Promise.resolve("now"),
    forgetBirth: () => {},
    get: () => {
      gets++;
      return Promise.resolve(pull);
    },
  };
  const intake = new Intake(consumers, (error) => expect.unreachable(String(error)));
  const consumer = { stream: "S", name: "c" } as Parameters<Intake["consume"]>[0];
  const consumed = intake.consume(
    consumer,
    1,
    () => 256,
    () => {},
  );
  await vi.advanceTimersByTimeAsync(9999);
  expect([gets, fetches]).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(10_002);
  expect([gets, fetches]).toEqual([3, 3]);
  intake.close();
  await vi.advanceTimersByTimeAsync(10_001);
  await consumed;
  expect(fetches).toBe(3);
});
