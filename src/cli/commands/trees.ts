/** `trees`: gives state trees names for `--state NAME` and `status --all`. */
import fs from "node:fs";
import { join, resolve } from "node:path";
import { ErrInvalidTransition, MailchuteError } from "../../core/errors.ts";
import { suggest } from "../../core/suggest.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { safe, table } from "../../text/render.ts";
import { type Context, defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { isTree } from "../shell/state-dir.ts";
import { isTreeName, listTreeNames, treeNamesDir, treeOfName } from "../shell/tree-names.ts";

export const command = defineCommand({
  usage: "ls | add NAME [DIR] | remove NAME",
  subcommands: {
    ls: "list the names and their state trees",
    add: "give a state tree a name (DIR: default the one used here)",
    remove: "forget a name; the tree stays",
  },
  args: { min: 0, max: 2 },
  details: [
    "A name stands for the directory of a state tree in every command: --state NAME, -s NAME or MAILCHUTE_STATE=NAME. A state tree here that is called so comes first. `mailchute status --all` shows all trees that have names.",
    "Names are links in ~/.config/mailchute/trees (or XDG_CONFIG_HOME), so ln -s and rm do the same.",
  ],
  examples: ["trees add work ~/projects/shop/state", "-s work status", "status --all"],
  options: {},
  async run(ctx) {
    const [name, dir, ...more] = ctx.positionals;
    const max = { ls: 0, add: 2, remove: 1 }[ctx.subcommand] ?? 0;
    if (more.length > 0 || ctx.positionals.length > max)
      throw new ErrUsage(`trees ${ctx.subcommand} takes ${max === 0 ? "no name" : "one name"}`);
    if (ctx.subcommand === "ls") return list(ctx);
    if (name === undefined)
      throw new ErrUsage(`trees ${ctx.subcommand} needs a name`, "see `mailchute trees --help`");
    return ctx.subcommand === "add" ? add(ctx, name, dir) : remove(ctx, name);
  },
});

function list(ctx: Context): number {
  const trees = listTreeNames(ctx.env).map((one) => ({ ...one, exists: isTree(one.dir) }));
  if (ctx.json) ctx.out.json({ dir: treeNamesDir(ctx.env), trees });
  else if (trees.length === 0)
    ctx.out.note("no state tree has a name yet: `mailchute trees add NAME [DIR]`");
  else {
    const rows = trees.map(({ name, dir, exists }) => [
      name,
      safe(dir),
      exists ? "" : "(no state tree is there)",
    ]);
    const columns = [{ title: "NAME" }, { title: "TREE" }, { title: "" }];
    for (const line of table(columns, rows, ctx.columns, ctx.colour)) ctx.out.line(line);
  }
  return EXIT.ok;
}

function add(ctx: Context, name: string, named: string | undefined): number {
  if (!isTreeName(name))
    throw new ErrUsage(
      `${JSON.stringify(name)} cannot be the name of a tree`,
      "a name begins with a letter or digit and has only those, ., _ and -, at most 63 of them",
    );
  const dir = named === undefined ? ctx.stateDir : resolve(ctx.cwd, named);
  if (!isTree(dir))
    throw new MailchuteError("ErrNoState", "this is no state tree", {
      path: dir,
      phase: "open",
      hint: isTree(join(dir, "state"))
        ? `there is one below it: ${join(dir, "state")}`
        : "name the directory of a state tree; `mailchute init` makes one",
    });
  const names = treeNamesDir(ctx.env);
  makeDirs(names, Number.POSITIVE_INFINITY);
  try {
    fs.symlinkSync(dir, join(names, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const is = treeOfName(name, ctx.env);
    if (is !== dir)
      throw new ErrInvalidTransition(`${name} is already the name of another tree`, {
        path: is ?? join(names, name),
        hint: `take another name, or forget this one: \`mailchute trees remove ${name}\``,
      });
  }
  if (ctx.json) ctx.out.json({ name, dir });
  else ctx.out.line(`${name}  ${safe(dir)}`);
  return EXIT.ok;
}

function remove(ctx: Context, name: string): number {
  if (treeOfName(name, ctx.env) === undefined) {
    const near = suggest(
      name,
      listTreeNames(ctx.env).map((one) => one.name),
    );
    throw new MailchuteError("ErrNoState", `no tree has the name ${JSON.stringify(name)}`, {
      path: treeNamesDir(ctx.env),
      phase: "open",
      hint: near === undefined ? "see `mailchute trees ls`" : `did you mean "${near}"?`,
    });
  }
  fs.unlinkSync(join(treeNamesDir(ctx.env), name));
  return EXIT.ok;
}
