/** Work in progress has the right of way: landings start before new work, and also after the time of --until. A real pool, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { takeSome } from "../../support/take-some.ts";
import { untilAfter } from "../../support/time-limit.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";

takeSome();

const merged = (script: string, more: object = {}) =>
  inWorktree(script, { land: "merge", ...more });

test("with one slot each landing comes before the work that waited longer", async () => {
  const { pool } = newPlace();
  const ids = ["a", "b", "c", "d", "e", "f"];
  for (const [index, id] of ids.entries()) {
    // Each ends when the landing of the one before waits, so the next choice is between that landing and new work.
    const before = ids[index - 1];
    const wait = `until ls ${pool.mailbox}/*/${before}.land* 2>/dev/null; do sleep 0.05; done; `;
    const script = `${before === undefined ? "" : wait}echo ${id} > ${id}.txt`;
    pool.drop(id, merged(script, { priority: 9, sequence_number: index }));
  }
  await (await pool.start(["--workers", "1", "--drain"])).ended;
  const order = pool
    .events()
    .filter(({ event }) => event === "selected")
    .map(({ task_id: id }) => String(id));
  expect(order).toHaveLength(12);
  // The first landing may wait until the supervisor has listed what runs in its group.
  expect(order.indexOf("b.land"), order.join()).toBeLessThan(order.indexOf("d"));
  expect(order.indexOf("c.land"), order.join()).toBeLessThan(order.indexOf("e"));
  expect(order.indexOf("d.land"), order.join()).toBeLessThan(order.indexOf("f"));
});

test("after the time of --until completed work lands, and nothing new starts", async () => {
  const { pool, repo } = newPlace();
  const go = join(pool.dir, "go");
  pool.drop("a", merged(`until [ -e ${go} ]; do sleep 0.1; done; echo a > a.txt`));
  const run = await pool.start(["--workers", "1", "--until", untilAfter(3000)]);
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.includes("~w")), {
    what: "the start of a",
  });
  pool.drop("b", merged("echo b > b.txt"));
  await waitFor(() => run.stderr().includes("completed work still lands"), {
    timeoutMs: 60_000,
    what: "its time",
  });
  fs.writeFileSync(go, "");
  expect(await run.ended).toEqual({ exitCode: 0, signal: null });
  await pool.result("a.land");
  expect(repo.git("show", "mailchute/integration:a.txt")).toBe("a");
  expect(fs.readdirSync(pool.inbox)).toEqual(["b.json"]);
});

test("until_grace_ms bounds how long landings start after the time of --until", async () => {
  const { pool } = newPlace("until_grace_ms: 0\n");
  const go = join(pool.dir, "go");
  pool.drop("a", merged(`until [ -e ${go} ]; do sleep 0.1; done; echo a > a.txt`));
  const run = await pool.start(["--workers", "1", "--until", untilAfter(3000)]);
  await waitFor(() => run.stderr().includes("the time of --until has come"), {
    timeoutMs: 60_000,
    what: "its time",
  });
  expect(fs.readdirSync(pool.processing), "a runs by then").toHaveLength(1);
  fs.writeFileSync(go, "");
  await run.ended;
  await pool.result("a");
  expect(fs.readdirSync(pool.inbox)).toEqual(["a.land.json"]);
});
