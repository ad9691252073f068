/** One order that throws holds up no other: it is told, tried again after a pause that grows, and the others go on. */
import { expect, it } from "vitest";
import { Apart, type ApartPorts } from "../../src/core/apart.ts";

type Orders = Pick<Apart, "each" | "eachNow">;
type Make = (ports: ApartPorts) => Orders;

const IDS = ["a", "bad", "c"];

/** What happens to three orders, one of which throws for the first ten minutes. */
async function play(
  make: Make,
): Promise<{ done: Record<string, number>; told: string[]; tries: number[] }> {
  let nowMs = 0;
  const told: string[] = [];
  const done: Record<string, number> = { a: 0, bad: 0, c: 0 };
  const tries: number[] = [];
  const orders = make({ what: "the order", nowMs: () => nowMs, tell: (key) => told.push(key) });
  const work = (id: string): void => {
    if (id === "bad") tries.push(nowMs);
    if (id === "bad" && nowMs < 600_000) throw new Error("ENOTDIR");
    done[id] = (done[id] ?? 0) + 1;
  };
  for (; nowMs < 700_000; nowMs += 300)
    await Promise.resolve(orders.each(IDS, (id) => id, work)).catch(() => {});
  return { done, told, tries };
}

/** Undefined when a loop does all that it should. */
async function faultOf(make: Make): Promise<string | undefined> {
  const { done, told, tries } = await play(make);
  if (done["a"] !== done["c"] || (done["c"] ?? 0) < 2000) return "the others are held up";
  if (told[0] !== "the order:bad" || told.length > 30) return "it is not told, or too often";
  if (done["bad"] === 0) return "it is not tried again";
  if (tries.length > 400) return "it is tried without a pause";
  return undefined;
}

it("goes on with the others, and comes back to the one that throws", async () => {
  expect(await faultOf((ports) => new Apart(ports))).toBeUndefined();
  const { tries } = await play((ports) => new Apart(ports));
  const pauses = tries.slice(1, 8).map((at, n) => Math.round((at - (tries[n] ?? 0)) / 1000));
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60]);
});

const loop =
  (onError: (key: string, error: unknown, ports: ApartPorts) => void): Make =>
  (ports) => ({
    async each(orders, keyOf, work) {
      for (const order of orders)
        try {
          await work(order);
        } catch (error) {
          onError(keyOf(order), error, ports);
        }
    },
    eachNow: () => {},
  });

it.each([
  [
    "ends at the first error",
    loop((_, error) => {
      throw error;
    }),
  ],
  ["is silent", loop(() => {})],
  ["has no pause", loop((key, _, { tell }) => tell(`the order:${key}`, ""))],
])("finds a loop that %s", async (_, make) => {
  expect(await faultOf(make)).toBeDefined();
});

it("counts an order as stuck only while it fails, and forgets one that is gone", async () => {
  let nowMs = 0;
  let isBad = true;
  const orders = new Apart({ what: "x", nowMs: () => nowMs, tell: () => {} });
  const work = (): void => {
    if (isBad) throw new Error("no");
  };
  for (; nowMs < 10_000; nowMs += 1000) orders.eachNow(["a"], (id) => id, work);
  expect(orders.isStuck("a")).toBe(true);
  isBad = false;
  nowMs += 60_000;
  orders.eachNow(["a"], (id) => id, work);
  expect(orders.isStuck("a")).toBe(false);
  isBad = true;
  for (const end = nowMs + 10_000; nowMs < end; nowMs += 1000)
    orders.eachNow(["b"], (id) => id, work);
  expect(orders.isStuck("b")).toBe(true);
  orders.eachNow([], (id: string) => id, work);
  expect(orders.isStuck("b")).toBe(false);
});
