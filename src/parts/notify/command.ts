/** `notify ls`: shows the targets of notifications, and whether the last messages arrived. `notify test` sends a message now. */
import os from "node:os";
import { basename, dirname } from "node:path";
import { type Context, defineCommand, ErrUsage } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { compact } from "../../core/compact.ts";
import { type NotifySettings, topicsOf } from "../../core/notify-settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { ago, counted, safe, wrap } from "../../text/render.ts";
import { type NotifyState, newTarget, notifyStates, STATE } from "./notify-state.ts";
import { sendMessage } from "./send.ts";

export const command = defineCommand({
  usage: "ls | test [NAME]",
  subcommands: {
    ls: "show the targets, when each got its last message, and what is on its way",
    test: "send a short message to each target, or to NAME; exit code 1: one did not get it",
  },
  args: { min: 0, max: 1 },
  details: [
    "The targets are those of `notify` in config.yaml: programs or urls.",
    "Messages are sent while `mailchute run` is on. Each has an id and is sent again until it is received, also after a crash; what happens until then becomes one message.",
  ],
  examples: ["notify test phone"],
  options: {},
  async run(ctx) {
    const [name] = ctx.positionals;
    const tree = existingTree(ctx);
    const { settings } = await openSettings(ctx);
    const targets = settings.notify.filter((one) => name === undefined || one.name === name);
    if (name !== undefined && targets.length === 0)
      throw new ErrUsage(
        `notify in config.yaml has no ${JSON.stringify(name)}`,
        "mailchute notify ls lists them",
      );
    if (targets.length === 0) return await tellNone(ctx);
    return ctx.subcommand === "test"
      ? await test(ctx, tree, targets)
      : await list(ctx, tree, targets);
  },
});

async function tellNone(ctx: Context): Promise<number> {
  if (ctx.json) ctx.out.json({ targets: [] });
  else
    await ctx.out.raw("config.yaml has no notify, so no messages are sent. See docs/notify.md\n");
  return EXIT.ok;
}

async function test(
  ctx: Context,
  tree: StateTree,
  targets: readonly NotifySettings[],
): Promise<number> {
  const nowMs = Date.now();
  const from = { env: process.env, host: os.hostname(), stateDir: tree.dir, nowMs };
  const message = {
    id: `test-${nowMs.toString(36)}`,
    made_at_ms: nowMs,
    title: `mailchute ${basename(dirname(tree.dir))}: a test`,
    text: "This is a test message.",
    counts: {},
  };
  const results = await Promise.all(
    targets.map(async (target) => {
      const result = await sendMessage(target, message, from);
      return {
        name: target.name,
        ...(result.isSent ? { sent: true } : { sent: false, why: result.why }),
      };
    }),
  );
  if (ctx.json) ctx.out.json({ targets: results });
  else
    for (const result of results) {
      const said = "why" in result ? `not sent: ${safe(String(result.why))}` : "sent";
      await ctx.out.raw(`${wrap(`${result.name}: ${said}`, ctx.columns).join("\n")}\n`);
    }
  return results.every(({ sent }) => sent) ? EXIT.ok : EXIT.failed;
}

async function list(
  ctx: Context,
  tree: StateTree,
  targets: readonly NotifySettings[],
): Promise<number> {
  const state = notifyStates(tree.dir).load(STATE);
  const rows = targets.map((target) => rowOf(target, state));
  if (ctx.json) {
    ctx.out.json({ targets: rows });
    return EXIT.ok;
  }
  for (const row of rows)
    await ctx.out.raw(`${wrap(describe(row, Date.now()), ctx.columns).join("\n")}\n`);
  return EXIT.ok;
}

type Row = ReturnType<typeof rowOf>;

function rowOf(target: NotifySettings, state: NotifyState | undefined) {
  const known = state?.targets[target.name] ?? newTarget();
  return {
    name: target.name,
    // Only the origin is shown: often the secret path of a url is its only protection.
    to: target.url === undefined ? (target.command?.[0] ?? "") : new URL(target.url).origin,
    on: topicsOf(target),
    sent_at_ms: known.sent_at_ms,
    ...compact({
      at: target.at,
      waiting: known.pending?.title,
      tries: known.pending === undefined ? undefined : known.tries,
      error: known.error,
    }),
  };
}

function describe(
  { name, to, on, at, sent_at_ms: sentAtMs, waiting, tries, error }: Row,
  nowMs: number,
): string {
  const last = sentAtMs === 0 ? "nothing sent yet" : `last sent ${ago(sentAtMs, nowMs)}`;
  const when = at === undefined ? "" : ` (at ${at})`;
  const open =
    waiting === undefined
      ? ""
      : `; on its way, tried ${counted(tries ?? 0, "time")}: ${safe(waiting)}`;
  const fault = error === undefined ? "" : `; ${safe(error)}`;
  return `${name}: ${safe(to)}, on ${on.join(", ")}${when}; ${last}${open}${fault}`;
}
