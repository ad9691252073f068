/**
 * Who takes part: producers, a supervisor, workers, recoverers, people who cancel and retry, a sweeper. Every move is made by the
 * production functions; here stands only who calls which, when, and what they do with the answer.
 */
import { join } from "node:path";
import { encodeRecord } from "../../src/codec/records.ts";
import { decodeTask } from "../../src/codec/task-codec.ts";
import { ErrInvalidTask } from "../../src/core/errors.ts";
import {
  errorName,
  foldId,
  leaseOf,
  parseName,
  parsePlainClaim,
  resultName,
} from "../../src/core/names.ts";
import {
  accept,
  type Claim,
  claimAt,
  claimFromInbox,
  claimReady,
  newSubmission,
  putBack,
  readClaim,
  renewClaim,
} from "../../src/mailbox/claim.ts";
import {
  acknowledgeCommand,
  claimNextCommand,
  enqueueCommand,
} from "../../src/mailbox/command-queue.ts";
import { dropIdentical } from "../../src/mailbox/duplicates.ts";
import {
  beginQuarantine,
  finishQuarantine,
  freeRefusedId,
  type Refusal,
} from "../../src/mailbox/quarantine.ts";
import { findRecoverable, LeaseObserver, recoverStep } from "../../src/mailbox/recover.ts";
import { requeue } from "../../src/mailbox/requeue.ts";
import { retry } from "../../src/mailbox/retry.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle.ts";
import { isRefusal } from "../../src/mailbox/settled-record.ts";
import { submitAll } from "../../src/mailbox/submit.ts";
import { sweepAll } from "../../src/mailbox/sweep.ts";
import type { Trays } from "../../src/mailbox/trays.ts";
import { told, toldFenced, want } from "./checker.ts";
import type { Api, Memory, Program, World } from "./world.ts";

export interface Dropped {
  id: string;
  text: string;
}

/** What a worker does with a task in its first, second, … attempt. */
export type Deed = "complete" | "fail" | "retry" | "release" | "requeue" | "beat";

export function task(id: string, mark: string, more: object = {}): Dropped {
  return { id, text: JSON.stringify({ id, title: mark, max_attempts: 2, ...more }) };
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

/** Drops whole files, as `mv` does, where the name is free. */
export function dropper(name: string, files: readonly Dropped[]): Program {
  return {
    name,
    kind: "producer",
    start: {},
    turnsMax: files.length,
    run({ appear, turn, ask }, memory) {
      const { id, text } = files[turn] as Dropped;
      if (appear(`/m/inbox/${id}.json`, bytesOf(text))) ask((world) => want(world, "/m", id, text));
      return memory;
    },
  };
}

/**
 * Looks through the inbox as src/supervisor does: refuses, drops duplicates, accepts.
 * @param suspicions how often it takes whoever made a second link to a file for dead, as it does with one that stands still
 */
export function supervisor(name: string, turnsMax: number, suspicions = 0): Program {
  return {
    name,
    kind: "supervisor",
    start: { suspicions },
    turnsMax,
    async run(api, memory) {
      const { trays } = api;
      const { inFlight, absentOnce } = noteListing(memory, trays.storage.list(trays.processing));
      let left = memory.suspicions ?? 0;
      const suspect = (): boolean => left-- > 0;
      for (const file of trays.storage.list(trays.inbox)) await admit(api, file, inFlight, suspect);
      return { ...memory, inFlight: [...inFlight], absentOnce, suspicions: Math.max(0, left) };
    },
  };
}

function noteListing(
  memory: Memory,
  files: readonly string[],
): { inFlight: Set<string>; absentOnce: string[] } {
  const inFlight = new Set(memory.inFlight);
  const present = new Set<string>();
  for (const file of files) {
    const name = parseName(file);
    if (name?.stage === "again" || name?.stage === "bad") continue;
    const id = name?.id ?? parsePlainClaim(file);
    if (id !== undefined) present.add(foldId(id));
  }
  // As in Selection.onListing: one listing may miss a name.
  const absentOnce: string[] = [];
  for (const id of inFlight) {
    if (present.has(id)) continue;
    if (memory.absentOnce?.includes(id) === true) inFlight.delete(id);
    else absentOnce.push(id);
  }
  for (const id of present) inFlight.add(id);
  return { inFlight, absentOnce };
}

async function admit(
  api: Api,
  file: string,
  inFlight: Set<string>,
  suspect: () => boolean,
): Promise<void> {
  const { trays } = api;
  const { storage } = trays;
  const id = file.slice(0, -5);
  const path = join(trays.inbox, file);
  let read: ReturnType<typeof storage.read>;
  try {
    read = storage.read(path, 1_000_000);
  } catch {
    return;
  }
  const { facts, bytes } = read;
  if (bytes === undefined) return;
  let attempt: number;
  try {
    attempt = (decodeTask(bytes, id).task.attempts ?? 0) + 1;
  } catch (error) {
    if (!(error instanceof ErrInvalidTask)) throw error;
    const isIdTaken = isTaken(trays, id, inFlight) !== false;
    await refuse(trays, { name: file, id, code: error.code, reason: error.message, isIdTaken });
    return;
  }
  if (facts.nlink > 1) {
    // Under way, unless whoever was at it is gone.
    const isUnderWay = api.ask((world) =>
      isAnyLive(world, ["producer", "operator", "worker", "recoverer"]),
    );
    if (isUnderWay && !suspect()) return;
    for (const staged of storage.list(trays.tmp)) {
      const isOurs = staged.startsWith(`${id}-`) || staged.startsWith(`${id}@`);
      if (!isOurs || storage.look(join(trays.tmp, staged))?.ino !== facts.ino) continue;
      storage.unlink(join(trays.tmp, staged));
      return;
    }
    const isIdTaken = isTaken(trays, id, inFlight) !== false;
    const code = isIdTaken ? "ErrTaskExists" : "ErrInvalidTask";
    if (isIdTaken && dropIdentical(trays, id) !== "other") return;
    await refuse(trays, { name: file, id, code, reason: "a second name", isIdTaken });
    return;
  }
  const taken = isTaken(trays, id, inFlight);
  if (taken === true) {
    // "free": it was taken when that was last asked.
    if (dropIdentical(trays, id) !== "other") return;
    const code = "ErrTaskExists";
    await refuse(trays, { name: file, id, code, reason: "taken", isIdTaken: true });
    return;
  }
  if (taken === "refused") freeRefusedId(trays, id);
  if (accept(trays, newSubmission(id, attempt))) inFlight.add(foldId(id));
}

async function refuse(trays: Trays, refusal: Refusal): Promise<void> {
  const marker = beginQuarantine(trays, refusal);
  if (marker !== undefined) await finishQuarantine(trays, marker, refusal.isIdTaken);
}

function isTaken(trays: Trays, id: string, inFlight: ReadonlySet<string>): boolean | "refused" {
  const { storage } = trays;
  if (inFlight.has(foldId(id))) return true;
  if (storage.look(join(trays.processing, `${id}.json`)) !== undefined) return true;
  if (storage.look(join(trays.outbox, resultName(id))) !== undefined) return true;
  const failed = join(trays.failed, errorName(id));
  if (storage.look(failed) === undefined) return false;
  return isRefusal(trays, failed) ? "refused" : true;
}

function isAnyLive(world: World, kinds: readonly Program["kind"][]): boolean {
  return world.actors.some((a) => a.state === "live" && kinds.includes(a.program.kind));
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

function claimOne(api: Api, memory: Memory): Memory {
  const { trays } = api;
  for (const file of trays.storage.list(trays.processing)) {
    const name = parseName(file);
    if (name?.stage !== "ready") continue;
    const claim = claimReady(trays, name, api.newOwner());
    if (claim === undefined) continue;
    return { ...memory, held: { file: claim.file, text: textOf(trays, claim) } };
  }
  return memory;
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
  if (deed === "retry") putBack(trays, claim, 0, true);
  else if (deed === "release") putBack(trays, claim, 0, false);
  else if (deed === "requeue") requeue(trays, claim);
  else if (deed !== "beat" || renewClaim(trays, claim))
    await settle(api, claim, deed === "fail" ? "failed" : "completed", held?.text, by);
  return memory;
}

async function settle(
  { trays, ask }: Api,
  claim: Claim,
  status: "completed" | "failed",
  text: string | undefined,
  by: string,
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
  const settlement = newSettlement(claim, status, encodeRecord(record, text), name.token);
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
        endLease: () => Promise.resolve(),
        policyOf: (task) => ({ maxAttempts: task?.max_attempts ?? 2, agentId: name }),
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
        if (live?.id !== id || (live.stage !== "w" && (live.stage !== "ready" || !isFinal)))
          continue;
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

/** Runs a dead letter again. */
export function retrier(name: string, id: string, turnsMax: number): Program {
  return {
    name,
    kind: "operator",
    start: {},
    turnsMax,
    async run({ trays }, memory) {
      await retry(trays, id);
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
