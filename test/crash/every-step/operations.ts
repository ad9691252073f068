/** The operations whose every step is killed: what the tree looks like before, what the victim does, what must come of it. */
import fs from "node:fs";
import { join } from "node:path";
import { Mailbox } from "../../../src/app/mailbox.ts";
import { encodeRecord } from "../../../src/codec/records.ts";
import { decodeTask } from "../../../src/codec/task-codec.ts";
import {
  errorName,
  formatName,
  leaseOf,
  nextAttempt,
  type ProcessingName,
  resultName,
  withStage,
} from "../../../src/core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../../src/core/task.ts";
import { ownerSequence, thisPlace } from "../../../src/host/identity.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { recordSettled } from "../../../src/journal/attempts.ts";
import { rotate } from "../../../src/journal/journal.ts";
import { Telemetry } from "../../../src/journal/telemetry.ts";
import {
  accept,
  type Claim,
  claimReady,
  hold,
  letGo,
  newSubmission,
  putBack,
  readClaim,
  renewClaim,
} from "../../../src/mailbox/claim/claim.ts";
import { requeue } from "../../../src/mailbox/claim/requeue.ts";
import { sweepAll } from "../../../src/mailbox/clean/sweep.ts";
import {
  acknowledgeCommand,
  claimNextCommand,
  enqueueCommand,
} from "../../../src/mailbox/commands/command-queue.ts";
import type { Trays } from "../../../src/mailbox/files/trays.ts";
import { retry } from "../../../src/mailbox/retry/retry.ts";
import { beginQuarantine, finishQuarantine } from "../../../src/mailbox/settle/quarantine.ts";
import { newSettlement, settleAll } from "../../../src/mailbox/settle/settle.ts";
import { dropIdentical } from "../../../src/mailbox/submit/duplicates.ts";
import { submitAll } from "../../../src/mailbox/submit/submit.ts";
import { callbacks } from "../../../src/parts/callbacks/follow.ts";
import type { Supervisor } from "../../../src/supervisor/supervisor.ts";
import { batchOperations } from "./batch-operations.ts";
import {
  acknowledge,
  type Book,
  controlOf,
  type Durability,
  emptyBook,
  type Journals,
  type Place,
  type Promised,
  quickSettings,
  readLines,
  taskText,
  traysOf,
} from "./place.ts";

export interface ActTools {
  place: Place;
  durability: Durability;
  /** The trays the victim works on; their storage may be a broken variant. */
  trays: Trays;
  control: Trays;
}

export interface Operation {
  name: string;
  /** It runs the task twice itself: with a second kill no attempt may be left. */
  usesAttempts?: true;
  durability?: Durability;
  /** Whole supervisors: slower, and not the same number of calls each time. */
  isWhole?: boolean;
  /** Which processes have worker processes of their own. */
  hasProcesses?: boolean;
  /** Only the calls between these two count; see the hook. */
  window?: { from: string; to: string };
  /** Begins with a note: when the power goes before that is on disk, the command was never begun, and its task may have settled. */
  isNoted?: boolean;
  /** A second supervisor comes before the one that drains: what must be true when it has answered. */
  afterwards?: {
    isAnswered(place: Place): boolean;
    /** Whether the answer is that the disk refused: after an error that is one, and nothing follows from it. */
    hasGivenUp(place: Place): boolean;
    check(place: Place, journals: Journals): string[];
    /** Makes the drain possible. */
    goOn(place: Place): void;
  };
  /** What must be true at any instant, beside what always must. */
  checkInstant?(place: Place): string[];
  /** What must be true in the end, beside what always must. */
  checkEnd?(place: Place, journals: Journals): string[];
  prepare(place: Place): Book;
  act(tools: ActTools): Promise<void>;
}

// ── what trees are made of ────────────────────────────────────────────────────────────────────────────────────────

/** An owner that lived on this machine and is gone. */
const DEAD_OWNER = `${thisPlace()}-zzzzz-1-1`;

function promise(text: string, more: Partial<Promised> = {}): Promised {
  return { text, isSafe: true, ends: ["completed"], hasEvents: true, ...more };
}

function put(path: string, text: string): void {
  fs.writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}

export function dropTask(
  place: Place,
  book: Book,
  id: string,
  does: Parameters<typeof taskText>[2] = "ok",
  more: Partial<Promised> = {},
  fields: Record<string, unknown> = {},
): string {
  const text = taskText(place, id, does, fields);
  put(join(place.tree.mailbox, "inbox", `${id}.json`), text);
  book.tasks[id] = promise(text, more);
  return text;
}

/** An accepted task, with what the journal says of it so far. */
function putAccepted(
  place: Place,
  book: Book,
  name: ProcessingName,
  more: Partial<Promised> = {},
  fields: Record<string, unknown> = {},
): string {
  const text = taskText(place, name.id, "ok", fields);
  put(join(place.tree.mailbox, "processing", formatName(name)), text);
  book.tasks[name.id] = promise(text, more);
  tell(place, name);
  return text;
}

function telemetryOf(place: Place): Telemetry {
  return new Telemetry(
    { events: place.tree.events, leases: place.tree.leases },
    "test",
    60_000,
    systemClock,
  );
}

function subjectOf(
  name: ProcessingName,
  lease = leaseOf(name),
): { task_id: string; agent_id: string; attempt: number; lease: string } {
  return { task_id: name.id, agent_id: "by-hand", attempt: name.attempt, lease };
}

/** Journal lines up to the state that the name shows. */
function tell(place: Place, name: ProcessingName): void {
  const telemetry = telemetryOf(place);
  telemetry.event("selected", subjectOf(name, `${name.submission}.${name.attempt}`));
  if (name.stage !== "ready") {
    telemetry.lease("active", subjectOf(name), 0, 1);
    telemetry.event("assigned", subjectOf(name));
    telemetry.event("started", subjectOf(name));
  }
  telemetry.close();
}

function resultOf(name: ProcessingName, lease: string): ResultRecord {
  return {
    task_id: name.id,
    status: "completed",
    verdict: "unknown",
    verdict_reason: "",
    output: null,
    duration_ms: 1,
    completed_at: Math.floor(Date.now() / 1000),
    attempts: name.attempt,
    agent_id: "by-hand",
    lease,
    exit_code: 0,
    run: null,
  };
}

function errorOf(name: ProcessingName, lease: string): ErrorRecord {
  return {
    task_id: name.id,
    status: "failed",
    error: "as it was asked to",
    attempts: name.attempt,
    last_attempt_at: 0,
    failed_at: Math.floor(Date.now() / 1000),
    code: "ErrFailed",
    kind: "handler",
    agent_id: "by-hand",
    lease,
    exit_code: 1,
    signal: null,
    run: null,
  };
}

function ready(id: string, attempt = 1): ProcessingName {
  return { id, submission: `s${id.replace(/[^a-z0-9]/g, "")}`, attempt, stage: "ready", token: "" };
}

const owners = ownerSequence();

/** Claims as a worker does: the rename, the read, the journal lines. */
function claimAndTell(
  { place, trays }: ActTools,
  name: ProcessingName,
): { claim: Claim; text: string } | undefined {
  const claim = claimReady(trays, name, owners());
  if (claim === undefined) return undefined;
  const { text } = readClaim(trays, claim);
  const telemetry = telemetryOf(place);
  telemetry.lease("active", subjectOf(claim.name), Date.now(), process.pid);
  telemetry.event("assigned", subjectOf(claim.name));
  telemetry.event("started", subjectOf(claim.name));
  telemetry.flush();
  telemetry.close();
  return { claim, text };
}

/** Settles as a worker does, and acknowledges what it was told. */
async function settleAndTell(
  tools: ActTools,
  held: { claim: Claim; text: string },
  status: "completed" | "failed",
): Promise<void> {
  const { place, trays } = tools;
  const { name } = held.claim;
  const lease = leaseOf(name);
  const record = status === "completed" ? resultOf(name, lease) : errorOf(name, lease);
  const { task } = decodeTask(Buffer.from(held.text), name.id);
  const bytes = encodeRecord(record, held.text);
  const settlement = newSettlement(held.claim, status, bytes, name.token, task);
  const telemetry = telemetryOf(place);
  // A full disk, or a broken one: a worker keeps its settlement and tries again.
  for (let tries = 0; ; tries++) {
    await settleAll(trays, [settlement], ([settled]) => {
      if (settled === undefined) return;
      const details = {
        isCompleted: status === "completed",
        acquiredAtMs: 0,
        pid: process.pid,
        durationMs: 1,
        error: status === "completed" ? null : "as it was asked to",
        kind: status === "completed" ? null : "handler",
      };
      recordSettled(telemetry, subjectOf(name), details, settled.mayBeRecorded);
      telemetry.flush();
    });
    if (settlement.error === undefined || tries >= 200) break;
    await pause(10);
  }
  for (let tries = 0; !telemetry.flush() && tries < 200; tries++) await pause(10);
  telemetry.close();
  if (settlement.error !== undefined) throw settlement.error;
  if (settlement.outcome === "settled") {
    acknowledge(place, "settle", name.id, status);
    acknowledge(place, "lease", name.id, lease);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

export function makeTree(place: Place): Book {
  fs.mkdirSync(place.state, { recursive: true, mode: 0o700 });
  traysOf(place);
  controlOf(place);
  // Until it is removed, handlers that are to wait do.
  fs.writeFileSync(`${place.runs}.wait`, "");
  return emptyBook();
}

// ── the operations ────────────────────────────────────────────────────────────────────────────────────────────────

function submitting(name: string, durability: Durability): Operation {
  return {
    name,
    durability,
    prepare(place) {
      const book = makeTree(place);
      for (const id of ["a", "b"]) book.tasks[id] = promise(taskText(place, id), { isSafe: false });
      return book;
    },
    async act({ place, trays }) {
      const submissions = ["a", "b"].map((id) => ({ id, bytes: Buffer.from(taskText(place, id)) }));
      // A producer that got no answer sends the same again.
      for (let tries = 0; submissions.length > 0 && tries < 200; tries++) {
        for (const outcome of await submitAll(trays, [...submissions])) {
          if (outcome.outcome === "refused") continue;
          acknowledge(place, "submit", outcome.id);
          submissions.splice(
            submissions.findIndex((s) => s.id === outcome.id),
            1,
          );
        }
        if (submissions.length > 0) await pause(10);
      }
      if (submissions.length > 0) throw new Error("could not be submitted");
    },
  };
}

function settling(name: string, durability: Durability, status: "completed" | "failed"): Operation {
  return {
    name,
    durability,
    prepare(place) {
      const book = makeTree(place);
      // Killed before its commit it is run again, and the handler completes it.
      putAccepted(place, book, ready("a"), { ends: ["completed", "failed"] });
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a"));
      if (held !== undefined) await settleAndTell(tools, held, status);
    },
  };
}

/** The handler completes it when the victim has not settled it: then it calls what that calls, and nothing else. */
function calling(name: string, durability: Durability, status: "completed" | "failed"): Operation {
  return {
    ...settling(name, durability, status),
    prepare(place) {
      const book = makeTree(place);
      const payload = { do: "ok", runs: place.runs };
      putAccepted(
        place,
        book,
        ready("a"),
        { ends: ["completed", "failed"] },
        { on_success: { payload }, on_failure: { payload }, on_settled: { payload } },
      );
      book.calling = "a";
      return book;
    },
    async act(tools) {
      const { place, trays } = tools;
      const settings = quickSettings(durability);
      trays.follow = callbacks({ trays, runs: place.tree.runs, settings, tell: notTold });
      const held = claimAndTell(tools, ready("a"));
      if (held !== undefined) await settleAndTell(tools, held, status);
    },
    checkInstant: (place) =>
      callsOf(place).length > 0 && endedAs(place, "a") === undefined
        ? ["what it calls is there, and it has not settled"]
        : [],
    checkEnd(place, journals) {
      const status = endedAs(place, "a") ?? "";
      const expected = ["on_settled", status === "completed" ? "on_success" : "on_failure"].sort();
      const calls = callsOf(place).sort();
      const faults =
        JSON.stringify(calls) === JSON.stringify(expected)
          ? []
          : [`a has ${status} and calls ${calls.join(", ")}`];
      for (const event of calls) {
        const submissions = new Set(
          linesAbout(place, "assigned", `a.sa.${event}`).map((line) => line.submission),
        );
        if (submissions.size !== 1 && journals !== "lossy")
          faults.push(`${event} ran under ${submissions.size} submissions`);
      }
      return faults;
    },
  };
}

function notTold(message: string): void {
  throw new Error(message);
}

/** The events of what a task has called, wherever it is. */
function callsOf({ tree }: Place): string[] {
  const files = ["inbox", "processing", "outbox", "failed"].flatMap((tray) =>
    fs.readdirSync(join(tree.mailbox, tray)),
  );
  const called = files.flatMap(
    (file) => /^a\.sa\.(on_[a-z]+?)(?:_|@|\.json)/.exec(file)?.[1] ?? [],
  );
  return [...new Set(called)];
}

function endedAs({ tree }: Place, id: string): string | undefined {
  if (fs.existsSync(join(tree.mailbox, "outbox", resultName(id)))) return "completed";
  return fs.existsSync(join(tree.mailbox, "failed", errorName(id))) ? "failed" : undefined;
}

interface EventLine {
  event?: string;
  task_id?: string;
  submission?: string;
}

function linesAbout({ tree }: Place, event: string, id: string): EventLine[] {
  return readLines(tree.events).flatMap((text): EventLine[] => {
    try {
      const line = JSON.parse(text) as EventLine;
      return line.event === event && line.task_id === id ? [line] : [];
    } catch {
      // A kill may have torn it.
      return [];
    }
  });
}

export function putFailed(place: Place, book: Book, id: string): void {
  const text = taskText(place, id);
  const record = errorOf({ ...ready(id), attempt: 3 }, "old.3.lease-1");
  fs.writeFileSync(join(place.tree.mailbox, "failed", errorName(id)), encodeRecord(record, text), {
    mode: 0o600,
  });
  book.tasks[id] = promise(text, { ends: ["completed", "failed"] });
}

const BAD = '{"id":"other","prompt":"x"}';

async function refuse(trays: Trays, name: string, id: string, isIdTaken: boolean): Promise<void> {
  const refusal = { name, id, code: "ErrInvalidTask", reason: "the ids disagree", isIdTaken };
  const marker = beginQuarantine(trays, refusal);
  if (marker !== undefined) await finishQuarantine(trays, marker, isIdTaken);
}

export const OPERATIONS: readonly Operation[] = [
  submitting("submit", "process"),
  submitting("submit-power", "power"),
  {
    name: "resend",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a"));
      dropTask(place, book, "b");
      return book;
    },
    async act({ place, trays }) {
      const submissions = ["a", "b"].map((id) => ({ id, bytes: Buffer.from(taskText(place, id)) }));
      for (const answer of await submitAll(trays, submissions))
        if (answer.outcome !== "unchanged")
          throw new Error(`${answer.id} was ${answer.outcome}, ErrTaskExists or a made up fault`);
      const other = { id: "a", bytes: Buffer.from('{"id":"a","prompt":"another"}') };
      const [answer] = await submitAll(trays, [other]);
      if (answer?.outcome !== "refused") throw new Error("another task of the same id was taken");
    },
  },
  {
    name: "clash",
    prepare(place) {
      const book = makeTree(place);
      dropTask(place, book, "a");
      return book;
    },
    async act({ trays }) {
      // It must stay what it is: the answer is that it exists.
      await submitAll(trays, [{ id: "a", bytes: Buffer.from('{"id":"a","prompt":"another"}') }]);
    },
  },
  {
    name: "conflict",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a"));
      // A foreign program had settled it already, in its own words.
      const record = resultOf(ready("a"), "old.1.foreign-1");
      const path = join(place.tree.mailbox, "outbox", resultName("a"));
      fs.writeFileSync(path, encodeRecord(record, taskText(place, "a")), { mode: 0o600 });
      book.foreignLease = { id: "a", lease: record.lease };
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a"));
      if (held !== undefined) await settleAndTell(tools, held, "completed");
    },
  },
  {
    name: "accept",
    prepare(place) {
      const book = makeTree(place);
      dropTask(place, book, "a");
      return book;
    },
    async act({ place, trays }) {
      const name = newSubmission(systemClock, "a", 1);
      const telemetry = telemetryOf(place);
      telemetry.event("selected", subjectOf(name, `${name.submission}.1`));
      telemetry.flush();
      accept(trays, name);
    },
  },
  {
    name: "quarantine",
    prepare(place) {
      const book = makeTree(place);
      for (const id of ["bad", "worse"])
        put(join(place.tree.mailbox, "inbox", `${id}.json`), `${BAD.slice(0, -1)},"n":"${id}"}`);
      book.refused.push(`${BAD.slice(0, -1)},"n":"bad"}`, `${BAD.slice(0, -1)},"n":"worse"}`);
      return book;
    },
    // However it was brought to its end: what asks for it by its id must find it.
    checkEnd: (place) =>
      fs.existsSync(join(place.tree.mailbox, "failed", errorName("bad")))
        ? []
        : ["the refusal of bad ended under another name"],
    async act({ trays }) {
      await insist(
        () => refuse(trays, "bad.json", "bad", false),
        () => !fs.existsSync(join(trays.inbox, "bad.json")),
      );
      await insist(
        () => refuse(trays, "worse.json", "worse", true),
        () => !fs.existsSync(join(trays.inbox, "worse.json")),
      );
    },
  },
  {
    name: "duplicate",
    prepare(place) {
      const book = makeTree(place);
      const text = putAccepted(place, book, ready("a"));
      put(join(place.tree.mailbox, "inbox", "a.json"), text);
      book.duplicated = "a";
      return book;
    },
    async act({ trays }) {
      await insist(
        () => dropIdentical(trays, "a"),
        () => !fs.existsSync(join(trays.inbox, "a.json")),
      );
    },
  },
  {
    name: "claim",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a"));
      putAccepted(place, book, ready("b", 3), { ends: ["completed", "failed"] });
      return book;
    },
    async act(tools) {
      claimAndTell(tools, ready("a"));
      claimAndTell(tools, ready("b", 3));
    },
  },
  {
    name: "heartbeat",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a"));
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a"));
      if (held === undefined) return;
      for (let beat = 0; beat < 3; beat++) renewClaim(tools.trays, held.claim);
    },
  },
  settling("complete", "process", "completed"),
  settling("complete-power", "power", "completed"),
  settling("fail", "process", "failed"),
  settling("fail-power", "power", "failed"),
  calling("callbacks", "process", "failed"),
  calling("callbacks-power", "power", "completed"),
  {
    name: "retry",
    usesAttempts: true,
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a"));
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a"));
      if (held === undefined) return;
      putBack(tools.trays, held.claim, 30, true);
      const again = claimAndTell(tools, nextAttempt(held.claim.name));
      if (again !== undefined) putBack(tools.trays, again.claim, 0, true);
    },
  },
  {
    name: "release",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a", 3), { ends: ["completed", "failed"] });
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a", 3));
      if (held !== undefined) putBack(tools.trays, held.claim, 0, false);
    },
  },
  {
    name: "hold",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a", 3), { ends: ["completed", "failed"] });
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a", 3));
      if (held === undefined) return;
      const name = hold(tools.trays, held.claim, "gate");
      if (name !== undefined) letGo(tools.trays, name);
    },
  },
  {
    name: "retry-dead-letter",
    durability: "power",
    prepare(place) {
      const book = makeTree(place);
      putFailed(place, book, "a");
      return book;
    },
    async act({ place, trays }) {
      await retry(trays, "a");
      acknowledge(place, "retry", "a");
    },
  },
  {
    name: "retry-refused",
    durability: "power",
    prepare(place) {
      const book = makeTree(place);
      // Refused when it was dropped, and good by the rules of today.
      const text = taskText(place, "a");
      put(join(place.tree.mailbox, "failed", "a~0123abcd.json"), text);
      const record = {
        ...errorOf({ ...ready("a"), attempt: 0 }, "sold.0.0123abcd"),
        kind: "invalid",
        file: "failed/a~0123abcd.json",
      };
      fs.writeFileSync(
        join(place.tree.mailbox, "failed", errorName("a")),
        encodeRecord(record as ErrorRecord, undefined),
        { mode: 0o600 },
      );
      book.tasks["a"] = promise(text, { ends: ["completed"], isSafe: false });
      book.reopened = { id: "a", text };
      return book;
    },
    async act({ place, trays }) {
      await retry(trays, "a");
      acknowledge(place, "submit", "a");
    },
  },
  {
    name: "requeue",
    prepare(place) {
      const book = makeTree(place);
      putAccepted(place, book, ready("a"));
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a"));
      if (held !== undefined) requeue(tools.trays, held.claim);
    },
  },
  {
    name: "recover",
    prepare: prepareWreck,
    act: recoverWreck,
  },
  {
    name: "recover-power",
    durability: "power",
    prepare: prepareWreck,
    act: recoverWreck,
  },
  {
    name: "sweep",
    prepare(place) {
      const book = makeTree(place);
      const { tree } = place;
      book.sweptIds = ["old-result", "old-error"];
      const tmp = join(tree.mailbox, ".tmp");
      const old = Date.now() / 1000 - 40 * 24 * 3600;
      const name = { ...ready("old-result"), stage: "ok" as const, token: DEAD_OWNER };
      for (const [path, record] of [
        [join(tree.mailbox, "outbox", resultName("old-result")), resultOf(name, "old.1.lease-1")],
        [
          join(tree.mailbox, "failed", errorName("old-error")),
          errorOf({ ...name, id: "old-error" }, "old.1.lease-1"),
        ],
        [
          join(tree.mailbox, "outbox", resultName("new-result")),
          resultOf({ ...name, id: "new-result" }, "old.1.lease-1"),
        ],
      ] as const) {
        fs.writeFileSync(path, encodeRecord(record, taskText(place, record.task_id)), {
          mode: 0o600,
        });
        book.tasks[record.task_id] = promise(taskText(place, record.task_id), {
          ends: ["completed", "failed"],
          hasEvents: false,
        });
        if (!record.task_id.startsWith("new")) fs.utimesSync(path, old, old);
      }
      put(join(tmp, "left-0123456789.json.tmp"), "{}");
      fs.utimesSync(join(tmp, "left-0123456789.json.tmp"), old, old);
      // Published, and its staged name still there: goes on evidence.
      fs.linkSync(
        join(tree.mailbox, "outbox", resultName("new-result")),
        join(tmp, formatName({ ...name, id: "new-result" })),
      );
      // Committed and not published: what recovery needs must stay, however old it is.
      const committed = { ...ready("c"), stage: "ok" as const, token: DEAD_OWNER };
      const text = putAccepted(place, book, committed);
      const staged = join(tmp, formatName(committed));
      fs.writeFileSync(staged, encodeRecord(resultOf(committed, "sc.1.lease-1"), text), {
        mode: 0o600,
      });
      fs.utimesSync(staged, old, old);
      return book;
    },
    async act({ trays }) {
      sweepAll(trays, { outboxDays: 7, failedDays: 30 });
    },
  },
  {
    name: "command",
    prepare: makeTree,
    async act({ place, control }) {
      const { id } = await enqueueCommand(control, {
        command: "set-workers",
        args: { workers: 2 },
      });
      acknowledge(place, "command", id);
      const claimed = claimNextCommand(control, owners());
      if (claimed === undefined) return;
      await acknowledgeCommand(control, claimed, { status: "completed", result: { workers: 2 } });
    },
  },
  {
    name: "journal-rotation",
    prepare(place) {
      const book = makeTree(place);
      // A torn tail that a dead writer left.
      putAccepted(place, book, ready("a"));
      fs.appendFileSync(place.tree.events, '{"event":"progr');
      book.tornLines = 1;
      return book;
    },
    async act(tools) {
      const held = claimAndTell(tools, ready("a"));
      if (held === undefined) return;
      rotate(tools.place.tree.events, 10, Date.now());
      rotate(tools.place.tree.leases, 10, Date.now());
      await settleAndTell(tools, held, "completed");
      rotate(tools.place.tree.events, 10, Date.now() + 1000);
      acknowledge(tools.place, "rotated", "a");
    },
  },
  {
    name: "library",
    durability: "power",
    prepare(place) {
      const book = makeTree(place);
      for (const id of ["a", "b", "c"])
        book.tasks[id] = promise(taskText(place, id), {
          isSafe: false,
          hasEvents: false,
          ends: ["completed", "failed"],
        });
      return book;
    },
    async act({ place, trays }) {
      const mailbox = Mailbox.open(place.tree.mailbox, {
        durability: "power",
        storage: trays.storage,
        agentId: "by-hand",
      });
      for (const id of ["a", "b", "c"]) {
        await mailbox.enqueue(JSON.parse(taskText(place, id)) as { id: string });
        acknowledge(place, "submit", id);
      }
      const first = mailbox.claim();
      const second = mailbox.claim();
      mailbox.renew(first);
      await mailbox.complete(first, { output: 1 });
      acknowledge(place, "settle", first.task.id, "completed");
      await mailbox.fail(second, "as it was asked to", { canRetry: false });
      acknowledge(place, "settle", second.task.id, "failed");
      const third = mailbox.claim();
      mailbox.release(third);
      mailbox.sweep();
    },
  },
  {
    name: "supervisor",
    isWhole: true,
    prepare: prepareDay,
    act: (tools) => runTree(tools),
  },
  {
    name: "supervisor-power",
    isWhole: true,
    durability: "power",
    prepare: prepareDay,
    act: (tools) => runTree(tools),
  },
  {
    name: "stop",
    isWhole: true,
    prepare(place) {
      const book = makeTree(place);
      dropTask(place, book, "a", "wait");
      dropTask(place, book, "b", "wait");
      dropTask(place, book, "c");
      return book;
    },
    act: (tools) =>
      runTree(tools, async (supervisor, place) => {
        await until(() => readLines(place.runs).length >= 2);
        supervisor.stop(false);
      }),
  },
  cancelling("cancel-waiting", { final: true }, "waits", ["cancelled"]),
  cancelling("cancel-running", { final: true }, "runs", ["cancelled", "completed"]),
  cancelling("cancel-requeue", {}, "runs", ["completed"]),
  ...batchOperations({ makeTree, runTree, recoverWreck, pause, deadOwner: DEAD_OWNER }),
];

/** For worker processes of their own: tasks of every end, and a run that lasts for some heartbeats. */
export const WORKER_OPERATION: Operation = {
  name: "worker",
  isWhole: true,
  prepare(place) {
    const book = makeTree(place);
    dropTask(place, book, "a", "linger", {}, { priority: 9 });
    dropTask(place, book, "b");
    dropTask(place, book, "flaky", "flaky", {}, { max_attempts: 9 });
    dropTask(place, book, "fails", "fail", { ends: ["failed"] });
    return book;
  },
  act: (tools) => runTree(tools),
};

/** Tries again until it is done: what a supervisor does when it looks again. */
async function insist(step: () => unknown, isDone: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    try {
      await step();
      return;
    } catch (error) {
      if (isDone()) throw error;
    }
    await pause(10);
  }
  throw new Error("it could not be done");
}

function cancelling(
  name: string,
  args: object,
  state: "waits" | "runs",
  ends: Promised["ends"],
): Operation {
  return {
    name,
    isWhole: true,
    prepare(place) {
      const book = makeTree(place);
      const later = Math.floor(Date.now() / 1000) + 3600;
      if (state === "waits")
        dropTask(place, book, "a", "ok", { ends, hasEvents: false }, { not_before: later });
      else dropTask(place, book, "a", "wait", { ends });
      if (state === "waits") {
        putCommand(place, args);
        book.commands.push("stop-a");
      }
      return book;
    },
    act: (tools) =>
      runTree(tools, async (_supervisor, place) => {
        if (state === "waits") return;
        await until(() => readLines(place.runs).length >= 1);
        // What waits goes on waiting; a second run does not.
        fs.rmSync(`${place.runs}.wait`, { force: true });
        putCommand(place, args);
        acknowledge(place, "command", "stop-a");
        // One that was answered with a made up fault is given again.
        const answer = join(place.tree.control, "failed", errorName("stop-a"));
        for (let tries = 0; tries < 200; tries++) {
          await pause(20);
          const isGivenAgain = fs.existsSync(join(place.tree.control, "inbox", "stop-a.json"));
          if (!isGivenAgain && /made up|took no bytes/.test(readLines(answer).join("")))
            putCommand(place, args);
        }
      }),
  };
}

export function putCommand(place: Place, args: object): void {
  const path = join(place.tree.control, ".tmp", "stop-a");
  fs.writeFileSync(
    path,
    JSON.stringify({ id: "stop-a", command: "cancel", args: { node: "a", ...args } }),
    { mode: 0o600 },
  );
  syncPath(path);
  const inbox = join(place.tree.control, "inbox");
  fs.renameSync(path, join(inbox, "stop-a.json"));
  syncPath(inbox);
}

/** For what a test drops: what is struck at is the answer, not the question. */
export function syncPath(path: string): void {
  const fd = fs.openSync(path, "r");
  fs.fsyncSync(fd);
  fs.closeSync(fd);
}

export async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition() && performance.now() < deadline) await pause(2);
}

/** One worker process with all slots, whose thread beats often. */
const ONE_PROCESS = { processes: 1, heartbeat_ms: 15 };

/** The production supervisor, in the victim's process. */
export async function runTree(
  { place, durability, trays }: ActTools,
  meanwhile?: (supervisor: Supervisor, place: Place) => Promise<void>,
): Promise<void> {
  const { recoverTree } = await import("./recover-tree.ts");
  let made: Supervisor | undefined;
  const hasProcesses = process.env["MAILCHUTE_CRASH_PROCESSES"] === "1";
  const running = recoverTree(place, {
    settings: { ...quickSettings(durability), ...(hasProcesses ? ONE_PROCESS : {}) },
    storage: trays.storage,
    hasProcesses,
    onMade: (supervisor) => {
      made = supervisor;
    },
  });
  if (meanwhile !== undefined && made !== undefined)
    await Promise.race([meanwhile(made, place), running]);
  await running;
}

/** A tree with one of everything. */
function prepareDay(place: Place): Book {
  const book = makeTree(place);
  dropTask(place, book, "a");
  // One attempt fails, and two may be killed.
  dropTask(place, book, "flaky", "flaky", {}, { max_attempts: 9 });
  dropTask(place, book, "fails", "fail", { ends: ["failed"] });
  dropTask(place, book, "after-a", "ok", {}, { metadata: { dependencies: ["a"] } });
  dropTask(place, book, "once", "ok", { ends: ["completed", "failed"] }, { max_attempts: 1 });
  put(join(place.tree.mailbox, "inbox", "bad.json"), BAD);
  book.refused.push(BAD);
  putFailed(place, book, "again");
  const { inbox } = controlOf(place);
  put(join(inbox, "workers.json"), '{"command":"set-workers","args":{"workers":2}}');
  put(join(inbox, "retry.json"), '{"command":"retry","args":{"node":"again"}}');
  put(join(inbox, "wrong.json"), '{"command":"no-such"}');
  book.commands.push("workers", "retry");
  return book;
}

/** What several dead left behind, one of each kind. */
function prepareWreck(place: Place): Book {
  const book = makeTree(place);
  const { mailbox } = place.tree;
  const dead = (id: string, stage: "w" | "ok" | "err", attempt = 1): ProcessingName => ({
    ...withStage(ready(id, attempt), stage, DEAD_OWNER),
  });
  const leaseBefore = (name: ProcessingName): string => leaseOf(withStage(name, "w", DEAD_OWNER));
  putAccepted(place, book, dead("running", "w"));
  putAccepted(place, book, dead("last", "w", 3), { ends: ["failed"] });
  for (const id of ["committed", "linked"]) {
    const name = dead(id, "ok");
    const text = putAccepted(place, book, name);
    const staged = join(mailbox, ".tmp", formatName(name));
    fs.writeFileSync(staged, encodeRecord(resultOf(name, leaseBefore(name)), text), {
      mode: 0o600,
    });
    if (id === "linked") fs.linkSync(staged, join(mailbox, "outbox", resultName(id)));
  }
  const failedName = dead("failing", "err", 3);
  const failedText = putAccepted(place, book, failedName, { ends: ["failed"] });
  fs.writeFileSync(
    join(mailbox, ".tmp", formatName(failedName)),
    encodeRecord(errorOf(failedName, leaseBefore(failedName)), failedText),
    { mode: 0o600 },
  );
  // Its staged record was lost: it runs again.
  putAccepted(place, book, dead("torn", "ok"));
  // A quarantine and a retry that stopped half-way.
  const bad = { ...ready("bad"), attempt: 0, stage: "bad" as const, token: "00000000" };
  put(join(mailbox, "processing", formatName(bad)), BAD);
  book.refused.push(BAD);
  const again = { ...ready("again"), attempt: 0, stage: "again" as const, token: "00000000" };
  const text = taskText(place, "again");
  fs.writeFileSync(
    join(mailbox, "processing", formatName(again)),
    encodeRecord(errorOf({ ...ready("again"), attempt: 3 }, "old.3.lease-1"), text),
    { mode: 0o600 },
  );
  book.tasks["again"] = promise(text);
  return book;
}

async function recoverWreck({ place, trays, durability }: ActTools): Promise<void> {
  // Only those that need them load the larger parts: most victims live for milliseconds.
  const { makeTaskRescue } = await import(
    "../../../src/supervisor/maintenance/record-recovered.ts"
  );
  const { TaskRecovery } = await import("../../../src/supervisor/maintenance/task-recovery.ts");
  const telemetry = telemetryOf(place);
  const errors: unknown[] = [];
  const scope = { tree: place.tree, trays, settings: quickSettings(durability), telemetry };
  const listener = {
    onReady: () => {},
    onSettled: () => {},
    onSkipped: () => {},
    onFailed: () => {},
    onConflict: () => {},
    onUnkillable: () => {},
  };
  const recovery = new TaskRecovery(makeTaskRescue(scope, listener, owners), 60_000, (error) =>
    errors.push(error),
  );
  for (let tries = 0; tries < 200; tries++) {
    errors.length = 0;
    await recovery.round(recovery.list(), true);
    if (errors.length === 0 && telemetry.flush()) break;
    await pause(10);
  }
  telemetry.close();
  if (errors.length > 0) throw errors[0];
}
