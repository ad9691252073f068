/** The page of a work: what `review` says of it, its changed lines, its checks, the conversation with its agent, the proof of its landing. */
import { join } from "node:path";
import type { AgentLines } from "../../../cli/text/agent-lines.ts";
import { messageOf } from "../../../core/errors.ts";
import { isId } from "../../../core/names.ts";
import { landingFileOf, type StateTree } from "../../../core/state-tree.ts";
import type { FileDiff } from "../../../git/diff.ts";
import { counted } from "../../../text/render.ts";
import { lookForLanding } from "../../../view/landing.ts";
import { readTaskPage } from "../../../view/task-page.ts";
import { actsOnReview, rejectIt } from "../buttons.ts";
import {
  actsBlock,
  type Block,
  factsOf,
  fold,
  type Look,
  linksOf,
  log,
  type Page,
  type Pill,
  say,
  shown,
  table,
  taskPath,
  usd,
  workPath,
} from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";
import { STATES } from "./review-page.ts";
import { conversationBlock } from "./task-files.ts";
import { type Change, diffFiles, FILES_MAX, type WorkDiffs } from "./work-diff.ts";

const AGAIN_MS = 2000;
const ROWS_MAX = 300;
const TEXT_LINES_MAX = 200;

/** What `review --json` prints. */
export interface Review extends Change {
  title: string;
  agent: string;
  branch: string;
  target: string;
  commits: string[];
  protected: string[];
  uncommitted: string[];
  summary: string;
  checks: string[][];
  verify: string;
  reviewer: { name: string; verdict: string | null; text: string } | null;
  fix: { id: string; text: string } | null;
  landing: { state: string; why: string; details: string };
  worktree: string;
  proof: Proof | null;
}

interface Proof {
  at: string;
  onto: string;
  check: { red_before: true | null; protected_changed: string[] } | null;
  accepted_by: string | null;
  review: { by: string; verdict: string } | null;
  denied: string[];
  cost: { key: string; runs: number; cost_usd_micro: number }[];
}

/** @throws when the task has left no work */
export async function readReview(tree: StateTree, verbs: VerbReader, id: string): Promise<Review> {
  const stamp = isId(id) ? JSON.stringify(lookForLanding(tree, id)) : "";
  const found = await verbs.read({ verb: "review", positionals: [id], againMs: AGAIN_MS, stamp });
  return found as unknown as Review;
}

interface Readers {
  tree: StateTree;
  verbs: VerbReader;
  agents: AgentLines;
  diffs: WorkDiffs;
}

/** @param only the path of the one file whose lines are shown. @throws when the task has left no work */
export async function workPage(
  { tree, verbs, agents, diffs }: Readers,
  id: string,
  only: string | undefined,
): Promise<Page> {
  const review = await readReview(tree, verbs, id);
  const { title, landing } = review;
  const isOver = landing.state === "landed";
  const isUsual = landing.state === "branch" || landing.why === "";
  const files = await diffs.read(review, only).catch((error: unknown) => messageOf(error));
  const { fix } = review;
  const mended = fix === null ? undefined : await talkOf(tree, fix.id, agents);
  const talk = mended ?? (await talkOf(tree, id, agents));
  const main: Block[] = [
    ...(only === undefined
      ? []
      : [say(`Only ${shown(only)} is shown.`), linksOf("files", [["all files", workPath(id)]])]),
    typeof files === "string"
      ? say(shown(files), true)
      : diffOf(review, files, { isOver, isOne: only !== undefined }),
  ];
  const side: Block[] = [
    ...(isOver ? [] : [{ kind: "reject", id: shown(id), act: rejectIt(review) } as const]),
    ...checksOf(review),
    ...(review.proof === null ? [] : [proofOf(review, review.proof)]),
    ...(fix === null ? [] : textFold(`Sent back: ${fix.id}`, fix.text)),
    ...textFold("What it says", review.summary),
    ...(talk?.blocks ?? []),
    ...whereItIs(review),
  ];
  return {
    title: shown(title),
    command: `mailchute review ${shown(id)}`,
    blocks: [
      workFacts(review),
      ...actsBlock("this work", isOver ? [] : actsOnReview(review)),
      ...(isUsual ? [] : [say(shown(landing.why), landing.state === "failed")]),
      { kind: "split", main, side },
    ],
    watch: [landingFileOf(tree.dir, id, "state"), ...(talk === undefined ? [] : [talk.path])],
  };
}

function workFacts(review: Review): Block {
  const { task_id: id, agent, target, reviewer, landing } = review;
  const verdict = reviewer && `${shown(reviewer.name)}: ${reviewer.verdict ?? "no verdict yet"}`;
  return factsOf([
    ["state", pillOf(landing.state)],
    ["task", { id: shown(id), to: taskPath(id) }],
    ["agent", shown(agent)],
    ["for", shown(target)],
    ["reviewer", verdict],
    ["protected files", shown(review.protected.join(", ")) || null],
  ]);
}

/** Where the work is, and its commits. */
function whereItIs({ branch, worktree, start, tip, commits, uncommitted }: Review): Block[] {
  const facts = factsOf([
    ["branch", shown(branch)],
    ["worktree", shown(worktree)],
    ["changes", `git diff ${start.slice(0, 12)} ${tip.slice(0, 12)}`],
  ]);
  const lists = [list("Commits", "commit", commits), list("Not committed", "file", uncommitted)];
  const blocks = [facts, ...lists.filter(({ rows }) => rows.length > 0)];
  const title = `${counted(commits.length, "commit")} on ${shown(branch)}`;
  return [fold(title, blocks, { isOpen: uncommitted.length > 0 })];
}

function pillOf(state: string): Pill {
  const known = Object.entries(STATES).find(([name]) => name === state);
  return known?.[1] ?? { look: "run", word: `${STATES.open.word}: ${shown(state)}` };
}

function diffOf(
  review: Review,
  files: readonly FileDiff[],
  { isOver, isOne }: { isOver: boolean; isOne: boolean },
): Block {
  const sum = (what: "insertions" | "deletions"): number =>
    files.reduce((all, one) => all + (one[what] ?? 0), 0);
  const more = files.length - FILES_MAX;
  const { task_id: id, tip, start } = review;
  return {
    kind: "diff",
    id: shown(id),
    commit: tip,
    title: `${counted(files.length, "changed file")}, +${sum("insertions")} −${sum("deletions")}`,
    files: diffFiles(review, files, isOne),
    more: more > 0 ? `and ${more} more: git diff --stat ${start} ${tip}` : "",
    can_comment: !isOver,
  };
}

/** Each check with its end: in the run of the task, of the reviewer, of the landing. */
function checksOf(review: Review): Block[] {
  const { checks, verify, reviewer, landing, proof } = review;
  const blocks: Block[] = [];
  const put = (title: string, look: Look, word: string, text: string): void => {
    const end = log(`The end of ${title}`, linesOf(text));
    blocks.push(fold(title, end, { isOpen: look === "bad", pill: { look, word } }));
  };
  const programs = shown(checks.map((argv) => argv.join(" ")).join("; "));
  if (checks.length === 0) blocks.push(say("No program has checked it."));
  else put(programs, "good", "passed in the run", verify);
  if (reviewer !== null) {
    const { verdict, text } = reviewer;
    const look = verdict === "pass" ? "good" : verdict === null ? "soft" : "bad";
    put(`review by ${shown(reviewer.name)}`, look, verdict ?? "no verdict yet", text);
  }
  if (landing.state === "failed") put("landing", "bad", "failed", landing.details);
  else if (proof !== null && proof.check !== null && landing.state === "landed")
    put(`${programs} on ${shown(review.target)}`, "good", "passed at the landing", "");
  return [{ kind: "heading", text: "Checks" }, ...blocks];
}

function proofOf({ task_id: id }: Review, proof: Proof): Block {
  const { check, review, accepted_by: person, denied, cost } = proof;
  const facts = factsOf([
    ["landed", { at_ms: Date.parse(proof.at) }],
    ["onto", shown(String(proof.onto).slice(0, 12))],
    ["check", check === null ? "none: it landed unchecked" : "passed on what landed"],
    ["before the work", check?.red_before === true ? "it failed" : null],
    ["review", review && shown(`${review.by}: ${review.verdict}`)],
    ["accepted by", person && shown(person)],
    ["denied tools", shown(denied.join(", ")) || null],
    ...cost.map(
      ({ key, runs, cost_usd_micro: micro }) =>
        [shown(key), `${counted(runs, "run")}, ${usd(micro)}`] as const,
    ),
  ]);
  const words = say(`Tried again by: mailchute prove ${shown(id)} --again`);
  return fold("Proof", [facts, words], { isOpen: true });
}

/** The conversation with the agent that did the work, or that mends it. */
async function talkOf(
  tree: StateTree,
  id: string,
  agents: AgentLines,
): Promise<{ blocks: Block[]; path: string } | undefined> {
  const task = isId(id) ? readTaskPage(tree, id) : undefined;
  const dir = task?.run_dir ?? null;
  if (task === undefined || dir === null) return undefined;
  await agents.ready(dir);
  const blocks = conversationBlock(tree, task, agents);
  return blocks.length === 0 ? undefined : { blocks, path: join(dir, "events.jsonl") };
}

function list(title: string, column: string, lines: readonly string[]) {
  const rows = lines.slice(0, ROWS_MAX).map((line) => [shown(line)]);
  return table(title, [column], rows);
}

/** The last lines of a text, folded. */
function textFold(title: string, text: string): Block[] {
  const blocks = log(title, linesOf(text));
  return blocks.length === 0 ? [] : [fold(shown(title), blocks, { isOpen: true })];
}

function linesOf(text: string): string[] {
  return text.trim() === "" ? [] : text.trim().split("\n").slice(-TEXT_LINES_MAX).map(shown);
}
