/** `why`: says why a task is in its state, since when, and what would move it. Only reads files. */
import { join } from "node:path";
import { openIdReaders } from "../../app/id-readers.ts";
import { type Context, defineCommand } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { DEFAULT_SETTINGS } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { readEnd, statOf } from "../../host/regular-file.ts";
import { localTime } from "../../text/local-time.ts";
import { ago, fold, paint, safe } from "../../text/render.ts";
import { noSuchTask } from "../../view/find-task.ts";
import { isFailedNode } from "../../view/id-reader.ts";
import { learnTask } from "../../view/know-task.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";
import { progressText } from "../../view/task-progress.ts";
import { WhyOpen } from "../../view/why-open.ts";
import { type Explanation, explainTask } from "./explain-task.ts";

const MARGIN = 10;
const TAIL_BYTES = 4096;

export const command = defineCommand({
  usage: "ID",
  args: { min: 1, max: 1 },
  details: [
    "Says whether a task waits for others, a slot, a quota, its time, a person, or an agent that is not there; since when; and the command that would move it. A node of the plan is explained, too.",
  ],
  examples: ["why deploy-eu"],
  options: {},
  async run(ctx) {
    const tree = existingTree(ctx);
    const explanation = await explain(ctx, tree, ctx.positionals[0] ?? "");
    if (ctx.json) ctx.out.json(explanation);
    else for (const line of render(explanation, ctx)) ctx.out.line(line);
    return EXIT.ok;
  },
});

/** @throws ErrTaskNotFound */
async function explain(ctx: Context, tree: StateTree, id: string): Promise<Explanation> {
  const settings = await openSettings(ctx).then(
    (loaded) => loaded.settings,
    () => undefined,
  );
  const why = new WhyOpen(
    tree,
    settings?.agents,
    Date.now(),
    openIdReaders(tree, settings?.agents),
  );
  await why.refresh();
  const open = why.explain(id);
  const known = await learnTask(tree, id);
  const isNode = why.others.ids().includes(id);
  if (known === undefined || (isNode && open !== undefined && known.state === "gone")) {
    if (!isNode) throw noSuchTask(id, "why");
    return {
      id,
      state: "node",
      why: open?.text ?? "is done",
      is_stuck: open?.isStuck ?? false,
      since_ms: null,
      do: open?.do ?? null,
      facts: [],
    };
  }
  return explainTask({
    known,
    open,
    isFailedNode: isFailedNode(why.others, id),
    snapshot: takeSnapshot(tree, Date.now()),
    maxAttempts: (settings ?? DEFAULT_SETTINGS).retry.max_attempts,
    cameMs: statOf(known.path)?.ctimeMs ?? null,
    progress: known.progress === null ? undefined : progressText(known.progress),
    lastLine:
      known.state === "running" && known.run !== null
        ? lastLineOf(known.run)
        : (known.elsewhere?.last_line ?? undefined),
  });
}

function lastLineOf(run: string): string | undefined {
  return readEnd(join(run, "stdout.log"), TAIL_BYTES)
    .trimEnd()
    .split(/\r?\n|\r/)
    .at(-1);
}

function render(one: Explanation, { colour, columns }: Context): string[] {
  const { id, why, since_ms: sinceMs, facts, do: todo } = one;
  const since =
    sinceMs === null
      ? []
      : [{ name: "since", text: `${localTime(sinceMs)}, ${ago(sinceMs, Date.now())}` }];
  const row = (name: string, [first = "", ...rest]: readonly string[]): string[] => [
    `  ${paint(colour, "bold", name.padEnd(MARGIN))}${first}`,
    ...rest.map((line) => " ".repeat(MARGIN + 2) + line),
  ];
  const room = Math.max(20, columns - MARGIN - 2);
  return [
    ...fold(`${safe(id)} ${safe(why)}`, columns),
    ...[...since, ...facts].flatMap(({ name, text }) =>
      // A path is not broken into lines, because people copy it.
      row(name, name === "file" ? [safe(text)] : fold(safe(text), room)),
    ),
    ...(todo === null ? [] : row("do", [safe(todo)])),
  ];
}
