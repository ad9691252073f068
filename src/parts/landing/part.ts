/**
 * Submits the landing of a task whose record says `landing: pending`. Releases a landing that waits for a person or an agent. It
 * reads the orders in `landings/`, which workers write before their tasks settle, so it also finishes the work of a dead process.
 */
import type { Apart } from "../../core/apart.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closedGate } from "../../core/gates.ts";
import { LANDING_GROUP, landingGateOf, landingIdOf } from "../../core/landing.ts";
import { foldId } from "../../core/names.ts";
import { landingFileOf, landingsDir } from "../../core/state-tree.ts";
import type { DependencyState } from "../../core/unmet.ts";
import type { Lane } from "../../core/waiting-task.ts";
import { statOf } from "../../host/regular-file.ts";
import { ordersApart } from "../../supervisor/environment/orders-apart.ts";
import type {
  DependencySource,
  GroupSource,
  Part,
  StartLimit,
  StatusSource,
  Unlanded,
  WorkSource,
} from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { listWork, readWork } from "../../view/landing.ts";
import { type LandingOrder, listOrders, readLanding, stateOf } from "../../worker/landing-files.ts";
import { advance, type Step } from "./advance.ts";
import { isThere } from "./submit-landing.ts";

/** How often it looks at landings that wait or are not submitted yet (ms). */
const LOOK_MS = 300;
/** How often it asks git whether landed work is still on a branch (ms). */
const RECHECK_MS = 5 * 60_000;
/** At most this many tasks are named in an alert. */
const NAMED_MAX = 10;

interface Entry {
  order: LandingOrder;
  step: Step;
}

class LandingPart
  implements Part, DependencySource, GroupSource, StartLimit, StatusSource, WorkSource
{
  readonly ports = {
    dependencies: this,
    groups: this,
    startLimit: this,
    status: this,
    work: this,
  };
  version = 0;
  gates: readonly ClosedGate[] = [];
  private readonly env: PartHost["env"];
  /** Orders whose work has not landed, by folded id. */
  private readonly open = new Map<string, Entry>();
  private unlandedOf: { version: number; map: Unlanded } | undefined;
  /** The landings that wait at their gates, and the reasons, by gate. */
  private readonly waits = new Map<string, { order: LandingOrder; why: string; untilMs: number }>();
  /** The stamps of the orders that were taken over, by task id. */
  private readonly seen = new Map<string, string>();
  private dirMtimeMs = 0;
  /** The folder of the orders cannot be listed: no task can be said to have landed. */
  private isUnreadable = false;
  private isDue = true;
  private lookAtMs = 0;
  private recheckAtMs = 0;
  /** Landed work that was on no branch at the last look. */
  private lost = "";
  private busy: Promise<void> | undefined;

  private readonly orders: Apart;
  private stuckCount = 0;
  private readonly waiting: Apart;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.orders = ordersApart(env, "the landing of");
    this.waiting = ordersApart(env, "the wait of the landing of");
    const note = (): void => {
      this.isDue = true;
    };
    env.facts.on("task:settled", note);
    env.facts.on("task:vanished", note);
    env.facts.on("task:accepted", note);
  }

  async start(): Promise<void> {
    await this.look();
    await this.recheck();
  }

  work({ nowMs }: Tick): void {
    if (this.busy !== undefined || nowMs < this.lookAtMs) return;
    if (this.dirMtimeMs > 0 && nowMs >= this.recheckAtMs) void this.recheck();
    if (!this.isDue && this.nothingIsOpen) return;
    // Not at each tick, because each look costs a system call and thousands of tasks may settle.
    this.lookAtMs = nowMs + LOOK_MS;
    this.isDue = false;
    if (!this.hasOrders()) return;
    this.busy = this.look().finally(() => {
      this.busy = undefined;
      this.env.wake();
    });
  }

  nextMs(): number {
    if (this.busy !== undefined) return NEVER;
    if (!this.isDue && this.nothingIsOpen) return this.dirMtimeMs > 0 ? this.recheckAtMs : NEVER;
    return this.lookAtMs;
  }

  async finish(): Promise<void> {
    await this.busy;
    await this.look();
  }

  canStart(): boolean {
    return false;
  }

  isBusy(): boolean {
    return this.busy !== undefined || (this.isDue && this.hasOrders());
  }

  /** False while a task may have settled whose landing is not submitted yet. */
  isIdle(): boolean {
    const isWaited = ({ order, step }: Entry): boolean =>
      step === "unsettled" && !this.orders.isStuck(order.task_id);
    return !this.isBusy() && ![...this.open.values()].some(isWaited);
  }

  isDone(id: string): boolean | undefined {
    this.readNew();
    const found = this.open.get(foldId(id));
    if (found === undefined) return this.isUnreadable ? false : undefined;
    return found.step === "void" ? undefined : false;
  }

  standing(id: string): DependencyState | undefined {
    this.readNew();
    const found = this.open.get(foldId(id));
    if (found === undefined && this.isUnreadable)
      return { is: "stuck", how: "may not have landed: see the alerts (mailchute alerts)" };
    // Until its task has settled, the state of that task counts.
    const isEarly = found?.step === "unsettled" && !this.orders.isStuck(found.order.task_id);
    return found === undefined || isEarly ? undefined : this.standingOf(found);
  }

  /** Also has orders whose task has not settled. The caller must know whether it has. */
  unlanded(): Unlanded {
    this.readNew();
    const { version } = this;
    if (this.unlandedOf?.version !== version) {
      const all = [...this.open].flatMap(([key, entry]): [string, DependencyState][] => {
        const standing = this.standingOf(entry);
        return standing === undefined ? [] : [[key, standing]];
      });
      this.unlandedOf = { version, map: new Map(all) };
    }
    return this.unlandedOf.map;
  }

  private standingOf({ order, step }: Entry): DependencyState | undefined {
    const { task_id } = order;
    if (step === "void") return undefined;
    if (this.orders.isStuck(task_id))
      return { is: "stuck", how: "cannot land: see the alerts (mailchute alerts)" };
    if (step === "failed")
      return { is: "stuck", how: `did not land (mailchute show ${landingIdOf(task_id)})` };
    const why = this.waits.get(landingGateOf(task_id))?.why;
    return { is: "moving", how: why === undefined ? "is about to land" : `has not landed: ${why}` };
  }

  mayPass(_lane: Lane, { gate }: ClosedGate): boolean {
    return (this.waits.get(gate)?.untilMs ?? 0) <= this.env.trays.clock.wallMs();
  }

  /** See `GroupSource`. */
  get hasGroups(): boolean {
    return this.dirMtimeMs > 0;
  }

  /** One landing of a repository at a time. */
  slotsOf(group: string): number | undefined {
    return LANDING_GROUP.test(group) ? 1 : undefined;
  }

  /** True if all open orders could not land. These are looked at only when something happens. */
  private get nothingIsOpen(): boolean {
    return [...this.open.values()].every(({ step }) => step === "failed");
  }

  /** Costs one stat of a directory, which is missing until a task leaves work to land. */
  private hasOrders(): boolean {
    return this.open.size > 0 || this.mtimeMs() !== this.dirMtimeMs;
  }

  private mtimeMs(): number {
    const stats = statOf(landingsDir(this.env.tree.dir));
    return stats?.mtimeMs ?? 0;
  }

  /** Takes over new orders, the oldest first, so that work lands in the order in which it was done. */
  private readNew(): void {
    const mtimeMs = this.mtimeMs();
    if (mtimeMs === this.dirMtimeMs && !this.isUnreadable) return;
    const { dir } = this.env.tree;
    const orders = this.list();
    if (orders === undefined) return;
    const fresh = orders
      .map((id) => ({ id, ...this.stampOf(id) }))
      .filter(({ id, stamp }) => this.seen.get(id) !== stamp)
      .sort((a, b) => a.atMs - b.atMs);
    for (const { id, stamp } of fresh) {
      const order = readLanding(dir, id, "order");
      if (order === undefined) continue;
      // With `land: branch` the work lands when a person says so. Nothing waits for it before.
      const { lease } = readLanding(dir, id, "sent") ?? {};
      if (order.land === "branch" && lease !== order.lease) continue;
      this.seen.set(id, stamp);
      const isOpen = this.open.get(foldId(id))?.order.lease === order.lease;
      if (isOpen || (lease === order.lease && stateOf(dir, order).landed === true)) continue;
      this.open.set(foldId(id), { order, step: "unsettled" });
      this.version++;
    }
    this.dirMtimeMs = mtimeMs;
  }

  /** Undefined when the folder cannot be listed. Then tasks that depend on others wait, because their work may not have landed. */
  private list(): string[] | undefined {
    const { dir } = this.env.tree;
    const before = this.isUnreadable;
    this.isUnreadable = false;
    try {
      return listOrders(dir);
    } catch (error) {
      this.isUnreadable = true;
      this.env.alerts.report(
        "landings:list",
        `cannot read the landings: ${messageOf(error)}; tasks that depend on others wait: make it a directory that mailchute may read, or move it away`,
      );
      return undefined;
    } finally {
      if (this.isUnreadable !== before) this.version++;
    }
  }

  /** When the order was written, and a stamp that changes with the order and when a person lands it again. */
  private stampOf(id: string): { atMs: number; stamp: string } {
    const [order, sent] = (["order", "sent"] as const).map((what) =>
      statOf(landingFileOf(this.env.tree.dir, id, what)),
    );
    const stamp = [order, sent].map((stats) => `${stats?.ino} ${stats?.mtimeMs}`).join(" ");
    return { atMs: order?.mtimeMs ?? 0, stamp };
  }

  private async look(): Promise<void> {
    try {
      this.readNew();
      await this.orders.each(
        this.open,
        ([, { order }]) => order.task_id,
        ([key, entry]) => this.advance(key, entry),
      );
      const stuck = [...this.open.values()].filter(({ order }) =>
        this.orders.isStuck(order.task_id),
      );
      if (stuck.length !== this.stuckCount) this.version++;
      this.stuckCount = stuck.length;
      this.readWaits();
    } catch (error) {
      this.env.alerts.report("landings", `cannot submit a landing: ${messageOf(error)}`);
    }
  }

  /** Tells when a person has deleted a target or set it back, so that landed work is on no branch any more. */
  private async recheck(): Promise<void> {
    const { trays, alerts } = this.env;
    this.recheckAtMs = trays.clock.monotonicMs() + RECHECK_MS;
    if (this.dirMtimeMs === 0) return;
    try {
      await this.findLost();
    } catch (error) {
      alerts.report("landings:lost", `cannot check what has landed: ${messageOf(error)}`);
    }
  }

  private async findLost(): Promise<void> {
    const { tree, alerts } = this.env;
    const landed = new Set(
      listWork(tree).flatMap((one) => (one.state === "landed" ? [one.task_id] : [])),
    );
    const works = await readWork(tree);
    const lost = works.flatMap(({ task_id: id, state }) =>
      state === "failed" && landed.has(id) ? [id] : [],
    );
    const before = this.lost;
    this.lost = lost.join();
    if (lost.length === 0 || this.lost === before) return;
    const more = lost.length > NAMED_MAX ? ` and ${lost.length - NAMED_MAX} more` : "";
    alerts.alert(
      "landed_work_lost",
      `the work of ${lost.slice(0, NAMED_MAX).join(", ")}${more} had landed, and is on no branch any more: its target was deleted or set back. The commits are kept; mailchute land ID --again brings them back`,
    );
  }

  private async advance(key: string, entry: Entry): Promise<void> {
    const before = entry.step;
    entry.step = await advance(this.env, entry.order);
    if (entry.step === "landed" || entry.step === "void") this.open.delete(key);
    if (entry.step !== before) this.version++;
    // Emitted last, because its listeners ask what has not landed.
    if (entry.step === "landed") this.env.facts.emit("journal:completed", entry.order.task_id);
  }

  private readWaits(): void {
    const { tree, trays } = this.env;
    this.readNew();
    const words = (): string => [...this.waits.values()].map(({ why }) => why).join("\n");
    const before = words();
    this.waits.clear();
    const readWait = ({ order, step }: Entry): void => {
      // The landing may have ended without a run, for example by a cancel.
      if (step === "failed") return;
      const { wait } = stateOf(tree.dir, order);
      if (wait === null) return;
      const isMending = wait.on !== null && isThere(trays, wait.on);
      const untilMs = isMending ? NEVER : wait.on === null ? wait.until_ms : 0;
      this.waits.set(landingGateOf(order.task_id), { order, why: wait.why, untilMs });
    };
    this.waiting.eachNow(this.open.values(), ({ order }) => order.task_id, readWait);
    this.gates = [...this.waits].map(([gate, { order, why, untilMs }]) => {
      const until_ms = untilMs === NEVER ? 0 : untilMs;
      const text = `the landing of ${order.task_id} waits: ${why}`;
      return closedGate(gate, text, "wait, it looks again by itself", { until_ms });
    });
    if (words() !== before) this.version++;
  }
}

export const landing: MakePart = (host) => new LandingPart(host);
