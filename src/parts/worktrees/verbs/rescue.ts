/** `rescue`: lists the work that was saved from worktrees, and brings it back into a new branch or directory. */
import { type Context, defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { openRepository, type Repository } from "../../../git/repository.ts";
import { ago, counted, safe, table } from "../../../text/render.ts";
import { findAll } from "../all-worktrees.ts";
import { describeSave, rescueToBranch, rescueToDirectory, type SaveDetails } from "../rescue.ts";
import { savesOf } from "../save.ts";

const COLUMNS = [
  { title: "TASK" },
  { title: "RUN" },
  { title: "SAVED" },
  { title: "HOLDS", min: 12 },
];

export const command = defineCommand({
  usage: "[ID] [--run N] [--branch NAME | --to DIR]",
  args: { min: 0, max: 1 },
  details: [
    "Whatever only a worktree holds is saved before the worktree goes, and after each run: modified and untracked files, the index, stash entries of its branch, commits that are on no branch. Saves are refs of the repository (refs/mailchute/ID/RUN), which git keeps.",
    "It makes new branches or new directories only. What a save holds beside the files gets a name of its own, as NAME.index or NAME.stash-1.",
  ],
  examples: [
    "rescue",
    "rescue fix-login --branch rescued",
    "rescue fix-login --run 2 --to /tmp/work",
  ],
  options: {
    run: {
      type: "text",
      value: "N",
      help: "the save of this run, as listed (default: the newest)",
    },
    branch: { type: "text", value: "NAME", help: "a new branch for the files" },
    to: { type: "text", value: "DIR", help: "a new directory for the files" },
  },
  async run(ctx) {
    const [id] = ctx.positionals;
    const { run, branch, to } = ctx.options;
    if (branch !== undefined && to !== undefined)
      throw new ErrUsage("--branch and --to do not go together");
    if (id === undefined && (run !== undefined || branch !== undefined || to !== undefined))
      throw new ErrUsage("rescue needs an ID with these options", "`mailchute rescue` lists them");
    const saves = (await allSaves(ctx, id)).filter(
      (one) => run === undefined || one.number === run,
    );
    if (branch === undefined && to === undefined) return list(ctx, saves);
    const newest = saves.reduce<SaveDetails | undefined>(
      (best, one) => (best === undefined || one.saved_at >= best.saved_at ? one : best),
      undefined,
    );
    if (newest === undefined) {
      ctx.out.note(`nothing is saved of ${safe(id)}`);
      return EXIT.notFound;
    }
    const repository = await openRepository(newest.repository);
    const made =
      branch === undefined
        ? await rescueToDirectory(repository, newest, to ?? "")
        : await rescueToBranch(repository, newest, branch);
    if (ctx.json) ctx.out.json({ ...newest, made });
    else for (const one of made) ctx.out.line(safe(one));
    return EXIT.ok;
  },
});

/** The saves in all repositories that the state tree knows, and in that of the working directory. */
async function allSaves(ctx: Context, id: string | undefined): Promise<SaveDetails[]> {
  const tree = existingTree(ctx);
  const { settings } = await openSettings(ctx);
  const repositories = new Map<string, Repository>();
  for (const one of (await findAll(tree.dir, settings)).repositories)
    repositories.set(one.commonDir, one);
  const here = await openRepository(ctx.cwd).catch(() => undefined);
  if (here !== undefined) repositories.set(here.commonDir, here);
  const found: SaveDetails[] = [];
  for (const repository of repositories.values())
    for (const save of await savesOf(repository, id))
      found.push(await describeSave(repository, save));
  return found;
}

function list(ctx: Context, saves: readonly SaveDetails[]): number {
  if (ctx.json) ctx.out.json({ saves });
  else if (saves.length === 0) ctx.out.line("nothing is saved");
  else {
    const rows = saves.map((one) => [
      safe(one.id),
      one.number,
      ago(one.saved_at * 1000, Date.now()),
      [counted(one.files, "file"), ...new Set(one.held.map(([what]) => what))]
        .filter((what) => what !== "head")
        .join(", "),
    ]);
    for (const line of table(COLUMNS, rows, ctx.columns, ctx.colour)) ctx.out.line(line);
  }
  return saves.length === 0 ? EXIT.notFound : EXIT.ok;
}
