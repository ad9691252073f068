/** `worktrees`: shows what the worktrees of tasks hold and why they stay; removes those whose work is safe elsewhere. */
import { type Context, defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { bytesText } from "../../../core/bytes-text.ts";
import { messageOf } from "../../../core/errors.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { type Column, safe, tableWithTexts, wrap } from "../../../text/render.ts";
import { explainUnlanded } from "../../../view/landing.ts";
import { type AllWorktrees, findAll } from "../all-worktrees.ts";
import { cleanCache, listCache } from "../clean-cache.ts";
import { cleanSaves } from "../clean-saves.ts";
import { type Cleaned, type CleanWish, cleanWorktrees } from "../clean-worktrees.ts";
import { lookAt, reasonsToStay } from "../holdings.ts";
import { isInUse } from "../in-use.ts";
import { userOf } from "../worktree-user.ts";

const COLUMNS: readonly Column[] = [
  { title: "TASK" },
  { title: "BRANCH", min: 12 },
  { title: "SIZE", align: "right" },
];
/** Most lines about the contents of one worktree. `--json` has all of them. */
const LINES_MAX = 4;

export const command = defineCommand({
  usage: "ls | clean [ID…] [--ignored] [--dry-run]",
  subcommands: {
    ls: "what each worktree holds, and why it stays",
    clean: "remove those that hold nothing of worth, or those that are named",
  },
  args: { min: 0, max: Number.POSITIVE_INFINITY },
  details: [
    "A worktree holds nothing of worth when it is clean and its branch is empty, or another branch or a remote has all of its commits. `clean` removes those, and says why each other one stays.",
    "With an ID `clean` removes that worktree, too: what is modified, untracked, stashed or on no branch is saved first, and `mailchute rescue` brings it back. Its branch stays. Ignored files keep it, unless --ignored saves them as well, or worktree_ignored_may_go in config.yaml says that they may go.",
    "The worktree of a task that waits or runs always stays.",
    "Without an ID `clean` also removes saves that are older than retention.saves_days, and what `cache` keeps that no worktree has used for retention.cache_days, as a running supervisor does.",
    "SIZE is what only this worktree takes on the disk. Files that have other names elsewhere (hard links of `cache`) are not in it; --json has them as shared_bytes.",
  ],
  examples: ["worktrees ls", "worktrees clean", "worktrees clean fix-login"],
  options: {
    ignored: { type: "flag", help: "with clean: save ignored files, too, so that they keep none" },
    "dry-run": { type: "flag", short: "n", help: "with clean: say what would go, remove nothing" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const { trays, loaded } = await openMailbox(ctx, true);
    const all = await findAll(tree.dir, loaded.settings);
    const isLive = (id: string): boolean => isInUse(tree, trays, id);
    const mayGo = loaded.settings.worktree_ignored_may_go;
    if (ctx.subcommand === "clean") {
      const { saves_days: days, cache_days } = loaded.settings.retention;
      if (ctx.positionals.length === 0 && !ctx.options["dry-run"]) {
        await cleanSaves(all, { days, nowMs: Date.now(), isLive });
        await cleanCache(all.dir, { days: cache_days, nowMs: Date.now() });
      }
      return clean(ctx, tree, all, { isLive, mayGo });
    }
    if (ctx.positionals.length > 0 || ctx.options.ignored || ctx.options["dry-run"])
      throw new ErrUsage(
        "worktrees ls takes no ID and no options",
        "see `mailchute worktrees --help`",
      );
    return list(ctx, tree, all, { isLive, mayGo });
  },
});

async function list(
  ctx: Context,
  tree: StateTree,
  { dir, found, problems }: AllWorktrees,
  { isLive, mayGo }: Pick<CleanWish, "isLive" | "mayGo">,
): Promise<number> {
  const rows = [];
  for (const { id, repository, worktree } of found) {
    // One that a run has broken hides no other.
    const holdings = await lookAt(repository, worktree, id, mayGo).catch((error: unknown) => {
      problems.push(`${id} in ${worktree.path}: ${messageOf(error)}`);
    });
    if (holdings === undefined) continue;
    const reasons = reasonsToStay(holdings);
    const is_live = isLive(id) || isLive(userOf(worktree.gitDir, id));
    const landing = explainUnlanded(tree, id)?.how ?? null;
    rows.push({ ...holdings, repository: repository.commonDir, is_live, landing, reasons });
  }
  const cache = listCache(dir);
  if (ctx.json) ctx.out.json({ worktrees: rows, cache, problems });
  else if (rows.length === 0) noteNone(ctx, problems);
  else {
    const cells = rows.map((row) => [safe(row.id), safe(row.branch), bytesText(row.bytes)]);
    const texts = rows.map((row) => safe(holdsText(row)));
    for (const line of tableWithTexts(COLUMNS, cells, texts, ctx.columns, ctx.colour, LINES_MAX))
      ctx.out.line(line);
  }
  if (!ctx.json && cache.length > 0) {
    const bytes = cache.reduce((sum, entry) => sum + entry.bytes, 0);
    ctx.out.line(`${bytesText(bytes)} that setup has made are kept for new worktrees (cache)`);
  }
  if (!ctx.json) for (const problem of problems) ctx.out.note(safe(problem));
  return rows.length === 0 && problems.length > 0 ? EXIT.failed : EXIT.ok;
}

/** With problems it is unknown whether there is one: their repository may have been moved. */
function noteNone(ctx: Context, problems: readonly string[]): void {
  if (problems.length === 0) ctx.out.line("no task has a worktree");
}

function holdsText(row: {
  reasons: string[];
  is_live: boolean;
  /** Why its work has not landed. */
  landing: string | null;
  has_changed_settings: boolean;
  saves: string[];
}): string {
  const parts = row.landing === null ? [] : [`its work ${firstSentence(row.landing)}`];
  if (row.is_live && row.landing === null) parts.push("its task has not ended");
  parts.push(...row.reasons);
  if (row.saves.length > 0) parts.push(`${row.saves.length} saved (mailchute rescue)`);
  if (row.has_changed_settings) parts.push("settings of the repository changed while it ran");
  return parts.length === 0 ? "nothing of worth: `worktrees clean` removes it" : parts.join("; ");
}

/** The rest says what to do. It is long, and `show` prints it. */
function firstSentence(text: string): string {
  return text.split(/\. (?=[A-Z])/)[0] ?? "";
}

async function clean(
  ctx: Context,
  tree: StateTree,
  all: AllWorktrees,
  rules: Pick<CleanWish, "isLive" | "mayGo">,
): Promise<number> {
  const ids = ctx.positionals;
  const isDryRun = ctx.options["dry-run"] === true;
  const withIgnored = ctx.options["ignored"] === true;
  const unknown = ids.filter((id) => !all.found.some((one) => one.id === id));
  if (unknown.length > 0) {
    ctx.out.note(`no worktree of ${safe(unknown.join(", "))}`);
    return EXIT.notFound;
  }
  const cleaned = await cleanWorktrees(all, { ids, withIgnored, isDryRun, ...rules });
  if (ctx.json) ctx.out.json({ dry_run: isDryRun, worktrees: cleaned, problems: all.problems });
  else
    for (const one of cleaned) {
      const text = safe(cleanedText(tree, one, isDryRun));
      for (const line of ctx.isTerminal ? wrap(text, ctx.columns, 4) : [text]) ctx.out.line(line);
    }
  if (!ctx.json) {
    if (cleaned.length === 0) noteNone(ctx, all.problems);
    for (const problem of all.problems) ctx.out.note(safe(problem));
  }
  if (cleaned.length === 0 && all.problems.length > 0) return EXIT.failed;
  // Only a named worktree that stays is a failure. Without names it is usual that some stay.
  return ids.length > 0 && cleaned.some(({ removed }) => !removed) ? EXIT.failed : EXIT.ok;
}

function cleanedText(
  tree: StateTree,
  { id, removed, reasons, saved }: Cleaned,
  isDryRun: boolean,
): string {
  const unlanded = explainUnlanded(tree, id)?.how;
  const all =
    unlanded === undefined ? reasons : [`its work ${firstSentence(unlanded)}`, ...reasons];
  if (!removed) return `${id} stays: ${all.join("; ")}`;
  const what = isDryRun ? "would be removed" : "removed";
  return saved === null
    ? `${id} ${what}`
    : `${id} ${what}; its work is saved: mailchute rescue ${id}`;
}
