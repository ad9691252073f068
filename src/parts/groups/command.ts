/** `group` and `limit`: show groups and limits as they are in force, and change them while the pool runs. */
import {
  type Context,
  defineCommand,
  ErrUsage,
  numberOption,
  type OptionTable,
  textOption,
} from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { giveCommand, TIMEOUT, WAIT } from "../../cli/shell/give-command.ts";
import { existingTree } from "../../cli/shell/options.ts";
import { loadSettings } from "../../config/load-settings.ts";
import { BURST_MAX, WORKERS_MAX } from "../../core/limits.ts";
import { parseRate } from "../../core/rate.ts";
import { controlOf } from "../../core/saved-documents.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { suggest } from "../../core/suggest.ts";
import { type LimitChange, type LimitKind, TaskLimits } from "../../core/task-limits.ts";
import { loadDocument } from "../../host/documents.ts";
import { systemBucketClock } from "../../host/rate-bucket.ts";
import { countText, duration, safe, table } from "../../text/render.ts";
import { traysOf } from "../../view/find-task.ts";
import { CONFIG_NEWER, isConfigNewer, readSupervisor } from "../../view/supervisor.ts";
import { countInWork } from "./in-work.ts";
import { RateWatch } from "./rate-watch.ts";

const SLOTS = numberOption("N", "with set: how many of its tasks may run at once", {
  min: 0,
  max: WORKERS_MAX,
});
const DETAILS =
  "A change made with set holds until reset, even after a restart, and stops no running task. See docs/groups.md.";

const group = defineCommand({
  usage: "ls | set NAME --slots N | pause NAME | resume NAME | reset NAME",
  subcommands: {
    ls: "list the groups of config.yaml: their slots, and how many are taken",
    set: "change the slots of a group",
    pause: "start no task of the group; running ones go on to their end",
    resume: "start its tasks again",
    reset: "as config.yaml says again",
  },
  args: { min: 0, max: 1 },
  details: [DETAILS],
  examples: ["group set gpu --slots 1", "group pause gpu --wait"],
  options: { slots: SLOTS, wait: WAIT, timeout: TIMEOUT },
  async run(ctx) {
    const { slots } = ctx.options;
    if (ctx.subcommand === "ls") return list(ctx, "group");
    if (ctx.subcommand !== "set" && slots !== undefined)
      throw new ErrUsage(`--slots does not go with ${ctx.subcommand}`);
    switch (ctx.subcommand) {
      case "set":
        if (slots === undefined) throw new ErrUsage("group set needs --slots N");
        return change(ctx, "group", { slots });
      case "reset":
        return change(ctx, "group", { reset: true });
      default:
        return change(ctx, "group", { paused: ctx.subcommand === "pause" });
    }
  },
});

const limit = defineCommand({
  usage: "ls | set NAME [--slots N] [--rate N/UNIT] [--burst N] | reset NAME",
  subcommands: {
    ls: "list the limits of config.yaml: slots and rates, and what is taken",
    set: "change the slots, the rate or the burst of a limit",
    reset: "as config.yaml says again",
  },
  args: { min: 0, max: 1 },
  details: [DETAILS],
  examples: ["limit set github --rate 30/min --burst 5", "limit reset github"],
  options: {
    slots: SLOTS,
    rate: textOption("RATE", "with set: starts in a time, such as 60/min (s, min, h or d)"),
    burst: numberOption("N", "with set: so many of these starts may come at once", {
      min: 1,
      max: BURST_MAX,
    }),
    wait: WAIT,
    timeout: TIMEOUT,
  },
  async run(ctx) {
    const { slots, rate, burst } = ctx.options;
    const isGiven = slots !== undefined || rate !== undefined || burst !== undefined;
    if (ctx.subcommand === "ls") return list(ctx, "limit");
    if (ctx.subcommand === "reset") {
      if (isGiven) throw new ErrUsage("reset takes no --slots, --rate or --burst");
      return change(ctx, "limit", { reset: true });
    }
    if (!isGiven) throw new ErrUsage("limit set needs --slots, --rate or --burst");
    if (rate !== undefined && parseRate(rate) === undefined)
      throw new ErrUsage(`--rate: ${JSON.stringify(rate)} is no rate`, "such as 5/s, 60/min, 10/h");
    return change(ctx, "limit", { slots, rate, burst });
  },
});

type LimitContext = Context<OptionTable>;

function limitsOf(
  { env, stateDir }: LimitContext,
  tree: StateTree,
): { limits: TaskLimits; names: Record<LimitKind, string[]> } {
  const { settings } = loadSettings({ stateDir, env });
  const { limit_changes: changes } = controlOf(loadDocument(tree.controlState));
  const names = { group: Object.keys(settings.groups), limit: Object.keys(settings.limits) };
  return { limits: new TaskLimits(settings, changes), names };
}

/** Sends the command `set-limit`. Refuses a name that is not in config.yaml before it sends anything. */
function change(
  ctx: LimitContext,
  kind: LimitKind,
  args: Record<string, unknown>,
): Promise<number> {
  const tree = existingTree(ctx);
  const [name] = ctx.positionals;
  if (name === undefined) throw new ErrUsage(`${kind} ${ctx.subcommand} needs a name`);
  const known = limitsOf(ctx, tree).names[kind];
  if (!known.includes(name)) {
    const near = suggest(name, known);
    const hint = near === undefined ? `name it there (${kind}s)` : `did you mean ${near}?`;
    throw new ErrUsage(`no ${kind} ${JSON.stringify(name)} is in config.yaml`, hint);
  }
  return giveCommand(ctx, "set-limit", { [kind]: name, ...args });
}

interface Row extends LimitChange {
  name: string;
  in_work: number;
  /** Ms until a rate allows the next start; null without a rate. */
  next_ms: number | null;
  /** True if a command has changed it. */
  changed: boolean;
}

function list(ctx: LimitContext, kind: LimitKind): number {
  if (ctx.positionals.length > 0) throw new ErrUsage(`${kind} ls takes no name`);
  const tree = existingTree(ctx);
  const { limits, names } = limitsOf(ctx, tree);
  const counts = countInWork(traysOf(tree), limits);
  const rows = names[kind].map((name): Row => {
    const rate = kind === "limit" ? limits.rateOf(name) : undefined;
    const watch = rate && new RateWatch(tree.limits, name, systemBucketClock());
    return {
      name,
      ...limits.settingsOf(kind, name),
      in_work: counts.get(`${kind}:${name}`) ?? 0,
      next_ms: rate === undefined || watch === undefined ? null : watch.waitMs(rate),
      changed: limits.changeOf(kind, name) !== undefined,
    };
  });
  if (ctx.json) ctx.out.json({ [`${kind}s`]: rows });
  else if (rows.length === 0)
    ctx.out.note(`config.yaml names no ${kind}s; docs/groups.md says how to add one`);
  else {
    const columns = [
      { title: "NAME", min: 8 },
      { title: "RUNNING", align: "right" as const },
      { title: "SLOTS", align: "right" as const },
      { title: kind === "group" ? "LIMITS" : "RATE", min: 8 },
      { title: "NOW" },
    ];
    const cells = rows.map((row) => [
      safe(row.name),
      countText(row.in_work),
      row.slots === undefined ? "-" : countText(row.slots),
      kind === "group" ? limits.namesOf(row.name).join(" ") || "-" : rateText(row),
      nowText(row),
    ]);
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  }
  if (!ctx.json && isConfigNewer(tree, readSupervisor(tree, Date.now())))
    ctx.out.note(`${CONFIG_NEWER.what}; do: ${CONFIG_NEWER.do}`);
  return EXIT.ok;
}

function rateText({ rate, burst }: Row): string {
  if (rate === undefined) return "-";
  return burst === undefined ? rate : `${rate}, burst ${burst}`;
}

function nowText({ paused, changed, in_work: count, slots, next_ms: nextMs }: Row): string {
  const texts = [
    ...(paused === true ? ["paused"] : []),
    ...(slots !== undefined && count >= slots ? ["full"] : []),
    ...(nextMs !== null && nextMs > 0 ? [`next start in ${duration(nextMs)}`] : []),
    ...(changed ? ["changed by a command"] : []),
  ];
  return texts.join(", ");
}

export const commands = { group, limit };
