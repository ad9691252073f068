/**
 * Skips the tasks in the inbox that depend on a failed one, directly or through others, and those whose key another task has. It settles
 * them in slices, those nearest to the failed one first, so that a large graph delays nothing else.
 */
import { type Skip, skipOf, skipText } from "../../core/dependencies.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import type { EventSubject } from "../../core/events.ts";
import { foldId, leaseOf } from "../../core/names.ts";
import { duplicateText } from "../../core/skipped.ts";
import { tellConflict } from "../../journal/alerts.ts";
import { recordConflict, recordSettled } from "../../journal/attempts.ts";
import type { Claim } from "../../mailbox/claim/claim.ts";
import { requeue } from "../../mailbox/claim/requeue.ts";
import {
  duplicateOf,
  hasErrorRecord,
  isFailed,
  lastOf,
  skipAfter,
} from "../../mailbox/find/failures.ts";
import {
  claimToSkip,
  type Duplicate,
  NO_AGENT,
  recheckSkip,
  skipClaimed,
  skipDuplicate,
} from "../../mailbox/retry/skip.ts";
import { type Settlement, settleAll } from "../../mailbox/settle/settle.ts";
import type { Environment } from "../environment/environment.ts";
import type { Parts } from "../environment/parts.ts";
import { NEVER, type Service } from "../environment/service.ts";
import type { Completions } from "./completions.ts";
import { ListedIds } from "./listed-ids.ts";
import type { Queue } from "./queue.ts";

type SkipperEnvironment = Pick<Environment, "trays" | "telemetry" | "alerts" | "facts" | "wake">;

/** One slice takes tasks for about this long (ms). To settle them takes as long again. */
const TAKE_MS = 4;
/** How many tasks are settled at once: with `power` each slice waits for the disk. */
const SLICE_TASKS_MAX = 256;
/** How many newly awaited ids one tick looks at. */
const LOOKS_MAX = 256;
/** Pause before a step that the disk refused is tried again (ms). */
const AGAIN_MS = 1000;

interface Skipped {
  why: Skip | Duplicate;
  settlement: Settlement;
}

function isDuplicate(why: Skip | Duplicate): why is Duplicate {
  return "of" in why;
}

function subjectOf({ claim: { name }, task }: Pick<Settlement, "claim" | "task">): EventSubject {
  const { id, attempt } = name;
  return { task_id: id, agent_id: NO_AGENT, attempt, lease: leaseOf(name), group: task?.group };
}

export class Skipper implements Service {
  private readonly ids: ListedIds;
  /** The tasks whose key another task holds, by folded id. */
  private readonly duplicates = new Map<string, Duplicate & { id: string }>();
  /** Duplicates that other tasks depend on, by the folded id of the task that holds their key. */
  private readonly followers = new Map<string, Set<string>>();
  /** Why the dependents of each failed task are skipped, by the folded id of that task: first in, first out. */
  private readonly failures = new Map<string, Skip>();
  /** How many tasks were skipped for each failed root since it was last reported. */
  private readonly untold = new Map<string, number>();
  private running: Promise<void> | undefined;
  /** Skipped tasks that the disk refused to settle. */
  private unfinished: Skipped[] = [];
  /** Claimed tasks that must not be skipped, until they are back in the inbox. */
  private toGiveBack: Claim[] = [];
  /** When the work continues after the disk refused a step (monotonic ms). */
  private againAtMs = 0;

  /** @param newOwner see `skippingSequence` */
  constructor(
    private readonly env: SkipperEnvironment,
    private readonly queue: Pick<Queue, "backlog" | "ids">,
    private readonly completions: Completions,
    private readonly parts: Parts,
    private readonly newOwner: () => string,
  ) {
    this.ids = new ListedIds(env.trays);
    env.facts.on("task:failed", (id) => {
      this.lookAt(id);
      this.lookAtFollowers(id);
    });
    env.facts.on("task:settled", (id) => this.lookAtFollowers(id));
    env.facts.on("journal:completed", (id) => this.lookAtFollowers(id));
    env.facts.on("task:key-taken", (id, key, of) => {
      this.duplicates.set(foldId(id), { id, key, of });
    });
  }

  /** True while a slice is being settled, or when there is work that can begin at once. */
  get isBusy(): boolean {
    return this.running !== undefined || this.nextMs(this.nowMs()) <= this.nowMs();
  }

  work(): void {
    for (const id of this.queue.backlog.takeNewlyAwaited(LOOKS_MAX)) this.lookAt(id);
    if (this.running !== undefined || this.nowMs() < this.againAtMs) return;
    const slice = this.unfinished.splice(0);
    if (slice.length === 0 && this.giveBack()) slice.push(...this.takeSlice());
    if (slice.length > 0) this.settle(slice);
    else if (this.failures.size + this.duplicates.size === 0) this.tell();
  }

  nextMs(nowMs: number): number {
    if (this.running !== undefined) return NEVER;
    if (this.queue.backlog.hasNewlyAwaited) return nowMs;
    const toSkip = this.failures.size + this.duplicates.size;
    const isIdle = toSkip + this.unfinished.length + this.toGiveBack.length === 0;
    return isIdle ? NEVER : this.againAtMs;
  }

  /** Resolves when no slice is being settled. */
  async idle(): Promise<void> {
    await this.running;
    this.tell();
  }

  /** True if a waiting task depends on a duplicate of this task: then the record of this task is needed, too. */
  isNeeded(id: string): boolean {
    const { backlog } = this.queue;
    return [...(this.followers.get(foldId(id)) ?? [])].some((one) => backlog.isNeeded(one));
  }

  private nowMs(): number {
    return this.env.trays.clock.monotonicMs();
  }

  /** Notes the failure of a task that other tasks wait for. A node of the plan is left to the plan, which may open it again. */
  private lookAt(id: string): void {
    const { backlog } = this.queue;
    const key = foldId(id);
    if (!backlog.isAwaited(id) || this.failures.has(key)) return;
    try {
      const failed = this.completions.failedAs(id);
      if (failed === undefined) return;
      const why = skipAfter(this.env.trays, failed);
      if (why === undefined) this.follow(id, failed);
      if (why === undefined || this.parts.hasEnded(id) === false) return;
      backlog.resolveEnd(id);
      if (this.parts.hasEnded(id) === undefined) this.failures.set(key, why);
    } catch (error) {
      // The next check of all dependencies finds it.
      this.goOnLater(error);
    }
  }

  /** Makes the tasks that depend on a duplicate wait for the task that holds its key. */
  private follow(id: string, failed: string): void {
    const of = duplicateOf(this.env.trays, failed);
    if (of === undefined) return;
    const last = lastOf(this.env.trays, of);
    const followers = this.followers.get(foldId(last));
    if (followers === undefined) this.followers.set(foldId(last), new Set([id]));
    else followers.add(id);
    if (this.completions.isMet({ id: last, required: "done" }))
      this.queue.backlog.resolveDependency(id);
  }

  private lookAtFollowers(id: string): void {
    const followers = this.followers.size === 0 ? undefined : this.followers.get(foldId(id));
    if (followers === undefined) return;
    for (const one of followers) {
      this.lookAt(one);
      if (!this.queue.backlog.isNeeded(one)) followers.delete(one);
    }
    if (followers.size === 0) this.followers.delete(foldId(id));
  }

  /** Claims tasks in the inbox, each after the task that causes its skip. */
  private takeSlice(): Skipped[] {
    const slice: Skipped[] = [];
    if (this.failures.size + this.duplicates.size === 0) return slice;
    const inSlice = new Set<string>();
    const untilMs = this.nowMs() + TAKE_MS;
    const isFull = (): boolean => slice.length >= SLICE_TASKS_MAX || this.nowMs() >= untilMs;
    const failedRoots = new Map<string, boolean>();
    try {
      this.ids.refresh();
      for (const [key, one] of this.duplicates) {
        if (isFull()) return slice;
        const settlement = this.take(one.id, one);
        this.duplicates.delete(key);
        if (settlement !== undefined) slice.push({ why: one, settlement });
      }
      for (const [key, why] of this.failures) {
        // The failed task may have been put back since then, but hardly before its root: one look at the root serves all that it
        // has skipped.
        const isRootStill = failedRoots.get(why.root) ?? hasErrorRecord(this.env.trays, why.root);
        failedRoots.set(why.root, isRootStill);
        const isStill = isRootStill || inSlice.has(key) || this.hasFailedStill(why);
        for (const { id } of isStill ? this.queue.backlog.waitersOf(why.cause) : []) {
          if (isFull()) return slice;
          const settlement = this.take(id, why);
          if (settlement === undefined) continue;
          slice.push({ why, settlement });
          inSlice.add(foldId(id));
          if (this.queue.backlog.isAwaited(id)) this.failures.set(foldId(id), skipOf(id, why));
        }
        this.failures.delete(key);
      }
    } catch (error) {
      this.goOnLater(error);
    }
    return slice;
  }

  /** Undefined when the task must not be skipped. @throws a system error */
  private take(id: string, why: Skip | Duplicate): Settlement | undefined {
    const { trays, facts } = this.env;
    const { backlog, ids } = this.queue;
    // The part that owns the task handles it.
    if (this.parts.ownerOf(id) !== undefined) return undefined;
    if (ids.isTaken(id, this.ids) !== false) {
      backlog.remove(id);
      facts.emit("task:duplicate", `${id}.json`);
      return undefined;
    }
    ids.freeRefused(id);
    const claim = claimToSkip(trays, id, this.newOwner());
    backlog.remove(id);
    facts.emit("inbox:taken", `${id}.json`);
    if (claim === undefined) {
      facts.emit("inbox:written", `${id}.json`);
      return undefined;
    }
    try {
      const settlement = isDuplicate(why)
        ? skipDuplicate(trays, claim, why)
        : skipClaimed(trays, claim, why);
      if (settlement !== undefined) return settlement;
    } catch (error) {
      this.toGiveBack.push(claim);
      throw error;
    }
    this.toGiveBack.push(claim);
    this.giveBack();
    return undefined;
  }

  /** Puts tasks back into the inbox. @returns whether none is left */
  private giveBack(): boolean {
    try {
      for (let claim = this.toGiveBack[0]; claim !== undefined; claim = this.toGiveBack[0]) {
        requeue(this.env.trays, claim);
        this.toGiveBack.shift();
        this.env.facts.emit("inbox:written", `${claim.name.id}.json`);
      }
    } catch (error) {
      this.goOnLater(error);
    }
    return this.toGiveBack.length === 0;
  }

  private goOnLater(error: unknown): void {
    this.againAtMs = this.nowMs() + AGAIN_MS;
    this.env.alerts.report(
      `skip:${systemCode(error)}`,
      `cannot skip what depends on a failed task: ${messageOf(error)}; trying again`,
    );
  }

  /** With durability `process` all is done when this returns. */
  private settle(slice: readonly Skipped[]): void {
    const [first] = slice;
    if (first !== undefined) this.ids.noteNew(first.settlement.claim.path);
    this.running = this.settleSlice(slice)
      .catch((error: unknown) => this.goOnLater(error))
      .finally(() => {
        this.running = undefined;
        this.env.wake();
      });
  }

  private async settleSlice(slice: readonly Skipped[]): Promise<void> {
    const { trays, telemetry } = this.env;
    const byMarker = new Map(slice.map((one) => [one.settlement.marker, one]));
    const settlements = slice.map(({ settlement }) => settlement);
    await settleAll(trays, settlements, (published) => {
      const putBack: Promise<unknown>[] = [];
      const faults: unknown[] = [];
      // All records are visible now, so one look at each dependency is enough.
      const failedStill = new Map<string, boolean>();
      for (const settlement of published) {
        const why = byMarker.get(settlement.marker)?.why;
        if (why === undefined) continue;
        this.record(settlement, why);
        if (isDuplicate(why)) continue;
        const isStill = failedStill.get(why.cause) ?? this.hasFailedStill(why);
        failedStill.set(why.cause, isStill);
        if (!isStill) this.failures.delete(foldId(why.cause));
        const again = recheckSkip(trays, settlement.claim.name.id, why.cause, isStill);
        // Catch the error at once: a later step may throw before these promises are awaited.
        if (again !== undefined) putBack.push(again.catch((error) => faults.push(error)));
      }
      telemetry.flush();
      if (putBack.length === 0) return undefined;
      return Promise.all(putBack).then(() => {
        if (faults.length > 0) throw faults[0];
      });
    });
    for (const { settlement } of slice) this.noteUnsettled(settlement);
    const failed = slice.filter(({ settlement }) => settlement.error !== undefined);
    this.unfinished.push(...failed);
    if (failed[0] !== undefined) this.goOnLater(failed[0].settlement.error);
  }

  /** Another process took the task, or the record has another name: looks again at the tasks that depend on it. */
  private noteUnsettled(settlement: Settlement): void {
    const { outcome, phase, claim, recordAs } = settlement;
    if (phase !== "done" || outcome === "settled") return;
    const { id } = claim.name;
    this.failures.delete(foldId(id));
    if (recordAs !== undefined) {
      recordConflict(this.env.telemetry, subjectOf(settlement), recordAs);
      tellConflict(this.env.alerts, id, recordAs);
    }
    this.lookAt(id);
  }

  /** Whether the cause of a skip still counts as failed. A duplicate keeps its record even after the task with its key was put back. */
  private hasFailedStill({ cause, chain }: Skip): boolean {
    const { trays } = this.env;
    const mayFollow = chain.length > 1 && this.followers.size > 0;
    return mayFollow ? isFailed(trays, cause) : hasErrorRecord(trays, cause);
  }

  private record(settlement: Settlement, why: Skip | Duplicate): void {
    const { claim, mayBeRecorded } = settlement;
    const details = {
      isCompleted: false,
      acquiredAtMs: 0,
      pid: process.pid,
      durationMs: null,
      ...(isDuplicate(why)
        ? { error: duplicateText(why.of), kind: "duplicate_key", of: why.of }
        : { error: skipText(why), kind: "dependency_failed", skip: why }),
    };
    recordSettled(this.env.telemetry, subjectOf(settlement), details, mayBeRecorded);
    if (!isDuplicate(why)) this.untold.set(why.root, (this.untold.get(why.root) ?? 0) + 1);
    this.env.facts.emit("task:skipped", claim.name.id, isDuplicate(why));
  }

  /** Reports one line for each root, however many tasks were skipped because of it. */
  private tell(): void {
    for (const [root, count] of this.untold) {
      this.untold.delete(root);
      const what = count === 1 ? "1 task was skipped" : `${count} tasks were skipped`;
      this.env.alerts.alert(
        "tasks_skipped",
        `${what}, because ${root} failed; \`mailchute retry ${root}\` puts all back`,
      );
    }
  }
}
