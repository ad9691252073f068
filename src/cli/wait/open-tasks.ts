/**
 * Shows a waiting person which tasks are open, and why. It reports a task that does not start as soon as this is sure, and lists open
 * tasks at the end.
 */
import { openIdReaders } from "../../app/id-readers.ts";
import { closedPool, type PoolGate } from "../../core/gates.ts";
import { isUnclaimed } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { safe } from "../../text/render.ts";
import { idsIn, processingPlaces } from "../../view/find-task.ts";
import { poolOf, readSupervisor } from "../../view/supervisor.ts";
import { WhyOpen } from "../../view/why-open.ts";
import type { Context } from "../shell/command-spec.ts";
import { openSettings } from "../shell/options.ts";

export interface OpenTask {
  id: string;
  /** A phrase that fits after "it"; null when the reason is not known. */
  why: string | null;
}

export type WaitContext = Pick<Context, "out" | "json" | "stateDir" | "env">;

/** It reports nothing before this time (ms): a task that was just dropped, or is being moved, may start at once. */
const FIRST_MS = 500;
const AGAIN_MS = 1000;
/** How many tasks each look examines. */
const LOOKED_AT_MAX = 20;
/** How many tasks are reported while we wait. */
const TOLD_MAX = 5;
/** How many tasks are named at the end. */
const NAMED_MAX = 10;

export class OpenTasks {
  private readonly untilMs: number;
  private readonly told = new Set<string>();
  private before = new Map<string, string>();
  private atMs = performance.now() + FIRST_MS;
  private why: Promise<WhyOpen> | undefined;
  private poolAtMs = 0;
  private poolTold: PoolGate | undefined;

  /** @param timeoutMs the longest time that the caller waits */
  constructor(
    private readonly ctx: WaitContext,
    private readonly tree: StateTree,
    timeoutMs: number,
  ) {
    this.untilMs = Date.now() + timeoutMs;
  }

  /** Reports once, when it begins, why nothing at all starts. */
  tellPool(): void {
    if (performance.now() < this.poolAtMs) return;
    this.poolAtMs = performance.now() + AGAIN_MS;
    const nowMs = Date.now();
    const closed = closedPool(poolOf(readSupervisor(this.tree, nowMs), nowMs));
    if (closed !== undefined && closed.code !== this.poolTold && closed.goesOn !== true)
      this.ctx.out.note(safe(`${closed.why}; waiting (${closed.do})`));
    this.poolTold = closed?.code;
  }

  /** When `tell` will look again (ms from now). */
  get inMs(): number {
    return this.told.size >= TOLD_MAX ? Number.POSITIVE_INFINITY : this.atMs - performance.now();
  }

  /** Reports the tasks that do not start, with the reason: each once, and only after two looks with the same result. */
  async tell(ids: Iterable<string>): Promise<void> {
    if (this.inMs > 0) return;
    this.atMs = performance.now() + (this.before.size === 0 ? FIRST_MS : AGAIN_MS);
    const why = await this.look();
    const now = new Map<string, string>();
    for (const id of first(ids, LOOKED_AT_MAX)) {
      const found = why.explain(id);
      if (found?.isStuck !== true) continue;
      now.set(id, found.text);
      if (this.told.has(id) || this.before.get(id) !== found.text) continue;
      if (this.told.size === TOLD_MAX) break;
      this.told.add(id);
      this.ctx.out.note(safe(`${id} does not start: it ${found.text}`));
    }
    this.before = now;
  }

  /** The first of the tasks that are still open when the time is over, with reasons. */
  async list(ids: Iterable<string>): Promise<OpenTask[]> {
    const why = await this.look();
    return first(ids, NAMED_MAX).map((id) => ({ id, why: why.explain(id)?.text ?? null }));
  }

  /** Prints a line on stderr for each, and one for the others. */
  say(open: readonly OpenTask[], count: number, isExact = true): void {
    for (const { id, why } of open)
      this.ctx.out.note(safe(`${id} has not settled in time${why === null ? "" : `: it ${why}`}`));
    const more = count - open.length;
    if (more > 0)
      this.ctx.out.note(`and ${more}${isExact ? "" : " or more"} others; see \`mailchute status\``);
  }

  async look(): Promise<WhyOpen> {
    this.why ??= openSettings(this.ctx)
      .catch(() => undefined)
      .then((loaded) => {
        const agents = loaded?.settings.agents;
        return new WhyOpen(this.tree, agents, this.untilMs, openIdReaders(this.tree, agents));
      });
    const why = await this.why;
    await why.refresh();
    return why;
  }
}

/** Ids of running and waiting tasks, running ones first. */
export function* openIds(tree: StateTree): Iterable<string> {
  const places = processingPlaces(tree);
  for (const { id, name } of places) if (!isUnclaimed(name)) yield id;
  for (const { id, name } of places) if (isUnclaimed(name)) yield id;
  yield* idsIn(tree, "inbox", LOOKED_AT_MAX);
}

function first(ids: Iterable<string>, max: number): string[] {
  const found: string[] = [];
  for (const id of ids) if (found.push(id) >= max) break;
  return found;
}
