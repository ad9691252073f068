/** Tells those who wait what is still open, and why: what does not start as soon as that is sure, all of it in the end. */
import { join } from "node:path";
import { readInboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { safe } from "../../text/render.ts";
import { processingPlaces } from "../../view/find-task.ts";
import { eachName } from "../../view/scan.ts";
import { WhyOpen } from "../../view/why-open.ts";
import type { Context } from "../shell/command-spec.ts";
import { openSettings } from "../shell/options.ts";

export interface OpenTask {
  id: string;
  /** As it reads after "it"; null when it cannot be told. */
  why: string | null;
}

export type WaitContext = Pick<Context, "out" | "json" | "stateDir" | "env">;

/** Something that was just dropped, or is being moved, is not said not to start (ms). */
const FIRST_MS = 500;
const AGAIN_MS = 1000;
/** So many are looked at each time, so many are told of while we wait, and so many in the end. */
const LOOKED_AT_MAX = 20;
const TOLD_MAX = 5;
const NAMED_MAX = 10;

export class OpenTasks {
  private readonly ctx: WaitContext;
  private readonly tree: StateTree;
  private readonly untilMs: number;
  private readonly told = new Set<string>();
  private before = new Map<string, string>();
  private atMs = performance.now() + FIRST_MS;
  private why: Promise<WhyOpen> | undefined;

  /** @param timeoutMs how long the caller waits at most */
  constructor(ctx: WaitContext, tree: StateTree, timeoutMs: number) {
    this.ctx = ctx;
    this.tree = tree;
    this.untilMs = Date.now() + timeoutMs;
  }

  /** When it wants to look again (ms from now). */
  get inMs(): number {
    return this.told.size >= TOLD_MAX ? Number.POSITIVE_INFINITY : this.atMs - performance.now();
  }

  /** Says which of them do not start, and why: each once, and only what is so at two looks. */
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

  /** What is open when the time is over: the first of these. */
  async list(ids: Iterable<string>): Promise<OpenTask[]> {
    const why = await this.look();
    return first(ids, NAMED_MAX).map((id) => ({ id, why: why.explain(id)?.text ?? null }));
  }

  /** A line on stderr for each, and one for the others. */
  say(open: readonly OpenTask[], count: number, isExact = true): void {
    for (const { id, why } of open)
      this.ctx.out.note(safe(`${id} has not settled in time${why === null ? "" : `: it ${why}`}`));
    const more = count - open.length;
    if (more > 0)
      this.ctx.out.note(`and ${more}${isExact ? "" : " or more"} others; see \`mailchute status\``);
  }

  /** The plan, as it is now. */
  async look(): Promise<WhyOpen> {
    this.why ??= openSettings(this.ctx)
      .catch(() => undefined)
      .then((loaded) => new WhyOpen(this.tree, loaded?.settings.agents, this.untilMs));
    const why = await this.why;
    await why.refresh();
    return why;
  }
}

/** Ids of what runs or waits, what runs first. */
export function* openIds(tree: StateTree): Iterable<string> {
  const places = processingPlaces(tree);
  for (const { id, state } of places) if (state !== "ready") yield id;
  for (const { id, state } of places) if (state === "ready") yield id;
  const ids: string[] = [];
  eachName(join(tree.mailbox, "inbox"), (name) => {
    const meaning = readInboxName(name);
    if (meaning.kind === "task") ids.push(meaning.id);
    return ids.length < LOOKED_AT_MAX;
  });
  yield* ids;
}

function first(ids: Iterable<string>, max: number): string[] {
  const found: string[] = [];
  for (const id of ids) {
    if (found.length === max) break;
    found.push(id);
  }
  return found;
}
