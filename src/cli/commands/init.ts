/** `init`: makes an empty state tree with a commented config, or one with a sample plan. It overwrites only the schemas, which editors use. */
import { dirname, join, resolve } from "node:path";
import { mailboxDirFrom } from "../../config/environment.ts";
import { SCHEMAS, type SchemaName, schemaDocument } from "../../config/schemas.ts";
import { ErrIo, messageOf } from "../../core/errors.ts";
import { CODING_AGENTS } from "../../core/settings.ts";
import { stateTree } from "../../core/state-tree.ts";
import { explainNoWalls } from "../../host/bubblewrap.ts";
import { createText } from "../../host/documents.ts";
import { findProgram } from "../../host/find-program.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import { makeStateDir, openTrays } from "../../mailbox/files/trays.ts";
import { checkFormat, noteFormat } from "../../mailbox/files/tree-format.ts";
import { safe } from "../../text/render.ts";
import { type Context, defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { openSettings } from "../shell/options.ts";
import { describeAgents, type FoundAgent, withAgents } from "../text/sample-agents.ts";
import { EMPTY_CONFIG, SAMPLE_AGENT, SAMPLE_CONFIG, SAMPLE_ROADMAP } from "../text/samples.ts";

const NO_AGENT =
  "neither claude nor codex is on PATH: install one and give init --agents again, or add another program to agents of config.yaml, as {name: me, kind: exec, program: /home/me/standin.sh}";

export const command = defineCommand({
  usage: "[DIR] [--agents] [--sample]",
  args: { min: 0, max: 1 },
  details: [
    "Makes DIR (default: the state tree named by --state or MAILCHUTE_STATE, or ./state) and adds what is missing in it. Existing files stay as they are; only schemas/, which is for editors, is made anew.",
  ],
  options: {
    agents: { type: "flag", help: "configure claude and codex, as far as they are on PATH" },
    sample: {
      type: "flag",
      help: "add a plan of two tasks, which the next run executes, and an agent for it",
    },
  },
  async run(ctx) {
    const [named] = ctx.positionals;
    const isAbove = ctx.stateFrom === "above";
    const dir = named === undefined && !isAbove ? ctx.stateDir : resolve(ctx.cwd, named ?? "state");
    const tree = stateTree(dir, mailboxDirFrom(ctx.env, ctx.cwd));
    makeStateDir(dir);
    openTrays(tree.mailbox);
    openTrays(tree.control);
    checkFormat(dir);
    noteFormat(dir);
    const agents = join(dir, "agents");
    for (const path of [
      agents,
      dirname(tree.events),
      tree.runs,
      tree.evidence,
      tree.kv,
      tree.workers,
      join(dir, "schedules"),
    ])
      makeStateDir(path);
    const found = ctx.options.agents ? findAgents(ctx.env) : [];
    const config = ctx.options.sample ? SAMPLE_CONFIG : EMPTY_CONFIG;
    const texts: [path: string, text: string][] = [
      [tree.config, found.length === 0 ? config : withAgents(config, found)],
    ];
    if (ctx.options.sample)
      texts.unshift([tree.roadmap, SAMPLE_ROADMAP], [join(agents, "hello.mjs"), SAMPLE_AGENT]);
    const files = texts.map(([path, text]) => ({ path, made: writeNew(path, text) }));
    await writeSchemas(dir);
    if (ctx.json) {
      ctx.out.json({ state_dir: dir, mailbox_dir: tree.mailbox, files });
      return EXIT.ok;
    }
    ctx.out.line(`state tree  ${safe(dir)}`);
    for (const { path, made } of files)
      ctx.out.line(`${made ? "written     " : "left as is  "}${safe(path)}`);
    const isWritten = files.at(-1)?.made === true;
    if (ctx.options.agents)
      reportAgents(ctx, found, isWritten ? [] : await missing(found, dir, ctx.env));
    if (isAbove && named === undefined)
      ctx.out.note(`${safe(ctx.stateDir)} is a state tree, too; from here the new one is used`);
    const flag =
      dir === resolve(ctx.cwd, "state")
        ? ""
        : ` --state ${/^[\w./-]+$/.test(dir) ? dir : JSON.stringify(dir)}`;
    ctx.out.line();
    const [first] = isWritten ? found : [];
    for (const line of nextSteps(flag, first)) ctx.out.line(line);
    return EXIT.ok;
  },
});

function nextSteps(flag: string, agent: FoundAgent | undefined): string[] {
  if (agent === undefined)
    return [`Next: mailchute run${flag}`, `and:  mailchute enqueue${flag} -- echo hello`];
  return [
    `Next: mailchute doctor${flag}`,
    `then: mailchute run${flag}`,
    `and:  mailchute enqueue${flag} --agent ${agent.kind} --prompt "Say hello."`,
  ];
}

function findAgents(env: NodeJS.ProcessEnv): FoundAgent[] {
  return CODING_AGENTS.flatMap((kind) => {
    const path = findProgram(kind, env["PATH"], "/");
    if (path === undefined) return [];
    // Behind walls a program sees a /tmp of its own.
    const hasWalls = !path.startsWith("/tmp/") && explainNoWalls() === undefined;
    return [{ kind, path, hasWalls }];
  });
}

/** The agents that are missing in a config that existed before. */
async function missing(
  found: readonly FoundAgent[],
  stateDir: string,
  env: NodeJS.ProcessEnv,
): Promise<FoundAgent[]> {
  const { settings } = await openSettings({ stateDir, env });
  return found.filter(
    ({ kind }) => !settings.agents.some((one) => one.kind === kind || one.name === kind),
  );
}

/** @param wanted the agents that a person has to add to the config */
function reportAgents(
  ctx: Pick<Context, "out">,
  found: readonly FoundAgent[],
  wanted: readonly FoundAgent[],
): void {
  for (const { kind, path } of found) ctx.out.line(`agent       ${kind}: ${safe(path)}`);
  if (found.length === 0) ctx.out.note(NO_AGENT);
  if (wanted.length > 0)
    ctx.out.note(
      `config.yaml is left as it is; add this to its agents:\n${describeAgents(wanted)}`,
    );
}

/** Writes the schemas for editors. The first lines of config.yaml and roadmap.yaml name them. */
async function writeSchemas(dir: string): Promise<void> {
  const folder = join(dir, "schemas");
  makeStateDir(folder);
  for (const name of Object.keys(SCHEMAS) as SchemaName[]) {
    const path = join(folder, `${name}.json`);
    try {
      replaceDocument(path, await schemaDocument(name), { stagingDir: join(dir, ".tmp") });
    } catch (error) {
      throw cannotWrite(path, error);
    }
  }
}

/** False when the file exists. Writes the whole file or nothing, because the next init would not repair an incomplete file. */
function writeNew(path: string, text: string): boolean {
  try {
    return createText(path, text);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

function cannotWrite(path: string, cause: unknown): ErrIo {
  return new ErrIo(`cannot write the file: ${messageOf(cause)}`, { path, phase: "init", cause });
}
