/** The options that every command shares, and what they open: the state tree, its settings, its mailbox. */
import fs from "node:fs";
import { resolve } from "node:path";
import type { LoadedSettings } from "../codec/config-codec.ts";
import { mailboxDirFrom } from "../codec/environment.ts";
import { MailchuteError } from "../core/errors.ts";
import { type StateTree, stateTree } from "../core/state-tree.ts";
import type { Trays } from "../mailbox/trays.ts";
import { type Context, ErrUsage, type OptionTable } from "./command-spec.ts";

export const SHARED_OPTIONS = {
  state: {
    type: "text",
    value: "DIR",
    help: "the state tree (default: MAILCHUTE_STATE, or ./state)",
  },
  json: {
    type: "flag",
    help: "one JSON document on stdout (JSON lines for streams), nothing else",
  },
  "no-color": { type: "flag", help: "plain text; NO_COLOR does the same" },
  help: { type: "flag", short: "h", help: "this text" },
} as const satisfies OptionTable;

/** Columns to fit when stdout is no terminal. */
export const DEFAULT_COLUMNS = 80;

/** @throws ErrUsage for `--state ""`: a shell's variable that is not set must not mean another tree */
export function resolveStateDir(
  flag: string | undefined,
  env: NodeJS.ProcessEnv,
  cwd: string,
): string {
  if (flag === "")
    throw new ErrUsage(
      "--state is empty",
      "name a directory, or leave it out; perhaps a variable of the shell is not set",
    );
  const named = flag ?? env["MAILCHUTE_STATE"];
  return resolve(cwd, named === undefined || named === "" ? "state" : named);
}

/** The paths of the state tree, for looking only: nothing is made. */
export function treeOf(ctx: Pick<Context, "stateDir" | "env" | "cwd">): StateTree {
  return stateTree(ctx.stateDir, mailboxDirFrom(ctx.env, ctx.cwd));
}

/** Like `treeOf`, for commands that make no sense without a tree. @throws an error with code ErrNoState (exit 3) */
export function existingTree(ctx: Pick<Context, "stateDir" | "env" | "cwd">): StateTree {
  const tree = treeOf(ctx);
  if (!existsTree(tree)) {
    throw new MailchuteError("ErrNoState", "there is no state tree here", {
      path: tree.dir,
      phase: "open",
      hint: "run `mailchute init`, or name another place with --state or MAILCHUTE_STATE",
    });
  }
  return tree;
}

export function existsTree(tree: StateTree): boolean {
  return fs.existsSync(tree.mailbox) || fs.existsSync(tree.dir);
}

/** @param flags settings given as flags, by dotted path. @throws ErrInvalidConfig */
export async function openSettings(
  ctx: Pick<Context, "stateDir" | "env">,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<LoadedSettings> {
  const { loadSettings } = await import("../supervisor/load-settings.ts");
  return loadSettings({ stateDir: ctx.stateDir, env: ctx.env, flags });
}

export interface OpenMailbox {
  tree: StateTree;
  trays: Trays;
  loaded: LoadedSettings;
}

/** Opens the task mailbox for changing it; makes missing trays. @throws ErrMailboxDir, ErrInvalidConfig */
export async function openMailbox(
  ctx: Pick<Context, "stateDir" | "env" | "cwd">,
): Promise<OpenMailbox> {
  const loaded = await openSettings(ctx);
  const { openTrays } = await import("../mailbox/trays.ts");
  const tree = stateTree(ctx.stateDir, loaded.mailboxDir);
  return {
    tree,
    trays: openTrays(tree.mailbox, { durability: loaded.settings.durability }),
    loaded,
  };
}
