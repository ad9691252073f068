/**
 * `enqueue --file todo.md`: makes a task for each open item that has none yet. The note of a task is written before the task is
 * submitted, and is completed afterwards. After a crash in between, the trays and the journal show whether it was submitted.
 *
 * | crash after | on disk | the next `enqueue` of the list |
 * |---|---|---|
 * | the first writing of the notes | notes with `submitted_at: null` | submits the tasks that have left no trace |
 * | the submit | the same, and the tasks | finds the tasks or their results, and completes the notes |
 */
import { resolve } from "node:path";
import { checkNamed } from "../../cli/enqueue/place-of-run.ts";
import type { TaskFile } from "../../cli/enqueue/task-file.ts";
import {
  type EnqueueContext,
  fieldsOf,
  openInbox,
  refuseOthers,
} from "../../cli/enqueue/task-options.ts";
import { EXIT, exitCodeOf } from "../../cli/shell/exit-codes.ts";
import { openSettings, shortPath } from "../../cli/shell/options.ts";
import { waitForTasks } from "../../cli/wait/wait-for-tasks.ts";
import { checkTask } from "../../codec/task-codec.ts";
import { wallSeconds } from "../../core/clock.ts";
import type { MailchuteError } from "../../core/errors.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { systemClock } from "../../host/system-clock.ts";
import { makeThreads, SYNC_THREADS, threadsFor } from "../../host/threads.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { SettledNames } from "../../mailbox/find/settled-names.ts";
import { type Submission, submitAll } from "../../mailbox/submit/submit.ts";
import { counted, safe } from "../../text/render.ts";
import { standingOfNote } from "./landed.ts";
import { addNotes, matchNotes } from "./match-notes.ts";
import { hashOf, type ListNotes, type Note, NotesFile } from "./notes.ts";
import { type OpenList, openList } from "./open-list.ts";
import { learnStandings } from "./task-standings.ts";
import type { WorkItem } from "./work-items.ts";

/** The largest number of tasks that share one durability barrier. */
const GROUP_MAX = 256;
/** How many refused items are printed. Further ones are only counted. */
const COMPLAINTS_MAX = 20;
/** Options that apply to each task of a list. */
const FITTING: ReadonlySet<string> = new Set(
  "file agent fallback model priority after delay max-attempts timeout max-memory max-cpu max-processes max-disk cap cwd env worktree land target type verify wait".split(
    " ",
  ),
);

interface Outcome {
  /** Ids of new tasks. */
  submitted: string[];
  /** Notes of open items that had a task before. */
  before: Note[];
  /** How many of those items have other details now than their task. */
  edited: number;
  refused: { item: WorkItem; error: MailchuteError }[];
}

export const listFile: TaskFile = {
  fits: (ctx, file) => /\.(?:md|markdown)$/i.test(file) || ctx.options.agent !== undefined,

  async enqueue(ctx, file) {
    refuseOthers(ctx, "a list", FITTING, "the items of the list say it");
    const list = await openList(resolve(ctx.cwd, file));
    checkNamed(ctx.options, (await openSettings(ctx)).settings.agents);
    makeThreads(threadsFor(SYNC_THREADS));
    const { tree, trays, loaded } = await openInbox(ctx);
    const notes = new NotesFile(tree, list.source.path, loaded.settings.durability);
    const sinceMs = Date.now();
    const outcome = await notes.locked(() => enqueueOpen(ctx, tree, trays, list, notes));
    return report(ctx, tree, file, outcome, sinceMs);
  },
};

async function enqueueOpen(
  ctx: EnqueueContext,
  tree: StateTree,
  trays: Trays,
  list: OpenList,
  file: NotesFile,
): Promise<Outcome> {
  const notes = file.read();
  await finishPlanned(tree, notes, file.stem);
  const { notes: known, fresh } = matchNotes(list.items, notes);
  const before = list.items.flatMap((item) => {
    const note = item.box.isTicked ? undefined : known.get(item);
    return note === undefined ? [] : [{ item, note }];
  });
  const outcome: Outcome = {
    submitted: [],
    before: before.map(({ note }) => note),
    edited: before.filter(({ item, note }) => note.prompt !== hashOf(item.prompt)).length,
    refused: [],
  };
  const added = [...addNotes(fresh, notes, (note) => file.idOf(note))];
  const submissions = added.map(([item, note]) => submissionOf(ctx, item, note, list.source.path));
  if (added.length > 0) file.write(notes);
  const settled = new SettledNames(trays);
  for (let from = 0; from < added.length; from += GROUP_MAX) {
    const group = submissions.slice(from, from + GROUP_MAX);
    for (const [n, answer] of (await submitAll(trays, group, settled)).entries()) {
      const [item, note] = added[from + n] ?? [];
      if (item === undefined || note === undefined) continue;
      // Only this item has this id, so the task is ours: the notes were lost, or another command was faster.
      const isThere = answer.outcome === "refused" && answer.error.code === "ErrTaskExists";
      if (answer.outcome === "refused" && !isThere) {
        notes.items.splice(notes.items.indexOf(note), 1);
        outcome.refused.push({ item, error: answer.error });
        continue;
      }
      note.submitted_at = wallSeconds(systemClock);
      if (answer.outcome === "submitted") outcome.submitted.push(note.id);
      else outcome.before.push(note);
    }
  }
  if (added.length > 0) file.write(notes);
  return outcome;
}

/** Completes the notes that a crash left: a task without a trace was not submitted, and its item is new again. */
async function finishPlanned(tree: StateTree, notes: ListNotes, stem: string): Promise<void> {
  const planned = notes.items.filter((note) => note.submitted_at === null);
  if (planned.length === 0) return;
  const standings = await learnStandings(tree, planned, stem);
  for (const note of planned)
    if (standingOfNote(note, standings) !== undefined) note.submitted_at = wallSeconds(systemClock);
  notes.items = notes.items.filter((note) => note.submitted_at !== null);
}

/** @throws ErrUsage, ErrInvalidTask */
function submissionOf(ctx: EnqueueContext, item: WorkItem, { id }: Note, list: string): Submission {
  const fields = fieldsOf(ctx);
  const task = {
    id,
    created_at: wallSeconds(systemClock),
    title: item.title,
    // All tasks come at the same time, so the line number makes them run from top to bottom.
    sequence_number: item.line,
    ...fields,
    prompt: item.prompt,
    metadata: { ...(fields["metadata"] as object | undefined), list },
  };
  checkTask(task, id);
  return { id, bytes: Buffer.from(`${JSON.stringify(task)}\n`, "utf8") };
}

async function report(
  ctx: EnqueueContext,
  tree: StateTree,
  file: string,
  outcome: Outcome,
  sinceMs: number,
): Promise<number> {
  const { submitted, before, edited, refused } = outcome;
  const ids = [...submitted, ...before.map((note) => note.id)];
  const counts = { submitted: submitted.length, unchanged: before.length, refused: refused.length };
  if (!ctx.json) {
    if (submitted.length > 0) ctx.out.line(submitted.join("\n"));
    for (const { item, error } of refused.slice(0, COMPLAINTS_MAX))
      ctx.out.note(`line ${item.line}: ${error.code}: ${safe(error.message)}`);
    const parts = [
      `${counted(submitted.length, "task")} submitted`,
      ...(before.length > 0 ? [`${before.length} there already`] : []),
      ...(refused.length > 0 ? [`${refused.length} refused`] : []),
    ];
    ctx.out.note(`${parts.join(", ")}; \`mailchute list ls ${safe(file)}\` shows how far they are`);
    if (edited > 0)
      ctx.out.note(
        `${counted(edited, "item")} below whose line something was changed since: the task keeps the old text`,
      );
  }
  const waitsFor = ctx.options.wait ? submitted : [];
  const waited =
    waitsFor.length === 0
      ? undefined
      : await waitForTasks(ctx, tree, waitsFor, { areKnown: true, sinceMs });
  if (ctx.json) {
    const failed = waited?.settled.filter((one) => one.status === "failed").length;
    ctx.out.json({ file: shortPath(ctx, file), ids, ...counts, edited, ...(waited && { failed }) });
  }
  if (refused.length > 0) return Math.max(...refused.map(({ error }) => exitCodeOf(error)));
  return waited === undefined || waited.isAllCompleted ? EXIT.ok : EXIT.failed;
}
