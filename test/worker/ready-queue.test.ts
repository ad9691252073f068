/** In which order a worker takes what it is offered and what it finds. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openTrays } from "../../src/mailbox/files/trays.ts";
import { ReadyQueue } from "../../src/worker/ready-queue.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const fileOf = (id: string): string => `${id}@s.1~ready.json`;

function newQueue() {
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  let wakes = 0;
  const queue = new ReadyQueue(trays, 1000, () => wakes++);
  onTestFinished(() => queue.close());
  const put = (...ids: string[]): void => {
    for (const id of ids) {
      const path = join(trays.processing, fileOf(id));
      fs.writeFileSync(path, "{}");
      // A time in the future would be a backoff, and this clock may be some microseconds ahead.
      fs.utimesSync(path, 1, 1);
    }
  };
  const offer = (...ids: string[]): void => {
    for (const id of ids) queue.add(fileOf(id), true);
  };
  const order = (): string[] => {
    const taken: string[] = [];
    for (let next = queue.first; next !== undefined; next = queue.first) {
      taken.push(next.file.split("@")[0] ?? "");
      queue.drop();
    }
    return taken;
  };
  return { queue, put, offer, order, wakes: () => wakes };
}

it("what is offered comes first, in the order of the offers, also when it was found before", () => {
  const { queue, put, offer, order } = newQueue();
  put("a", "b", "c");
  queue.lookAround();
  offer("z", "c", "y");
  offer("b", "z");
  expect(order()).toEqual(["z", "c", "y", "b", "a"]);
  offer("a");
  expect(order()).toEqual(["a"]);
});

it("with a supervisor a file is found when two looks have seen it, since its offer may be on its way", () => {
  const { queue, put, offer, order } = newQueue();
  put("b", "a");
  queue.lookAround(true);
  expect(queue.size).toBe(0);
  offer("b", "a");
  put("lost");
  queue.lookAround(true);
  expect(order()).toEqual(["b", "a"]);
  queue.lookAround(true);
  expect(order().sort()).toEqual(["a", "b", "lost"]);
});

it("with a supervisor and nothing at hand it looks again soon", async () => {
  const { queue, put, order, wakes } = newQueue();
  put("lost");
  queue.lookAround(true);
  await waitFor(() => wakes() > 0, { what: "the second look" });
  expect(order()).toEqual(["lost"]);
});

it("without a supervisor a file is found at once", () => {
  const { queue, put, order } = newQueue();
  put("a");
  queue.lookAround();
  expect(order()).toEqual(["a"]);
});
