/** Agents that would talk for ever are slowed down, held and told of; a person's word passes. Through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { selfTimes } from "../../../src/parts/mail/delivery/wake-rules.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { noteWake, readWakes, type WakeRecord } from "../../../src/parts/mail/store/wake-log.ts";
import { newBench } from "../../agents/runs/bench.ts";
import { newMovedClock } from "../../support/moved-clock.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { IS_WHOLE } from "../../support/walks.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;

/** Agents that each say this in every run. Mail that is read in the middle of one is answered by none. */
function newTalkers(words: Record<string, string>) {
  const clock = newMovedClock(8);
  const agents = Object.entries(words).map(([name, said]) => ({
    name,
    kind: "claude" as const,
    turns: [[{ run: `${CLI} say --when idle ${JSON.stringify(said)}` }, { say: "ok" }]],
  }));
  const { pool } = newBench(agents, { clock });
  fs.appendFileSync(join(pool.state, "config.yaml"), "mail_enabled: true\ndata: .\n");
  const store = { dataDir: pool.state, isDurable: false };
  const folder = new MailFolder(store, OUTSIDE);
  const say = (to: string): unknown =>
    send(store, { scope: OUTSIDE, from: "human", via: "cli", to: [to], text: "go" }, clock.nowMs());
  /** So many wake-ups have led to it. */
  const answerOfBob = (hops: number): unknown => {
    const draft = { scope: OUTSIDE, from: "bob", via: "run", to: ["ann"] } as const;
    return send(store, { ...draft, text: "pong @ann", hops }, clock.nowMs());
  };
  const said = () => [...new MessageReader(folder).next()].filter(({ via }) => via === "run");
  const why = async (name: string): Promise<string> =>
    (await pool.run(["agents", "why", name, "--scope", "unknown:main"])).stdout;
  return { clock, pool, say, answerOfBob, said, why, folder };
}

it("two agents that mention each other for ever are slowed down from 6 hops on, and held at 12", async () => {
  const talkers = newTalkers({ ann: "ping @bob", bob: "pong @ann" });
  const { clock, pool, say, answerOfBob, said, why } = talkers;
  const hopsSaid = (): number[] => said().map(({ hops }) => hops);
  await pool.start();
  if (IS_WHOLE) say("ann");
  else answerOfBob(4);
  await waitFor(() => hopsSaid().at(-1) === 6, { what: "six hops", timeoutMs: 90_000 });
  expect(hopsSaid()).toEqual(IS_WHOLE ? [1, 2, 3, 4, 5, 6] : [4, 5, 6]);
  expect(said().at(-2)?.cause).toEqual([said().at(-3)?.id]);
  expect(await why("ann")).toContain("6 wake-ups led to it, and no person spoke");
  for (let hops = 7; hops <= 12; hops++) {
    expect(hopsSaid().at(-1)).toBe(hops - 1);
    clock.skip(26 * 60_000);
    await waitFor(() => hopsSaid().at(-1) === hops, { what: `hop ${hops}`, timeoutMs: 60_000 });
  }
  clock.skip(26 * 60_000);
  await waitFor(() => pool.alerts().some(({ alert }) => alert === "mail_held"), {
    what: "the alert",
  });
  expect(await why("ann")).toContain("held: 12 wake-ups led to it");
  // A person's word passes, and the chain begins anew.
  say("ann");
  await waitFor(() => hopsSaid().at(-1) === 1, { what: "the answer", timeoutMs: 60_000 });
  expect(said().at(-1)).toMatchObject({ from_agent: "ann", hops: 1 });
});

it("an agent that mentions itself gets its own words three times within an hour", async () => {
  const { clock, pool, say, said, why, folder } = newTalkers({ ann: "more, @ann" });
  await pool.start();
  say("ann");
  await waitFor(() => said().length === 4, { what: "three times", timeoutMs: 90_000 });
  await waitFor(async () => (await why("ann")).includes("3 times within an hour"), {
    what: "the wait",
  });
  expect(selfTimes(readWakes(folder, "ann"))).toHaveLength(3);
  clock.skip(61 * 60_000);
  await waitFor(() => said().length === 5, { what: "the next hour", timeoutMs: 60_000 });
});

it("the log of wake-ups survives a torn line, and stays small", () => {
  const folder = new MailFolder({ dataDir: tempDir(), isDurable: false }, OUTSIDE);
  const record = (at: number): WakeRecord => ({
    v: 1,
    at,
    task: `wake.${at}`,
    is_wake: true,
    hops: 0,
    is_self: false,
    ids: ["m".repeat(100)],
    from: ["app:main:ann"],
  });
  noteWake(folder, "june", record(1));
  const path = folder.path("wakes", "june.jsonl");
  fs.appendFileSync(path, '{"v":1,"at":2,"ta');
  for (let at = 3; at < 3000; at++) noteWake(folder, "june", record(at));
  const kept = readWakes(folder, "june");
  expect(kept.at(-1)).toEqual(record(2999));
  expect(kept.length).toBeGreaterThanOrEqual(200);
  expect(fs.statSync(path).size).toBeLessThan(300 * 1024);
});
