/** The options that every command shares, and functions that open the state tree, its settings and its mailbox. */
import fs from "node:fs";
import { basename, join, relative } from "node:path";
import type { LoadedSettings } from "../../config/decode-settings.ts";
import { mailboxDirFrom } from "../../config/environment.ts";
import { MailchuteError } from "../../core/errors.ts";
import { type StateTree, stateTree } from "../../core/state-tree.ts";
import { suggest } from "../../core/suggest.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { safe } from "../../text/render.ts";
import type { Context, OptionTable } from "./command-spec.ts";
import { isTree } from "./state-dir.ts";
import { listTreeNames } from "./tree-names.ts";

export const SHARED_OPTIONS = {
  state: {
    type: "text",
    short: "s",
    value: "DIR",
    help: "the state tree, or its name of `trees` (default: MAILCHUTE_STATE, or `state` here or in the nearest directory above)",
  },
  json: {
    type: "flag",
    help: "one JSON document on stdout (JSON lines for streams), nothing else",
  },
  "no-color": { type: "flag", help: "plain text; NO_COLOR does the same" },
  help: { type: "flag", short: "h", help: "this text" },
} as const satisfies OptionTable;

/** The width when stdout is no terminal. */
export const DEFAULT_COLUMNS = 80;

/** The paths of the state tree, for reading only: nothing is created. */
export function treeOf(ctx: Pick<Context, "stateDir" | "env" | "cwd">): StateTree {
  return stateTree(ctx.stateDir, mailboxDirFrom(ctx.env, ctx.cwd));
}

/** Like `treeOf`, for commands that need an existing tree. @throws an error with code ErrNoState (exit 3) */
export function existingTree(
  ctx: Pick<Context, "stateDir" | "stateFrom" | "env" | "cwd">,
): StateTree {
  const tree = treeOf(ctx);
  if (existsTree(tree)) return tree;
  const isNamed = ctx.stateFrom === "flag" || ctx.stateFrom === "environment";
  const name = ctx.stateFrom === "flag" ? "--state" : "MAILCHUTE_STATE";
  const isInside = !isNamed && isTree(ctx.cwd);
  throw new MailchuteError(
    "ErrNoState",
    isNamed ? "this is no state tree" : "there is no state tree here, nor in a directory above",
    {
      path: tree.dir,
      phase: "open",
      hint: isNamed
        ? `check ${name}; \`mailchute init\` makes a new one there${nearName(tree.dir, ctx.env)}`
        : isInside
          ? "this directory itself is one: --state ."
          : "run `mailchute init`, or name another place with --state or MAILCHUTE_STATE",
    },
  );
}

/** The name of a tree that was perhaps meant, for the end of a hint. */
function nearName(dir: string, env: NodeJS.ProcessEnv): string {
  const near = suggest(
    basename(dir),
    listTreeNames(env).map(({ name }) => name),
  );
  return near === undefined ? "" : `; did you mean the tree named ${near}?`;
}

export function existsTree(tree: StateTree): boolean {
  return isTree(tree.dir) || fs.existsSync(join(tree.mailbox, "inbox"));
}

/** For commands that may create a tree: a note that names the tree, when that may surprise. Call this before the tree is created. */
export function describeTree(
  ctx: Pick<Context, "stateDir" | "stateFrom" | "env" | "cwd">,
): string | undefined {
  const tree = treeOf(ctx);
  if (!existsTree(tree)) return `made a new state tree at ${safe(tree.dir)}`;
  return ctx.stateFrom === "above"
    ? `the state tree is ${safe(tree.dir)}, found above this directory`
    : undefined;
}

/** @param flags settings given as flags, by dotted path. @throws ErrInvalidConfig */
export async function openSettings(
  ctx: Pick<Context, "stateDir" | "env">,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<LoadedSettings> {
  const { loadSettings } = await import("../../config/load-settings.ts");
  return loadSettings({ stateDir: ctx.stateDir, env: ctx.env, flags });
}

export interface OpenMailbox {
  tree: StateTree;
  trays: Trays;
  loaded: LoadedSettings;
}

/**
 * Opens the task mailbox.
 * @param isView for reading only: nothing is created. Otherwise missing trays are created
 * @throws ErrMailboxDir, ErrInvalidConfig
 */
export async function openMailbox(
  ctx: Pick<Context, "stateDir" | "env" | "cwd">,
  isView = false,
): Promise<OpenMailbox> {
  const loaded = await openSettings(ctx);
  const { openTrays, viewTrays } = await import("../../mailbox/files/trays.ts");
  const { checkFormat } = await import("../../mailbox/files/tree-format.ts");
  const open = isView ? viewTrays : openTrays;
  const tree = stateTree(ctx.stateDir, loaded.mailboxDir);
  const { durability, uids } = loaded.settings;
  checkFormat(tree.dir);
  return {
    tree,
    // A user who may enqueue need not own the directories: only the owners of files are checked.
    trays: { ...open(tree.mailbox, { durability }), uids },
    loaded,
  };
}

/** The path relative to the working directory, when that is shorter. */
export function shortPath(ctx: Pick<Context, "cwd">, path: string): string {
  const short = relative(ctx.cwd, path);
  return short.startsWith("..") ? path : short;
}
