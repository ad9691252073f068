/**
 * Who takes part, beside the supervisor (supervisor.ts): producers, workers, recoverers, people who cancel and retry, a sweeper.
 * Every move is made by the production functions; here stands only who calls which, when, and what they do with the answer.
 */
import { encodeLineResult } from "../../src/codec/batch-codec.ts";
import { encodeRecord } from "../../src/codec/records.ts";
import { decodeTask } from "../../src/codec/task-codec.ts";
import type { BatchCounts } from "../../src/core/batch.ts";
import { ErrInvalidTask, systemCode } from "../../src/core/errors.ts";
import { inboxName, isUnclaimed, leaseOf, parseName, submissionOf } from "../../src/core/names.ts";
import type { Completed, Failed } from "../../src/core/outcome.ts";
import {
  accept,
  type Claim,
  claimAt,
  claimFromInbox,
  claimReady,
  hold,
  newSubmission,
  putBack,
  readClaim,
  renewClaim,
} from "../../src/mailbox/claim/claim.ts";
import { requeue } from "../../src/mailbox/claim/requeue.ts";
import { archive } from "../../src/mailbox/clean/archive.ts";
import { sweepAll } from "../../src/mailbox/clean/sweep.ts";
import {
  acknowledgeCommand,
  claimNextCommand,
  enqueueCommand,
} from "../../src/mailbox/commands/command-queue.ts";
import type { Trays } from "../../src/mailbox/files/trays.ts";
import { readSettled } from "../../src/mailbox/find/settled-record.ts";
import { findRecoverable } from "../../src/mailbox/recover/find-recoverable.ts";
import { LeaseObserver } from "../../src/mailbox/recover/lease-observer.ts";
import { recoverStep } from "../../src/mailbox/recover/recover.ts";
import { retry } from "../../src/mailbox/retry/retry.ts";
import { takeOverResults } from "../../src/mailbox/settle/batch-results.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { isBlank, LineReader } from "../../src/mailbox/submit/batch-lines.ts";
import { holdKey } from "../../src/mailbox/submit/keys.ts";
import { submitAll } from "../../src/mailbox/submit/submit.ts";
import { submitBatch } from "../../src/mailbox/submit/submit-batch.ts";
import { finishTickets, submitOnce } from "../../src/mailbox/submit/submit-once.ts";
import { ReadyQueue } from "../../src/worker/ready-queue.ts";
import { noteArchived, noteOnce, told, toldFenced, want } from "./checker.ts";
import { type Api, isAnyLive, type Memory, type Program, type World } from "./world.ts";

export interface Dropped {
  id: string;
  text: string;
  isBatch?: true;
}

/**
 * What a worker does with a task in its first, second, … attempt. Of a batch, "fail" is about its last line, and what puts it back
 * does so after one more line.
 */
export type Deed =
  | "complete"
  | "fail"
  | "retry"
  | "later"
  | "release"
  | "hold"
  | "requeue"
  | "beat";

/** What a worker has a task wait for its next run (ms). */
const BACKOFF_MS = 10_000;
/** What a worker has a task wait for. */
const GATE = "gate";

export function task(id: string, mark: string, more: object = {}): Dropped {
  return { id, text: JSON.stringify({ id, title: mark, max_attempts: 2, ...more }) };
}

/** A batch of one line for each mark. */
export function batch(id: string, ...marks: string[]): Dropped {
  return {
    id,
    text: marks.map((mark) => JSON.stringify({ title: mark })).join("\n"),
    isBatch: true,
  };
}

const bytesOf = (text: string): Buffer => bufferOf.get(text) ?? makeBuffer(text);
const bufferOf = new Map<string, Buffer>();
/** One buffer a text: what is known of its content need not be found out again. */
function makeBuffer(text: string): Buffer {
  const bytes = Buffer.from(`${text}\n`, "utf8");
  bufferOf.set(text, bytes);
  return bytes;
}

/** Submits one after the other. */
export function producer(name: string, tasks: readonly Dropped[]): Program {
  return {
    name,
    kind: "producer",
    start: {},
    turnsMax: tasks.length,
    async run({ trays, turn, ask }, memory) {
      const { id, text } = tasks[turn] as Dropped;
      const [outcome] = await submitAll(trays, [{ id, bytes: bytesOf(text) }]);
      ask((world) => {
        if (outcome?.outcome !== "refused") want(world, "/m", id, text);
      });
      return memory;
    },
  };
}

/** Submits one task once; asks again as often as `turnsMax` says, as who was killed in between does. */
export function onceProducer(name: string, { id, text }: Dropped, turnsMax: number): Program {
  return {
    name,
    kind: "producer",
    start: {},
    turnsMax,
    async run({ trays, ask }, memory) {
      ask((world) => noteOnce(world, id, text));
      await submitOnce(trays, { id, bytes: bytesOf(text) });
      return memory;
    },
  };
}

/** Publishes the tickets that others have left, as a supervisor does before it cleans up. */
export function ticketFinisher(name: string, turnsMax: number): Program {
  return {
    name,
    kind: "operator",
    start: {},
    turnsMax,
    async run({ trays }, memory) {
      await finishTickets(trays);
      return memory;
    },
  };
}

/** Submits one batch. */
export function batchProducer(name: string, { id, text }: Dropped): Program {
  return {
    name,
    kind: "producer",
    start: {},
    turnsMax: 1,
    async run({ trays, ask }, memory) {
      await submitBatch(trays, id, pieces(text), BATCH_BYTES_MAX);
      ask((world) => want(world, "/m", id, text));
      return memory;
    },
  };
}

const BATCH_BYTES_MAX = 1_000_000;

async function* pieces(text: string): AsyncIterable<Buffer> {
  yield bytesOf(text);
}

/** Drops whole files, as `mv` does, where the name is free. */
export function dropper(name: string, files: readonly Dropped[]): Program {
  return {
    name,
    kind: "producer",
    start: {},
    turnsMax: files.length,
    run({ appear, turn, ask }, memory) {
      const file = files[turn] as Dropped;
      const { id, text } = file;
      if (appear(`/m/inbox/${inboxName(file)}`, bytesOf(text)))
        ask((world) => want(world, "/m", id, text));
      return memory;
    },
  };
}

/** Claims what is ready, does what its script says, and settles. */
export function worker(name: string, script: readonly Deed[], turnsMax: number): Program {
  return {
    name,
    kind: "worker",
    start: {},
    turnsMax,
    run: (api, memory) =>
      memory.held === undefined ? claimOne(api, memory) : work(api, memory, script, name),
  };
}

/** Finds what may be claimed as a worker does that nobody tells. Each turn it knows no more than a new one would. */
function claimOne(api: Api, memory: Memory): Memory {
  const { trays } = api;
  const queue = new ReadyQueue(trays, api.backoffMaxMs, () => {});
  try {
    queue.lookAround();
    for (let next = queue.first; next !== undefined; next = queue.first) {
      queue.drop();
      const name = parseName(next.file);
      const claim = name === undefined ? undefined : claimReady(trays, name, api.newOwner());
      if (claim === undefined) continue;
      return { ...memory, held: { file: claim.file, text: textOf(trays, claim) } };
    }
    return memory;
  } finally {
    queue.close();
  }
}

function textOf(trays: Trays, claim: Claim): string | undefined {
  try {
    return readClaim(trays, claim).text;
  } catch (error) {
    if (error instanceof ErrInvalidTask) return undefined;
    throw error;
  }
}

async function work(
  api: Api,
  { held, ...memory }: Memory,
  script: readonly Deed[],
  by: string,
): Promise<Memory> {
  const { trays } = api;
  const name = parseName(held?.file ?? "");
  if (name === undefined) return memory;
  const claim = claimAt(trays, name);
  const deed = script[Math.min(name.attempt, script.length) - 1] ?? "complete";
  if (name.isBatch === true) {
    try {
      await workBatch(api, claim, deed, by);
    } catch (error) {
      // The lease is lost.
      if (systemCode(error) !== "ENOENT") throw error;
    }
    return memory;
  }
  if (deed === "retry") putBack(trays, claim, 0, true);
  else if (deed === "later") putBack(trays, claim, BACKOFF_MS, true);
  else if (deed === "release") putBack(trays, claim, 0, false);
  else if (deed === "hold") hold(trays, claim, GATE);
  else if (deed === "requeue") requeue(trays, claim);
  else if (deed !== "beat" || renewClaim(trays, claim))
    await settle(api, claim, deed === "fail" ? "failed" : "completed", held?.text, by);
  return memory;
}

/** As a run of src/worker does, a line at a time: takes over what earlier runs have left, runs the rest, and settles. */
async function workBatch(api: Api, claim: Claim, deed: Deed, by: string): Promise<void> {
  const { trays } = api;
  const { name } = claim;
  const reader = new LineReader(claim.path);
  const results = await takeOverResults(trays, name, true);
  const isCut = deed !== "complete" && deed !== "fail" && deed !== "beat";
  let last = 0;
  for (let line = reader.next(); line !== undefined; line = reader.next())
    if (line !== "later" && !isBlank(line.text ?? "")) last = line.number;
  let isThrough = false;
  for (let number = 1; number <= last && !isThrough; number++) {
    if (results.done.has(number)) continue;
    isThrough = isCut;
    const isCompleted = deed !== "fail" || number < last;
    const outcome = isCompleted
      ? { ...DONE, output: leaseOf(name) }
      : { ...WRONG, message: leaseOf(name) };
    const id = `${name.id}#${number}`;
    results.add(number, encodeLineResult(number, id, 1, 0, outcome), isCompleted);
    results.flush();
  }
  if (trays.durability === "power") await results.sync();
  results.close();
  const { counts } = results;
  if (deed === "hold") hold(trays, claim, GATE);
  else if (isCut) putBack(trays, claim, deed === "later" ? BACKOFF_MS : 0, deed === "retry");
  else await settle(api, claim, "completed", undefined, by, counts);
}

const DONE: Completed = {
  kind: "completed",
  output: null,
  verdict: "unknown",
  verdictReason: "",
  exitCode: null,
};
const WRONG: Failed = {
  kind: "failed",
  failure: "exit",
  code: "ErrExit",
  message: "x",
  canRetry: false,
  exitCode: null,
  signal: null,
};

async function settle(
  { trays, ask }: Api,
  claim: Claim,
  status: "completed" | "failed",
  text: string | undefined,
  by: string,
  counts?: BatchCounts,
): Promise<void> {
  const { name } = claim;
  const lease = leaseOf(name);
  const common = {
    task_id: name.id,
    attempts: name.attempt,
    agent_id: by,
    lease,
    exit_code: null,
    run: null,
    ...(counts === undefined ? {} : { batch: counts }),
  };
  const record =
    status === "completed"
      ? {
          ...common,
          status,
          verdict: "",
          verdict_reason: "",
          output: null,
          duration_ms: 0,
          completed_at: 0,
        }
      : {
          ...common,
          status,
          error: "x",
          last_attempt_at: 0,
          failed_at: 0,
          code: "ErrExit",
          kind: "exit" as const,
          signal: null,
        };
  const its = text === undefined ? undefined : decodeTask(Buffer.from(text), name.id).task;
  const bytes = encodeRecord(record, text);
  const settlement = newSettlement(claim, status, bytes, name.token, its);
  await settleAll(trays, [settlement], () => {});
  const { outcome } = settlement;
  if (settlement.error !== undefined) return;
  ask((world) => {
    if (outcome === "settled") told(world, "/m", name.id, lease);
    if (outcome === "fenced") toldFenced(world, "/m", name.id, lease, by);
  });
}

/** Claims from the inbox itself, as a program with the library and without a supervisor does. */
export function loneWorker(name: string, id: string, turnsMax: number): Program {
  return {
    name,
    kind: "worker",
    start: {},
    turnsMax,
    run(api, memory) {
      if (memory.held !== undefined) return work(api, memory, ["complete"], name);
      const claim = claimFromInbox(api.trays, id, 1, api.newOwner());
      if (claim === undefined) return memory;
      return { ...memory, held: { file: claim.file, text: textOf(api.trays, claim) } };
    },
  };
}

/** Accepts a task with the key `k`, as a supervisor does that has only this file to look at. */
export function keyTaker(name: string, id: string): Program {
  return {
    name,
    kind: "supervisor",
    start: {},
    turnsMax: 1,
    run({ trays }, memory) {
      try {
        if (holdKey(trays, { id, key: "k", windowMs: 0 }) === undefined)
          accept(trays, newSubmission(trays.clock, id, 1));
      } catch (error) {
        // Another one stands still, or has died, while it frees the key: the task waits.
        if (systemCode(error) !== "EAGAIN") throw error;
      }
      return memory;
    },
  };
}

/** A lease or marker that never changes counts as silent when this observer is told to suspect it. */
class Suspicion extends LeaseObserver {
  private readonly suspects: (file: string) => boolean;
  constructor(suspects: (file: string) => boolean) {
    super(1);
    this.suspects = suspects;
  }
  override silenceMs(file: string): number {
    return this.suspects(file) ? Number.POSITIVE_INFINITY : 0;
  }
}

/** Takes back what the dead left, and, as often as `suspicions` says, what the living hold. */
export function recoverer(
  name: string,
  suspicions: number,
  turnsMax: number,
  tray: "trays" | "control" = "trays",
  maxAttempts = 2,
): Program {
  return {
    name,
    kind: "recoverer",
    start: { suspicions },
    turnsMax,
    async run(api, memory) {
      let left = memory.suspicions ?? 0;
      const suspect = (isDead: boolean): boolean => {
        if (isDead) return true;
        if (left === 0) return false;
        left--;
        return true;
      };
      const trays = api[tray];
      const r: Parameters<typeof findRecoverable>[0] = {
        trays,
        newOwner: api.newOwner,
        judge: (owner) =>
          suspect(api.ask((world) => isDead(world, owner)))
            ? ("dead" as const)
            : ("alive" as const),
        observer: new Suspicion((file) => {
          const stage = parseName(file)?.stage;
          if (stage !== "bad" && stage !== "again") return false;
          return suspect(api.ask((world) => !isAnyLive(world, ["supervisor", "operator"])));
        }),
        unfinished: new Set<string>(),
        excused: new Map<string, number>(),
        endLease: () => Promise.resolve(),
        policyOf: (task) => ({ maxAttempts: task?.max_attempts ?? maxAttempts, agentId: name }),
        onRecovered: () => {},
        onSettled: () => {},
      };
      for (const step of findRecoverable(r, trays.storage.list(trays.processing), 1))
        await recoverStep(r, step);
      return { ...memory, suspicions: left };
    },
  };
}

function isDead(world: World, owner: string): boolean {
  const [name] = owner.split("-");
  const actor = world.actors.find((a) => a.program.name === name);
  return actor === undefined || actor.state !== "live";
}

/** Cancels an attempt that runs: takes the lease over, then puts the task back or ends it for good. */
export function canceller(name: string, id: string, isFinal: boolean, turnsMax: number): Program {
  return {
    name,
    kind: "operator",
    start: {},
    turnsMax,
    async run(api, memory) {
      const { trays } = api;
      for (const file of trays.storage.list(trays.processing)) {
        const live = parseName(file);
        if (live?.id !== id || (live.stage !== "w" && !(isFinal && isUnclaimed(live)))) continue;
        const taken = claimReady(trays, live, api.newOwner());
        if (taken === undefined) continue;
        if (isFinal) await settle(api, taken, "failed", textOf(trays, taken), name);
        else requeue(trays, taken);
        return { ...memory, isDone: true };
      }
      return memory;
    },
  };
}

/** Runs a dead letter again. @param isRerun what has completed, too */
export function retrier(name: string, id: string, turnsMax: number, isRerun = false): Program {
  return {
    name,
    kind: "operator",
    start: {},
    turnsMax,
    async run({ trays }, memory) {
      await retry(trays, id, { isRerun });
      return { ...memory, isDone: true };
    },
  };
}

/** Moves the record of a settled task to the evidence, as a node has it done that is to run again. */
export function archiver(name: string, id: string, turnsMax: number): Program {
  return {
    name,
    kind: "operator",
    start: {},
    turnsMax,
    async run({ trays, ask }, memory) {
      // As the plan does: not while anything of it is in flight.
      const settled = readSettled(trays, id);
      const isLive = trays.storage.list(trays.processing).some((file) => file.startsWith(`${id}@`));
      if (settled === undefined || isLive) return memory;
      const submission = submissionOf(settled.record.lease);
      await archive(trays, settled.path, `/e/${id}/earlier/${submission}/record.json`);
      ask((world) => noteArchived(world, id, submission));
      return { ...memory, isDone: true };
    },
  };
}

/** Sweeps, after a long time has passed for everybody. */
export function sweeper(name: string, turnsMax: number, hours = 2): Program {
  return {
    name,
    kind: "operator",
    isSweeper: true,
    start: {},
    turnsMax,
    run({ trays, control, ask }, memory) {
      ask((world) => {
        world.disk.nowMs += hours * 3_600_000;
        world.disk.syncAll();
      });
      for (const mailbox of [trays, control])
        sweepAll(mailbox, { outboxDays: 3650, failedDays: 3650 });
      return memory;
    },
  };
}

/** Asks for a pause by a file in the control mailbox. */
export function commander(name: string, turnsMax: number): Program {
  return {
    name,
    kind: "producer",
    start: {},
    turnsMax,
    async run({ control, ask }, memory) {
      const { id } = await enqueueCommand(control, { command: "pause" });
      ask((world) => want(world, "/c", id, id));
      return memory;
    },
  };
}

/** Takes commands, oldest first; takes up those that a dead one left claimed. */
export function commandTaker(name: string, turnsMax: number): Program {
  return {
    name,
    kind: "supervisor",
    start: {},
    turnsMax,
    async run(api, memory) {
      const { control } = api;
      for (const file of control.storage.list(control.processing)) {
        const left = parseName(file);
        if (left?.stage === "ready") {
          const claim = claimReady(control, left, api.newOwner());
          if (claim !== undefined) await acknowledgeAs(api, claim);
        }
      }
      const claimed = claimNextCommand(control, api.newOwner());
      if (claimed !== undefined) await acknowledgeAs(api, claimed.claim);
      return memory;
    },
  };
}

async function acknowledgeAs({ control, ask }: Api, claim: Claim): Promise<void> {
  const command = { id: claim.name.id, command: "pause", args: {} } as never;
  await acknowledgeCommand(
    control,
    { claim, command },
    { status: "completed", result: { paused: true } },
  );
  ask((world) => told(world, "/c", claim.name.id, leaseOf(claim.name)));
}
