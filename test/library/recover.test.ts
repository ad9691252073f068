/** A program with the library takes back what a pool's worker held: a run that was never begun is not used up. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { formatName, headOf, leaseOf, type ProcessingName, runOf } from "../../src/core/names.ts";
import { runnerSequence, thisPlace, thisProcess } from "../../src/host/identity.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { Mailbox, openTrays, type StateTree, stateTree } from "../../src/index.ts";
import { Telemetry } from "../../src/journal/telemetry.ts";
import { tempDir } from "../support/temp-dir.ts";

/** A worker of this machine that is dead: our pid, another start. */
const DEAD = { ...thisProcess(), startTicks: 1 };

interface Death {
  tree: StateTree;
  mailbox: Mailbox;
  name: ProcessingName;
}

/** A worker died with the claim of a task that has one run. @param has what it left beside that */
function deathOf(task: object, has: { line?: boolean; dir?: boolean } = {}, place = DEAD): Death {
  const tree = stateTree(join(tempDir(), "state"));
  openTrays(tree.control);
  const mailbox = Mailbox.open(tree.mailbox, { durability: "process" });
  const token = runnerSequence(place)(false);
  const name: ProcessingName = { id: "a", submission: "s1", attempt: 1, stage: "w", token };
  const { events, leases } = tree;
  const telemetry = new Telemetry({ events, leases }, "w", 1000, systemClock);
  const subject = { task_id: "a", agent_id: "x", attempt: 1, lease: headOf(name) };
  telemetry.event("selected", subject);
  if (has.line === true) telemetry.event("started", { ...subject, lease: leaseOf(name) });
  telemetry.close();
  if (has.dir === true) fs.mkdirSync(join(tree.runs, runOf(name)), { recursive: true });
  const text = JSON.stringify({ ...task, max_attempts: 1 });
  fs.writeFileSync(join(tree.mailbox, "processing", formatName(name)), text);
  return { tree, mailbox, name };
}

const program = { exec: ["true"] };
const handled = { title: "t" };

it.each([
  ["a function", handled, {}],
  ["a program that its worker had told of", program, { line: true }],
])("%s that was not begun runs under the same number", async (_what, task, has) => {
  const { mailbox } = deathOf(task, has);
  expect(await mailbox.recover()).toMatchObject([
    { action: "reclaimed", hasBegun: false, next: { attempt: 1, stage: "ready" } },
  ]);
  expect(mailbox.claim()).toMatchObject({ attempt: 1 });
});

it.each([
  ["a function that was called", handled, { line: true }],
  ["a function whose start only its directory tells", handled, { dir: true }],
  ["a program that has its directory", program, { dir: true }],
])("%s has used up its run", async (_what, task, has) => {
  const { mailbox } = deathOf(task, has);
  expect(await mailbox.recover()).toMatchObject([{ action: "failed" }]);
});

it("a function has used up its run where the journals cannot tell: they are gone, or the machine was off", async () => {
  const gone = deathOf(handled);
  fs.rmSync(gone.tree.events);
  expect(await gone.mailbox.recover()).toMatchObject([{ action: "failed" }]);
  const boot = thisPlace().slice(4, 8) === "0000" ? "1111" : "0000";
  const place = thisPlace().slice(0, 4) + boot + thisPlace().slice(8);
  const earlier = deathOf(handled, {}, { ...DEAD, place });
  expect(await earlier.mailbox.recover()).toMatchObject([{ action: "failed" }]);
});
