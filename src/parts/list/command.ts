/** `list`: shows the states of the items of Markdown lists, and ticks the items that have landed. */
import { resolve } from "node:path";
import { type Context, defineCommand } from "../../cli/shell/command-spec.ts";
import { EXIT, exitCodeOf } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings, shortPath } from "../../cli/shell/options.ts";
import { ErrInvalidList, ErrIo, messageOf } from "../../core/errors.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { counted, paint, safe, table } from "../../text/render.ts";
import { realListPath } from "./list-file.ts";
import { type ListRow, listRows } from "./list-rows.ts";
import { knownLists, NotesFile } from "./notes.ts";
import { syncList } from "./sync-list.ts";

const COLUMNS = [
  { title: "STATE" },
  { title: "ITEM", min: 20 },
  { title: "TASK" },
  { title: "WHY", min: 10 },
];

export const command = defineCommand({
  usage: "ls [FILE] | sync [FILE] [--again]",
  subcommands: {
    ls: "show the items of a list, or of all lists, and how far they are",
    sync: "tick what has landed, in a list or in all lists",
  },
  args: { min: 0, max: 1 },
  details: [
    "A list is a Markdown file with boxes: `- [ ] what to do`. `mailchute enqueue --agent NAME --file todo.md` makes a task of each open box that has none yet. The lines that are indented below a box belong to its text. A box with boxes below it has no task: it is ticked with the last of them.",
    "The tasks of one `enqueue` start in the order of the list, as far as slots and agents are free.",
    "An item is the same item as long as its line, and the lines of the boxes above it, say the same. `sync` changes one character of each box, and nothing else of the file. A box that you open again stays open: to run its task once more, use `mailchute retry ID --completed`; sync then ticks it when it has landed again.",
    "States: open (has no task yet), waiting, running, landed, failed, gone (no longer in the file).",
  ],
  examples: ["enqueue --agent coder --file todo.md", "list ls todo.md", "list sync"],
  options: {
    again: { type: "flag", help: "with sync: tick also boxes that were ticked and are open again" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const [given] = ctx.positionals;
    const paths = given === undefined ? knownLists(tree) : [resolve(ctx.cwd, given)];
    if (paths.length === 0) ctx.out.note("no list was enqueued in this state tree");
    const { durability } = (await openSettings(ctx)).settings;
    const notesOf = (path: string) => new NotesFile(tree, realListPath(path), durability);
    const show = (path: string) => shortPath(ctx, path);
    return ctx.subcommand === "sync"
      ? sync(ctx, tree, paths, notesOf, show)
      : list(ctx, tree, paths, notesOf, show);
  },
});

type NotesOf = (path: string) => NotesFile;
type Show = (path: string) => string;

/** Ticks the lists. If one list cannot be read, goes on with the others. */
async function sync(
  ctx: Context,
  tree: StateTree,
  paths: readonly string[],
  notesOf: NotesOf,
  show: Show,
): Promise<number> {
  const lists: object[] = [];
  let code: number = paths.length === 0 ? EXIT.notFound : EXIT.ok;
  for (const path of paths) {
    try {
      const file = notesOf(path);
      const again = ctx.options["again"] === true;
      const synced = await file.locked(() => syncList(tree, path, file, again));
      lists.push({ file: show(path), ...synced });
      if (ctx.json) continue;
      ctx.out.line(
        `${safe(show(path))}: ${counted(synced.ticked, "box", "boxes")} ticked, ${synced.open} open`,
      );
      for (const title of synced.reopened)
        ctx.out.note(`open again, and left so: ${safe(title)} (--again ticks it)`);
    } catch (error) {
      if (paths.length === 1 || !(error instanceof ErrIo || error instanceof ErrInvalidList))
        throw error;
      ctx.out.note(`${safe(show(path))}: ${error.code}: ${safe(messageOf(error))}`);
      code = Math.max(code, exitCodeOf(error));
    }
  }
  if (ctx.json) ctx.out.json({ lists });
  return code;
}

async function list(
  ctx: Context,
  tree: StateTree,
  paths: readonly string[],
  notesOf: NotesOf,
  show: Show,
): Promise<number> {
  const lists: { file: string; items: ListRow[] }[] = [];
  for (const path of paths)
    lists.push({ file: show(path), items: await listRows(tree, path, notesOf(path)) });
  if (ctx.json) ctx.out.json({ lists });
  else
    for (const { file, items } of lists) {
      ctx.out.line(paint(ctx.colour, "bold", safe(file)));
      const cells = items.map((row) => [
        row.state,
        safe(row.title),
        row.id ?? "",
        safe(row.reason ?? ""),
      ]);
      for (const line of table(COLUMNS, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
    }
  return lists.length === 0 ? EXIT.notFound : EXIT.ok;
}
