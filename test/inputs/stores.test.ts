/**
 * What stands in the place of a document that only mailchute writes: its reader waits for nothing, throws nothing, says what it says of a
 * missing one, and leaves in its place what is there.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { GateFile } from "../../src/agents/accounts/gate-file.ts";
import { openGate } from "../../src/agents/accounts/gate-rules.ts";
import { attachedIn } from "../../src/agents/attached.ts";
import { BreakerFile, pausedAgents } from "../../src/agents/breaker/breaker-file.ts";
import { planOf } from "../../src/agents/budget/plan-of.ts";
import { RunningCosts } from "../../src/agents/budget/running-costs.ts";
import { SpentSums } from "../../src/agents/budget/spent-sums.ts";
import { readContinued } from "../../src/agents/stream/continued.ts";
import { newSession, SessionFile, sessionOfRun } from "../../src/agents/stream/session-file.ts";
import { TaskMessages } from "../../src/agents/stream/task-messages.ts";
import { workerOf } from "../../src/core/saved-documents.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { readDocument } from "../../src/host/documents.ts";
import { checkFormat } from "../../src/mailbox/files/tree-format.ts";
import { readBridge } from "../../src/parts/cluster/tree/bridge-document.ts";
import { listAgents } from "../../src/parts/mail/agents/agents.ts";
import { listTasks } from "../../src/parts/mail/agents/tasks.ts";
import { readOffer } from "../../src/parts/mail/delivery/offers.ts";
import { runNotes } from "../../src/parts/mail/exits/run-notes.ts";
import { askedIn } from "../../src/parts/mail/requests/asked.ts";
import { readClaim } from "../../src/parts/mail/store/claims.ts";
import { readCursor } from "../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../src/parts/mail/store/mail-folder.ts";
import { notifyStates, STATE } from "../../src/parts/notify/notify-state.ts";
import { PendingEdits } from "../../src/parts/plan/engine/pending-edits.ts";
import { readResets } from "../../src/parts/plan/resets.ts";
import { readControl, readLog } from "../../src/parts/schedules/schedule-files.ts";
import { readMade } from "../../src/parts/worktrees/made-note.ts";
import { readBatchProgress } from "../../src/view/batches.ts";
import { readRemoteRuns } from "../../src/view/remote-runs.ts";
import { readSupervisor } from "../../src/view/supervisor.ts";
import { ControlView } from "../../src/worker/intake.ts";
import { loadOrder, readLanding } from "../../src/worker/landing-files.ts";
import { tempDir } from "../support/temp-dir.ts";

type Read = (dir: string) => unknown;

const FRESH = newSession({ task_id: "t", agent: "a", kind: "claude", account: "x", cwd: "/" });
const AWAY = {
  name: { stage: "hold", token: "cluster-gpu", id: "t", submission: "s", attempt: 1 },
};
const mailOf = (dir: string): MailFolder =>
  new MailFolder({ dataDir: dir, isDurable: false }, { project: "p", branch: "b" });

/** For each document: its place below the directory, how it is read, and what the reader says when there is none. */
const STORES: readonly [path: string, read: Read, none: unknown][] = [
  ["control.json", (dir) => new ControlView(join(dir, "control.json"), "w", 3).slots(), 3],
  ["supervisor.json", (dir) => readSupervisor(stateTree(dir), 0).state, "none"],
  [
    "workers/w-1-1.json",
    (dir) => readDocument(join(dir, "workers/w-1-1.json"), workerOf),
    undefined,
  ],
  ["attached/a.json", (dir) => attachedIn(dir).read("a"), undefined],
  [
    "breakers/a.json",
    (dir) => [new BreakerFile(dir, "a").paused(), pausedAgents(dir)],
    [undefined, []],
  ],
  ["x.json", (dir) => new GateFile(dir, "x").read(), openGate("x")],
  ["analytics/running-costs/s.1.o.json", (dir) => new RunningCosts(dir).left(), []],
  ["analytics/costs-sums.json", (dir) => new SpentSums(dir).refresh(DEFAULT_SETTINGS), undefined],
  [
    "analytics/plan-budget.json",
    (dir) => planOf({ stateDir: dir, task: { id: "t", metadata: { roadmap: 1 } } } as never),
    { name: "plan", budget: {} },
  ],
  ["t@s.json", (dir) => new SessionFile(dir, "t@s").read(FRESH, ["x"]), FRESH],
  ["sessions/continued/u.1.json", (dir) => readContinued(dir, "u.1"), undefined],
  ["session.json", sessionOfRun, undefined],
  ["say/t/1.json", (dir) => new TaskMessages(dir, "t", false).unread(), []],
  ["say/t/1.offer.json", (dir) => new TaskMessages(dir, "t", false).offerOf(1), undefined],
  ["exits/t.json", (dir) => runNotes(dir).loadAll(), []],
  ["questions/asked/q.json", (dir) => askedIn(dir).readAll(), []],
  [
    "landings/t.order.json",
    (dir) => [loadOrder(dir, "t"), readLanding(dir, "t", "order")],
    [undefined, undefined],
  ],
  ["landings/t.state.json", (dir) => readLanding(dir, "t", "state"), undefined],
  ["schedules/.log/s.json", (dir) => readLog(dir, "s"), undefined],
  [
    "schedules/.log/s.control.json",
    (dir) => {
      const { paused, at_ms: atMs, manual_id: id } = readControl(dir, "s");
      return { paused, atMs, id };
    },
    { paused: false, atMs: 0, id: null },
  ],
  ["notify/state.json", (dir) => notifyStates(dir).load(STATE), undefined],
  ["roadmap.resets.json", readResets, []],
  ["roadmap.pending.json", (dir) => new PendingEdits(join(dir, "roadmap.pending.json")).edits, []],
  ["format.json", checkFormat, undefined],
  ["cluster/bridge.json", (dir) => readBridge(dir, Date.now()), undefined],
  [
    "cluster/runs.json",
    (dir) => readRemoteRuns(stateTree(dir), [AWAY] as never, Date.now()).size,
    0,
  ],
  ["mailchute.json", readMade, undefined],
  ["batch.json", readBatchProgress, undefined],
  ["scopes/p/b/agents/a.json", (dir) => listAgents(mailOf(dir)), []],
  ["scopes/p/b/tasks.json", (dir) => listTasks(mailOf(dir)), []],
  ["scopes/p/b/offers/a.json", (dir) => readOffer(mailOf(dir), "a"), undefined],
  [
    "scopes/p/b/cursors/a/1.json",
    (dir) => readCursor(mailOf(dir), "a"),
    { n: 1, upto: 0, fails: 0, at: 0 },
  ],
  ["scopes/p/root.json", (dir) => readClaim(dir, "p"), undefined],
];

const NAMES =
  "v id name agent task lease owner version pid text upto status resets groups carried targets runs machines items tasks session_id kind files sums paused at_ms decided_to_ms bytes ignored record budget slots";
const CONTENTS: Readonly<Record<string, string>> = {
  "no bytes": "",
  "torn bytes": '{"v":1,"id":"a","na',
  "a list": '[{"v":1}]',
  "members of other types": JSON.stringify(
    Object.fromEntries(NAMES.split(" ").map((name) => [name, [{ not: "this" }]])),
  ),
  "members that are null": JSON.stringify(
    Object.fromEntries(NAMES.split(" ").map((name) => [name, null])),
  ),
};
const PUT: Readonly<Record<string, (path: string) => void>> = {
  "a pipe": (path) => execFileSync("mkfifo", [path]),
  "a directory": (path) => fs.mkdirSync(path),
  "a link to /dev/zero": (path) => fs.symlinkSync("/dev/zero", path),
  ...Object.fromEntries(
    Object.entries(CONTENTS).map(([what, text]) => [
      what,
      (path: string) => fs.writeFileSync(path, text),
    ]),
  ),
};

/** What is wrong with a reader; undefined when it does what it should. */
function faultOf(path: string, read: Read, none: unknown, put: (path: string) => void): unknown {
  const dir = tempDir();
  const place = join(dir, path);
  fs.mkdirSync(dirname(place), { recursive: true });
  put(place);
  const { ino } = fs.lstatSync(place);
  try {
    expect(read(dir)).toEqual(none);
    expect(fs.lstatSync(place).ino).toBe(ino);
    return undefined;
  } catch (error) {
    return error;
  }
}

it.each(STORES)("%s: what is none counts as missing", (path, read, none) => {
  for (const [what, put] of Object.entries(PUT))
    expect(faultOf(path, read, none, put), what).toBeUndefined();
});

it("a reader that trusts what it finds is caught with each content", () => {
  const trusting: Read = (dir) => {
    const { session_id: id } = JSON.parse(fs.readFileSync(join(dir, "session.json"), "utf8"));
    return (id as string).toUpperCase();
  };
  for (const what of Object.keys(CONTENTS))
    expect(
      faultOf("session.json", trusting, undefined, PUT[what] ?? expect.fail(what)),
      what,
    ).toBeDefined();
});
