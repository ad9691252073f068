/** The pages of work on branches: a list of work that has and has not landed, and the output of `review` for one task. */
import type { StateTree } from "../../../core/state-tree.ts";
import { changeText, readWork, type Work } from "../../../view/landing.ts";
import { actsOnReview } from "../buttons.ts";
import { type Block, type Cell, linkToTask, type Page, say, shown } from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";

const REVIEW_AGAIN_MS = 2000;
const ROWS_MAX = 300;
const TEXT_LINES_MAX = 200;

const STATES: Readonly<Record<Work["state"], string>> = {
  branch: "waits for you",
  failed: "could not land",
  open: "is on its way",
  landed: "landed",
};
const ORDER: Work["state"][] = ["branch", "failed", "open", "landed"];

export async function reviewPage(tree: StateTree): Promise<Page> {
  const all = await readWork(tree);
  const work = all.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const waits = work.filter(({ state }) => state !== "landed");
  const landed = work.filter(({ state }) => state === "landed");
  const table = (title: string, list: readonly Work[], none: string): Block => ({
    kind: "table",
    title,
    columns: ["task", "state", "changed", "for", "title", "why"],
    rows: list
      .slice(0, ROWS_MAX)
      .map((one): Cell[] => [
        { text: shown(one.task_id), to: `/review/${encodeURIComponent(one.task_id)}` },
        STATES[one.state],
        changeText(one),
        shown(one.target),
        one.title === one.task_id ? "" : shown(one.title),
        shown(one.why),
      ]),
    none,
  });
  return {
    title: "Review",
    command: "mailchute report",
    at_ms: Date.now(),
    health: null,
    blocks: [
      table("Not landed yet", waits, "nothing waits to be landed"),
      table("Landed", landed, "nothing has landed"),
    ],
  };
}

interface Review {
  title: string;
  branch: string;
  base: string;
  target: string;
  commits: string[];
  files: { path: string; insertions: number | null; deletions: number | null }[];
  uncommitted: string[];
  summary: string;
  verify: string;
  reviewer: { name: string; verdict: string | null; text: string } | null;
  landing: { state: string; why: string; details: string };
  worktree: string;
}

/** @throws when the task has left no work */
export async function workPage(verbs: VerbReader, id: string): Promise<Page> {
  const found = await verbs.read({ verb: "review", positionals: [id], againMs: REVIEW_AGAIN_MS });
  const review = found as unknown as Review;
  const { title, branch, base, target, landing, reviewer } = review;
  const why = landing.why === "" ? "" : `: ${shown(landing.why)}`;
  const facts: [string, Cell][] = [
    ["task", linkToTask(id)],
    ["branch", shown(branch)],
    ["from", shown(base.slice(0, 12))],
    ["for", shown(target)],
    ["landing", `${shown(landing.state)}${why}`],
    ["worktree", shown(review.worktree)],
  ];
  if (reviewer !== null)
    facts.push(["reviewer", `${shown(reviewer.name)}: ${reviewer.verdict ?? "no verdict yet"}`]);
  const isOver = landing.state === "landed";
  const blocks: Block[] = [
    ...(title === id ? [] : [say(shown(title))]),
    { kind: "facts", facts },
    ...(isOver ? [] : [{ kind: "acts", label: "this work", acts: actsOnReview(id) } as const]),
    filesOf(review),
    list("Commits", "commit", review.commits),
    list("Not committed", "file", review.uncommitted),
    ...textBlocks("What it says", review.summary),
    ...textBlocks("Its check", review.verify),
    ...textBlocks("The verdict", reviewer?.text ?? ""),
    ...textBlocks("The landing", landing.details),
  ];
  return {
    title: `Review: ${shown(id)}`,
    command: `mailchute review ${shown(id)}`,
    at_ms: Date.now(),
    health: null,
    blocks: blocks.filter((block) => block.kind !== "table" || block.rows.length > 0),
  };
}

function filesOf({ files }: Review): Block {
  return {
    kind: "table",
    title: "Changed files",
    columns: ["file", "added", "removed"],
    rows: files
      .slice(0, ROWS_MAX)
      .map(({ path, insertions, deletions }) => [
        shown(path),
        insertions === null ? "binary" : `+${insertions}`,
        deletions === null ? "" : `-${deletions}`,
      ]),
    none: "",
  };
}

function list(title: string, column: string, lines: readonly string[]): Block {
  const rows = lines.slice(0, ROWS_MAX).map((line) => [shown(line)]);
  return { kind: "table", title, columns: [column], rows, none: "" };
}

/** Shows the last lines of a text. */
function textBlocks(title: string, text: string): Block[] {
  if (text.trim() === "") return [];
  const lines = text.trim().split("\n").slice(-TEXT_LINES_MAX).map(shown);
  return [{ kind: "log", title, lines, older: null, end: null }];
}
