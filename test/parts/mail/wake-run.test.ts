/** What the run of a wake-up does first: without unread mail its agent is not started. */
import { expect, it } from "vitest";
import { TaskMessages } from "../../../src/agents/stream/task-messages.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { changeAgent, createAgent } from "../../../src/parts/mail/agents/agents.ts";
import { wakeIdOf } from "../../../src/parts/mail/delivery/wake-rules.ts";
import { wakes } from "../../../src/parts/mail/delivery/wake-runner.ts";
import { wakeTask } from "../../../src/parts/mail/delivery/wake-task.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { moveCursor, readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { tempDir } from "../../support/temp-dir.ts";

const TASK = wakeTask(
  { id: "wake.0.1.0", agent: "Ann", name: "ann", scope: OUTSIDE, hops: 0 },
  "/",
);

/** A wake-up of Ann for one message. `run` says how often her program was started. */
function newWake() {
  const dir = tempDir();
  const store = { dataDir: dir, isDurable: false };
  const post = (via: "cli" | "system" = "cli"): unknown =>
    send(store, { scope: OUTSIDE, from: "bob", via, to: ["ann"], text: "look" }, Date.now());
  post();
  const box = new TaskMessages(dir, TASK.id, false);
  const n = box.post("look", "mail 1");
  const tools = {
    settings: { ...DEFAULT_SETTINGS, data: ".", agents: [{ name: "Ann", kind: "claude" }] },
    tree: stateTree(dir),
  };
  const runner = wakes(tools as never);
  let starts = 0;
  const agent = { name: "Ann", run: async () => ({ kind: "completed", output: ++starts }) };
  const folder = new MailFolder(store, OUTSIDE);
  const run = async (task = TASK) =>
    await runner.run({} as never, {} as never, { agent, assignment: { task } } as never);
  const ack = (upto: number): void => moveCursor(folder, "ann", upto, { by: "ack", atMs: 0 });
  const offer = (): void =>
    box.noteOffer(n, { v: 1, uuid: "u", via: "packet", events: "runs/x", from: 0, at: 0 });
  return { ack, box, folder, n, offer, post, run, runner };
}

const NEEDLESS = {
  kind: "completed",
  output: null,
  verdict: "pass",
  verdictReason: "nothing was unread, so the agent was not started",
};

it("with unread mail the agent is started, and when all is read it is not", async () => {
  const { ack, post, run } = newWake();
  expect(await run()).toMatchObject({ output: 1 });
  ack(1);
  expect(await run()).toMatchObject(NEEDLESS);
  post("system");
  expect(await run()).toMatchObject({ output: 2 });
});

it("a program that was given its mail goes on, also when the mail counts as read", async () => {
  const { ack, box, n, offer, run } = newWake();
  offer();
  ack(1);
  expect(await run()).toMatchObject({ output: 1 });
  box.noteRead(n, "runs/x");
  expect(await run()).toMatchObject({ output: 2 });
});

it("what a person says to the task is a reason to start it", async () => {
  const { ack, box, run } = newWake();
  ack(1);
  expect(await run()).toMatchObject(NEEDLESS);
  box.post("stop that", "cli");
  expect(await run()).toMatchObject({ output: 1 });
});

it("a wake-up of an archived agent starts it no more, nor the one that has its name now", async () => {
  const { folder, run } = newWake();
  const id = wakeIdOf({ ...OUTSIDE, name: "ann" }, 1, readCursor(folder, "ann"));
  await createAgent(folder, { name: "ann", type: "claude" }, 0);
  expect(await run({ ...TASK, id })).toMatchObject({ output: 1 });
  await changeAgent(folder, "ann", { archived_at: 1 }, 0);
  const reason = "the agent was archived, so it was not started";
  expect(await run({ ...TASK, id })).toMatchObject({ ...NEEDLESS, verdictReason: reason });
  await createAgent(folder, { name: "ann", type: "claude" }, 0);
  expect(await run({ ...TASK, id })).toMatchObject({ verdictReason: reason });
});

it("other tasks are none of its business", () => {
  const { runner } = newWake();
  const fits = (task: object): boolean => runner.fits({ decoded: { task } } as never);
  expect(fits(TASK)).toBe(true);
  expect(fits({ ...TASK, type: undefined })).toBe(false);
  expect(fits({ ...TASK, id: "a" })).toBe(false);
  expect(runner.fits({ decoded: undefined } as never)).toBe(false);
});
