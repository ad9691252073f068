/** `stats`: counts the tasks that ended in a period, and shows how long they waited and ran. Reads the journal; changes nothing. */
import { type Context, defineCommand, ErrUsage, textOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree } from "../../cli/shell/options.ts";
import { readPast } from "../../cli/shell/past-time.ts";
import { bytesText } from "../../core/bytes-text.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { hostOf } from "../../host/identity.ts";
import { readJournal } from "../../journal/read.ts";
import { rotatedOf } from "../../journal/rotated.ts";
import { localTime } from "../../text/local-time.ts";
import { countText, duration, safe, table } from "../../text/render.ts";
import { readRecord } from "../../view/find-task.ts";
import { type Row, Tally, type Times } from "../../view/tally.ts";
import { titleOfRecord } from "../../view/task-rows.ts";

const DEFAULT_MS = 24 * 60 * 60 * 1000;
const GROUPINGS = ["agent", "group", "type", "title", "host"] as const;
type Grouping = (typeof GROUPINGS)[number];
type Line = Readonly<Record<string, unknown>>;

export const command = defineCommand({
  usage: "[--by agent|group|type|title|host] [--since TIME] [--until TIME]",
  details: [
    "TIME is a time of the day (22:00: the last time the clock showed it), a duration (12h: so long ago), or a date as 2026-03-01T22:00. Without --since: the last 24 hours.",
    "WAIT is the time in the inbox, RUN the time of the last run: half of the tasks took at most p50, 95 of 100 at most p95.",
    "CPU is the processor time of all runs together, MEMORY the most that one program had; short programs are not measured.",
    "What counts are the lines of the journal, which are kept for retention.journal_days. Groups, types and titles are read from the records; tasks whose record is gone are in a row of their own. The journal records other hosts only as four hex digits.",
  ],
  examples: ["stats --since 7d", "stats --by agent --since 22:00 --json | jq .rows"],
  options: {
    by: { type: "text", value: "WHAT", choices: GROUPINGS, help: "a row for each of these" },
    since: textOption("TIME", "from when (default: 24h)"),
    until: textOption("TIME", "up to when (default: now)"),
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const { by, since, until } = ctx.options;
    const nowMs = Date.now();
    const toMs = until === undefined ? nowMs : readPast(until, nowMs, "--until");
    const fromMs = since === undefined ? toMs - DEFAULT_MS : readPast(since, nowMs, "--since");
    if (fromMs >= toMs)
      throw new ErrUsage("--since is not before --until", "name an earlier time, as 22:00 or 12h");
    const tally = new Tally({ fromMs, toMs }, groupBy(by as Grouping | undefined, tree));
    const counts = { records: 0, bad: 0 };
    for (const file of [...rotatedOf(tree.events), tree.events])
      for await (const line of readJournal(file, counts)) tally.add(line);
    const rows = tally.rows();
    if (ctx.json)
      ctx.out.json({
        from_ms: fromMs,
        to_ms: toMs,
        by: by ?? null,
        rows,
        bad_lines: counts.bad,
        lost_lines: tally.lostLines,
      });
    else print(ctx, rows, `from ${localTime(fromMs)} to ${localTime(toMs)}`);
    if (ctx.json) return EXIT.ok;
    const { lostLines } = tally;
    if (counts.bad > 0)
      ctx.out.note(`${countText(counts.bad)} lines of the journal cannot be read and do not count`);
    if (lostLines > 0)
      ctx.out.note(
        `${countText(lostLines)} lines of the journal were lost while the disk was full`,
      );
    return EXIT.ok;
  },
});

function groupBy(by: Grouping | undefined, tree: StateTree): (line: Line) => string {
  if (by === undefined) return () => "all";
  if (by === "agent") return ({ agent_id: id }) => (typeof id === "string" ? id : "");
  if (by === "host") return ({ owner }) => (typeof owner === "string" ? hostOf(owner) : "");
  return ({ task_id: id }) => {
    const record = readRecord(tree, String(id));
    if (record === undefined) return "(record is gone)";
    const task = record["task"] as Record<string, unknown> | undefined;
    if (by === "title") return titleOfRecord(record);
    return typeof task?.[by] === "string" ? task[by] : "";
  };
}

function usageOf({ cpu_ms: cpuMs, peak_memory_bytes: bytes }: Row): [string, string] {
  return [cpuMs === null ? "" : duration(cpuMs), bytes === null ? "" : bytesText(bytes)];
}

function print(ctx: Context, rows: readonly Row[], span: string): void {
  if (rows.length === 0) {
    ctx.out.note(`no task ended ${span}`);
    return;
  }
  const right = { align: "right" as const };
  const hasSkipped = rows.some(({ skipped }) => skipped > 0);
  const hasUsage = rows.some(({ cpu_ms: cpuMs }) => cpuMs !== null);
  const columns = [
    { title: String(ctx.options["by"] ?? "").toUpperCase(), min: 8 },
    { title: "DONE", ...right },
    { title: "FAILED", ...right },
    ...(hasSkipped ? [{ title: "SKIPPED", ...right }] : []),
    ...["WAIT p50", "p95", "max", "RUN p50", "p95", "max"].map((title) => ({ title, ...right })),
    ...(hasUsage ? ["CPU", "MEMORY"] : []).map((title) => ({ title, ...right })),
  ];
  const timesOf = ({ p50, p95, max }: Times): string[] =>
    [p50, p95, max].map((ms) => (ms === null ? "" : duration(ms)));
  const cells = rows.map((row) => [
    safe(row.group === "" ? "(none)" : row.group),
    countText(row.completed),
    countText(row.failed),
    ...(hasSkipped ? [countText(row.skipped)] : []),
    ...timesOf(row.waited_ms),
    ...timesOf(row.ran_ms),
    ...(hasUsage ? usageOf(row) : []),
  ]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  ctx.out.note(span);
}
