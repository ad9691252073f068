/** `show`: prints everything that the state tree knows about one task. */
import { byHandIn } from "../../agents/by-hand.ts";
import { sessionOfRun } from "../../agents/stream/session-file.ts";
import { openIdReaders } from "../../app/id-readers.ts";
import { bytesText } from "../../core/bytes-text.ts";
import type { ErrTaskNotFound } from "../../core/errors.ts";
import type { Diffstat } from "../../core/landing.ts";
import type { StateTree } from "../../core/state-tree.ts";
import {
  ago,
  counted,
  countText,
  duration,
  fold,
  paint,
  safe,
  tableWithTexts,
  wrap,
} from "../../text/render.ts";
import { shellWord } from "../../text/shell-word.ts";
import { noSuchTask } from "../../view/find-task.ts";
import { type Knowledge, learnTask } from "../../view/know-task.ts";
import { changeText, type LandingView } from "../../view/landing.ts";
import { countNames, findFiles, textOf } from "../../view/scan.ts";
import { programRows } from "../../view/task-program.ts";
import { progressText } from "../../view/task-progress.ts";
import { describeTask, numberIn } from "../../view/task-rows.ts";
import { type Context, defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, openSettings } from "../shell/options.ts";

const RUN_FILES_MAX = 100;
/** How many lines of one value a terminal shows: a person can read them at a glance. */
const VALUE_LINES_MAX = 20;
const MARGIN = 14;

export const command = defineCommand({
  usage: "ID",
  args: { min: 1, max: 1 },
  options: {},
  async run(ctx) {
    const tree = existingTree(ctx);
    const id = ctx.positionals[0] ?? "";
    const known = await learnTask(tree, id);
    if (known === undefined) throw await explainUnknown(tree, id);
    const byHand = await sessionByHand(ctx, known);
    if (ctx.json) ctx.out.json({ ...known, session_command: byHand ?? null });
    else for (const line of renderTask(known, ctx, byHand)) ctx.out.line(line);
    return EXIT.ok;
  },
});

/** The command with which a person goes on in the session of an ended task; undefined when it has none, or its folder is gone. */
async function sessionByHand(
  ctx: Parameters<typeof openSettings>[0],
  { run, record }: Knowledge,
): Promise<string | undefined> {
  const session = run === null || record === null ? undefined : sessionOfRun(run);
  if (session === undefined) return undefined;
  const { loadKind } = await import("../../app/agent-kinds.ts");
  // A task is shown also while config.yaml is broken.
  const opened = await openSettings(ctx).catch(() => undefined);
  const kind = await loadKind(session.kind);
  const byHand = opened && byHandIn(session, kind, opened.settings);
  if (byHand === undefined) return undefined;
  // Options stand there as people type them.
  const typed = (word: string): string => (/^--?[\w-]+$/.test(word) ? word : shellWord(word));
  const words = [byHand.program, ...byHand.args].map(typed).join(" ");
  const login = byHand.home === undefined ? "" : `${byHand.home[0]}=${shellWord(byHand.home[1])} `;
  return `cd ${shellWord(byHand.cwd)} && ${login}${words}`;
}

async function explainUnknown(tree: StateTree, id: string): Promise<ErrTaskNotFound> {
  const readers = openIdReaders(tree, undefined);
  await readers.refresh();
  const hint = readers.ids().includes(id)
    ? `the plan has a node of this id, which was not launched yet: mailchute roadmap show ${id}`
    : undefined;
  return noSuchTask(id, "show", hint);
}

type ShowContext = Pick<Context, "colour" | "columns" | "isTerminal">;

/** The facts as lines. On a terminal, lines are wrapped to its width, and a long value is cut, with a note where to find all of it. */
export function renderTask(known: Knowledge, ctx: ShowContext, byHand = ""): string[] {
  const columns = ctx.isTerminal ? ctx.columns : Number.POSITIVE_INFINITY;
  const room = Math.max(20, columns - MARGIN);
  const put = (name: string, [first = "", ...rest]: readonly string[]): string[] => [
    `${paint(ctx.colour, "bold", name.padEnd(MARGIN))}${first}`,
    ...rest.map(indented),
  ];
  // Ids and paths are never wrapped, because people copy them.
  const whole = (name: string, text: string): string[] =>
    text === "" ? [] : put(name, wrap(safe(text), room));
  const row = ([name, value]: readonly [string, unknown]): string[] => {
    const text = textOf(value);
    if (text === "") return [];
    if (!ctx.isTerminal) return put(name, [safe(text)]);
    // Look only at as much text as can be shown.
    const head = text.slice(0, VALUE_LINES_MAX * room * 2);
    const folded = head.split("\n").flatMap((line) => fold(safe(line), room));
    const isCut = head !== text || folded.length > VALUE_LINES_MAX;
    return [
      ...put(name, folded.slice(0, VALUE_LINES_MAX)),
      ...(isCut ? put("", [`(all of it: mailchute show ${safe(known.id)} --json)`]) : []),
    ];
  };
  const { run, events } = known;
  return [
    ...whole("id", known.id),
    ...rowsOf(known, Date.now()).flatMap(row),
    ...whole("session", byHand),
    ...whole("file", known.path),
    ...(run === null ? [] : [...whole("run", run), ...runFiles(known.id, run).map(indented)]),
    ...(events.length > 0 ? ["", ...eventLines(events, columns, ctx.colour)] : []),
  ];
}

function indented(line: string): string {
  return " ".repeat(MARGIN) + line;
}

/** Names and values in the order of the output. Missing values are left out later. */
function rowsOf(known: Knowledge, nowMs: number): [name: string, value: unknown][] {
  const { task, record, owner } = known;
  const created = numberIn(task, "created_at");
  const due = numberIn(task, "not_before") ?? 0;
  const took = numberIn(record, "duration_ms");
  const error = record?.["error"];
  return [
    ["state", stateText(known)],
    ["waits", known.held],
    ["what", known.batch ?? describeTask(task ?? undefined)],
    ...programRows(task, false),
    ...known.field_warnings.map((why): [string, string] => ["warning", why]),
    ["priority", task?.["priority"]],
    ["attempt", known.attempt],
    ["progress", known.progress === null ? null : progressText(known.progress)],
    ...elsewhereRows(known.elsewhere, nowMs),
    ["worker", owner === null ? null : `pid ${owner.pid ?? "?"}, ${owner.verdict}`],
    ["created", created === null ? null : ago(created * 1000, nowMs)],
    ["not before", due * 1000 > nowMs ? ago(due * 1000, nowMs) : null],
    ...known.dependencies.map(({ id, state, landing }): [string, string] => [
      "after",
      `${id} (${landing === null ? state : `${state}; ${landingWords(landing)}`})`,
    ]),
    ["verdict", record?.["verdict"]],
    ["reason", record?.["verdict_reason"]],
    ["branch", branchText(record)],
    ["landing", landingText(known)],
    ["took", took === null ? null : duration(took)],
    ["used", usageText(record)],
    ["left", leftText(record)],
    ["denied", deniedText(record)],
    ["error", error === undefined ? null : `${textOf(record?.["code"])}: ${textOf(error)}`],
    ["exit code", record?.["exit_code"]],
    ["signal", record?.["signal"]],
    ["machine", record?.["machine"]],
    ["output", record?.["output"]],
    ["dropped as", record?.["dropped_as"]],
  ];
}

function elsewhereRows(
  elsewhere: Knowledge["elsewhere"],
  nowMs: number,
): [name: string, value: unknown][] {
  if (elsewhere === null) return [];
  const { machine, began_ms: beganMs, last_line: line, cost_usd_micro: cost } = elsewhere;
  return [
    ["machine", machine],
    ["runs", beganMs === null ? "not yet: it waits there" : `since ${ago(beganMs, nowMs)}`],
    ["says", line],
    ["cost", cost === null ? null : `$${(cost / 1e6).toFixed(2)} so far`],
  ];
}

function usageText(record: Knowledge["record"]): string | null {
  const cpuMs = numberIn(record, "cpu_ms");
  const bytes = numberIn(record, "peak_memory_bytes");
  if (cpuMs === null || bytes === null) return null;
  return `${duration(cpuMs)} of CPU, up to ${bytesText(bytes)} of memory`;
}

function leftText(record: Knowledge["record"]): string | null {
  const count = numberIn(record, "left_processes");
  return count === null ? null : `${counted(count, "process", "processes")} that may still run`;
}

function deniedText(record: Knowledge["record"]): string | null {
  const tools = record?.["denied"];
  return Array.isArray(tools) ? tools.map((one) => textOf(one)).join(", ") : null;
}

function branchText(record: Knowledge["record"]): string | null {
  const { branch, base, target, diffstat } = record ?? {};
  if (typeof branch !== "string" || typeof base !== "string") return null;
  const { files = 0, insertions = 0, deletions = 0 } = (diffstat ?? {}) as Partial<Diffstat>;
  const changed = changeText({ files, insertions, deletions });
  return `${branch}, from ${base.slice(0, 12)}, for ${textOf(target)}: ${changed}`;
}

function landingText({ id, record, landing }: Knowledge): string | null {
  if (landing !== null) return landingWords(landing);
  const machine = record?.["machine"];
  if (record?.["landing"] === "landed") return `landed at ${textOf(machine)}`;
  if (record?.["landing"] === "branch")
    return machine === undefined
      ? `it stays on its branch: mailchute land ${id}`
      : `it stays on its branch at ${textOf(machine)}`;
  return record?.["landing"] === "nothing" ? "nothing was changed" : null;
}

function landingWords({ id, state, why }: LandingView): string {
  return `${id} ${state === "open" ? "has not ended" : state}${why === "" ? "" : `: ${why}`}`;
}

function stateText({ state, failed_lines: failedLines }: Knowledge): string {
  if (state === "gone") return "gone: no tray has it any more, only its events are left";
  return state === "done" && failedLines !== null ? `done, but ${failedLines}` : state;
}

function runFiles(id: string, run: string): string[] {
  // Each program of a line of a batch has its own directory, named after the number of the line.
  const isOfLine = (name: string): boolean => /^\d+$/.test(name);
  const isShown = (name: string): boolean => !isOfLine(name) && !name.startsWith(".");
  const { files } = findFiles(run, isShown, RUN_FILES_MAX);
  const lines = files.map((file) => `${safe(file.name)} (${file.size} bytes)`);
  const { count, is_exact: isExact } = countNames(run, isOfLine);
  if (count > 0)
    lines.push(`and ${countText(count, isExact)} of single lines: mailchute logs ${safe(id)}#LINE`);
  return lines;
}

/** One row for each event. Its details are in the same row, or below it when there is no room. */
function eventLines(events: Knowledge["events"], width: number, colour: boolean): string[] {
  const rows = events.map((event) => [
    typeof event["t"] === "number"
      ? new Date(event["t"]).toISOString()
      : safe(event["timestamp"] ?? ""),
    safe(event["event"] ?? ""),
    safe(event["attempt"] ?? ""),
    safe(event["agent_id"] ?? ""),
  ]);
  const titles = [
    { title: "TIME" },
    { title: "EVENT" },
    { title: "RUN", align: "right" as const },
    { title: "AGENT" },
  ];
  const texts = events.map((event) =>
    safe(event["error"] ?? event["reason"] ?? event["message"] ?? event["phase"] ?? ""),
  );
  return tableWithTexts(titles, rows, texts, width, colour);
}
