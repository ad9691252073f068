/** Operations on batches, walked like all others: see operations.ts. */
import fs from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { AgentRegistry } from "../../../src/agents/registry.ts";
import { encodeLineResult } from "../../../src/codec/batch-codec.ts";
import { encodeRecord } from "../../../src/codec/records.ts";
import {
  errorName,
  formatName,
  headOf,
  leaseOf,
  type ProcessingName,
  resultName,
  resultsName,
  settledBatchName,
  stagedResultsName,
  withStage,
} from "../../../src/core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../../src/core/task.ts";
import { ownerSequence } from "../../../src/host/identity.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { recordSettled } from "../../../src/journal/attempts.ts";
import { Telemetry } from "../../../src/journal/telemetry.ts";
import { claimReady, putBack } from "../../../src/mailbox/claim/claim.ts";
import { retry } from "../../../src/mailbox/retry/retry.ts";
import { settleAll } from "../../../src/mailbox/settle/settle.ts";
import { submitBatch } from "../../../src/mailbox/submit/submit-batch.ts";
import type { ActTools, Operation } from "./operations.ts";
import {
  acknowledge,
  type Book,
  type Durability,
  type Place,
  type PromisedBatch,
  quickSettings,
} from "./place.ts";

/** What these operations take from the others. */
export interface Surroundings {
  makeTree: (place: Place) => Book;
  runTree: (tools: ActTools) => Promise<void>;
  recoverWreck: (tools: ActTools) => Promise<void>;
  pause: (ms: number) => Promise<void>;
  deadOwner: string;
}

const LINES = [1, 2, 3, 4, 5, 7, 8];
const FAILING = [3, 5];
const owners = ownerSequence();

/** Eight lines: most are good, one fails once, one for good, one is no task, one is blank. */
function textOf(place: Place, failing: "fail" | "ok" = "fail"): string {
  const line = (does: string): string =>
    JSON.stringify({ payload: { do: does, runs: place.runs } });
  const does = ["ok", "flaky", failing, "ok"].map(line);
  return `${[...does, failing === "ok" ? line("ok") : "no task", "", line("ok"), line("ok")].join("\n")}\n`;
}

function promised(text: string, more: Partial<PromisedBatch> = {}): PromisedBatch {
  return {
    text,
    isSafe: true,
    ends: ["completed"],
    hasEvents: true,
    lines: LINES,
    failing: FAILING,
    ...more,
  };
}

function nameOf(id: string, attempt = 1): ProcessingName {
  return { id, submission: `s${id}`, attempt, stage: "ready", token: "", isBatch: true };
}

function put(path: string, text: string | Buffer): void {
  fs.writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}

function telemetryOf(place: Place): Telemetry {
  return new Telemetry(
    { events: place.tree.events, leases: place.tree.leases },
    "test",
    60_000,
    systemClock,
  );
}

function tell(place: Place, name: ProcessingName, isClaimed: boolean): void {
  const telemetry = telemetryOf(place);
  const subject = { task_id: name.id, agent_id: "batch", attempt: name.attempt };
  telemetry.event("selected", { ...subject, lease: headOf(name) });
  if (isClaimed) {
    const lease = leaseOf(name);
    telemetry.lease("active", { ...subject, lease }, 0, 1);
    telemetry.event("assigned", { ...subject, lease });
    telemetry.event("started", { ...subject, lease });
  }
  telemetry.close();
}

function resultOfLine(id: string, line: number): string {
  return encodeLineResult(line, `${id}#${line}`, 1, 1, {
    kind: "completed",
    output: null,
    verdict: "unknown",
    verdictReason: "",
    exitCode: null,
  });
}

/** What a worker does with a batch it is offered. */
async function workOn(
  tools: ActTools,
  ready: ProcessingName,
  surroundings: Surroundings,
): Promise<void> {
  // Most victims need none of this and live for milliseconds.
  const { readAttempt } = await import("../../../src/worker/attempt.ts");
  const { runAttempt } = await import("../../../src/worker/run.ts");
  const { decideAttempt } = await import("../../../src/worker/decide.ts");
  const { batch } = await import("../../../src/parts/batch/runner.ts");
  const { place, trays, durability } = tools;
  const claim = claimReady(trays, ready, owners());
  if (claim === undefined) return;
  const settings = { ...quickSettings(durability), batch_concurrency: 2 };
  const attemptTools = {
    trays,
    settings,
    agents: new AgentRegistry(settings.agents),
    tree: place.tree,
  };
  const telemetry = telemetryOf(place);
  const attempt = readAttempt(attemptTools, claim, formatName(ready), true);
  telemetry.lease("active", attempt.subject, Date.now(), process.pid);
  telemetry.event("assigned", attempt.subject);
  telemetry.event("started", attempt.subject);
  telemetry.flush();
  await runAttempt(attemptTools, [batch(attemptTools)], attempt, {
    room: () => 2,
    onDeadline: () => {},
    onProgress: () => {},
    onStuck: () => {},
    onPhase: () => {},
  });
  decideAttempt(attemptTools, attempt);
  const { settlement } = attempt;
  for (let tries = 0; tries < 200; tries++) {
    if (settlement === undefined) {
      try {
        putBack(trays, claim, 0, false);
        break;
      } catch {
        // The disk refuses: again.
      }
    } else {
      await settleAll(trays, [settlement], ([settled]) => {
        if (settled === undefined) return;
        const details = {
          isCompleted: true,
          acquiredAtMs: 0,
          pid: process.pid,
          durationMs: 1,
          error: null,
          kind: null,
        };
        recordSettled(telemetry, attempt.subject, details, settled.mayBeRecorded);
        telemetry.flush();
      });
      if (settlement.error === undefined) break;
    }
    await surroundings.pause(10);
  }
  for (let tries = 0; !telemetry.flush() && tries < 200; tries++) await surroundings.pause(10);
  telemetry.close();
  if (settlement?.error !== undefined) throw settlement.error;
}

function running(name: string, durability: Durability, surroundings: Surroundings): Operation {
  return {
    name,
    durability,
    prepare(place) {
      const book = surroundings.makeTree(place);
      const ready = nameOf("b");
      const text = textOf(place);
      put(join(place.tree.mailbox, "processing", formatName(ready)), text);
      book.batches["b"] = promised(text);
      tell(place, ready, false);
      return book;
    },
    act: (tools) => workOn(tools, nameOf("b"), surroundings),
  };
}

function submitting(
  name: string,
  durability: Durability,
  { makeTree, pause }: Surroundings,
): Operation {
  return {
    name,
    durability,
    prepare(place) {
      const book = makeTree(place);
      book.batches["b"] = promised(textOf(place), { isSafe: false });
      return book;
    },
    async act({ place, trays }) {
      const bytes = Buffer.from(textOf(place));
      for (let tries = 0; ; tries++) {
        try {
          await submitBatch(
            trays,
            "b",
            Readable.from([bytes.subarray(0, 50), bytes.subarray(50)]),
            1e6,
          );
          break;
        } catch (error) {
          // A producer that got no answer sends the same again.
          if (tries >= 200) throw error;
          await pause(10);
        }
      }
      acknowledge(place, "submit", "b");
    },
  };
}

const HEAD = {
  verdict: "unknown",
  verdict_reason: "",
  output: null,
  duration_ms: 1,
  exit_code: null,
  run: null,
  agent_id: "batch",
};

function resultOf(
  name: ProcessingName,
  lease: string,
  lines: number,
  failures: number,
): ResultRecord {
  return {
    ...HEAD,
    task_id: name.id,
    status: "completed",
    completed_at: Math.floor(Date.now() / 1000),
    attempts: name.attempt,
    lease,
    batch: { lines, completed: lines - failures, failures, bad: 0 },
  };
}

/** Settled with failed lines that would not fail any more. */
function prepareRetry(place: Place, tray: "outbox" | "failed", { makeTree }: Surroundings): Book {
  const book = makeTree(place);
  const dir = join(place.tree.mailbox, tray);
  const text = textOf(place, "ok");
  put(join(dir, settledBatchName("b", "old")), text);
  const failed = LINES.map((line) =>
    line > 3
      ? resultOfLine("b", line)
      : `${JSON.stringify({ line, id: `b#${line}`, status: "failed", attempts: 1, error: "once" })}\n`,
  );
  put(join(dir, resultsName("b")), failed.join(""));
  const record = resultOf(nameOf("b"), "old.1.lease-1", 7, 3);
  const error: ErrorRecord = {
    task_id: "b",
    status: "failed",
    error: "cancelled",
    attempts: 1,
    last_attempt_at: 0,
    failed_at: 1,
    code: "ErrCancelled",
    kind: "cancelled",
    agent_id: "batch",
    lease: "old.1.lease-1",
    exit_code: null,
    signal: null,
    run: null,
    batch: { lines: 7, completed: 4, failures: 3, bad: 0 },
  };
  if (tray === "outbox") put(join(dir, resultName("b")), encodeRecord(record, undefined));
  else put(join(dir, errorName("b")), encodeRecord(error, undefined));
  // Killed before its first rename the retry did not happen: then it stays as it is.
  book.batches["b"] = promised(text, {
    ends: ["completed", "failed"],
    failing: [],
    hasEvents: false,
  });
  return book;
}

function retrying(name: string, tray: "outbox" | "failed", surroundings: Surroundings): Operation {
  return {
    name,
    durability: "power",
    prepare: (place) => prepareRetry(place, tray, surroundings),
    async act({ place, trays }) {
      await retry(trays, "b");
      acknowledge(place, "retry", "b");
    },
  };
}

/** What the dead left of batches, one of each kind. */
function prepareWreck(place: Place, { makeTree, deadOwner }: Surroundings): Book {
  const book = makeTree(place);
  const { mailbox } = place.tree;
  const leave = (
    id: string,
    stage: "w" | "ok",
    attempt: number,
    lines: readonly number[],
    more: Partial<PromisedBatch> = {},
  ): ProcessingName => {
    const name = withStage(nameOf(id, attempt), stage, deadOwner);
    const text = textOf(place, "ok");
    put(join(mailbox, "processing", formatName(name)), text);
    put(
      join(mailbox, ".tmp", stagedResultsName(name)),
      `${lines.map((line) => resultOfLine(id, line)).join("")}${stage === "w" ? '{"line":4,"id' : ""}`,
    );
    book.batches[id] = promised(text, { failing: [], ...more });
    tell(place, name, true);
    return name;
  };
  leave("half", "w", 1, [1, 7, 2]);
  leave("last", "w", 3, [8, 1], { ends: ["failed"] });
  for (const id of ["committed", "linked"]) {
    const name = leave(id, "ok", 1, LINES);
    const lease = leaseOf(withStage(name, "w", deadOwner));
    put(
      join(mailbox, ".tmp", formatName(name)),
      encodeRecord(resultOf(name, lease, 7, 0), undefined),
    );
    if (id === "linked")
      fs.linkSync(
        join(mailbox, ".tmp", stagedResultsName(name)),
        join(mailbox, "outbox", resultsName(id)),
      );
  }
  return book;
}

export function batchOperations(surroundings: Surroundings): Operation[] {
  return [
    submitting("batch-submit", "process", surroundings),
    submitting("batch-submit-power", "power", surroundings),
    running("batch", "process", surroundings),
    running("batch-power", "power", surroundings),
    retrying("batch-retry", "outbox", surroundings),
    retrying("batch-retry-failed", "failed", surroundings),
    {
      name: "batch-recover",
      prepare: (place) => prepareWreck(place, surroundings),
      act: surroundings.recoverWreck,
    },
    {
      name: "batch-supervisor",
      isWhole: true,
      prepare(place) {
        const book = surroundings.makeTree(place);
        const text = textOf(place);
        put(join(place.tree.mailbox, "inbox", "b.ndjson"), text);
        book.batches["b"] = promised(text);
        return book;
      },
      act: surroundings.runTree,
    },
  ];
}
