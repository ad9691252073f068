/** `node add|update|set-status`: changes the plan in its file, so that this works with and without a supervisor. */
import { resolve } from "node:path";
import {
  type Context,
  defineCommand,
  ErrUsage,
  type OptionTable,
  priorityOf,
  priorityOption,
} from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { MAX_ATTEMPTS_MAX } from "../../../core/limits.ts";
import { NODE_TYPES } from "../../../core/roadmap.ts";
import { suggest } from "../../../core/suggest.ts";
import { systemClock } from "../../../host/system-clock.ts";
import { KvStore } from "../../../kv/store.ts";
import { noteOpened } from "../answers.ts";
import type { NewNode, RoadmapEdit, SettableField } from "../edit/edit.ts";
import { findNode } from "../read/document.ts";
import { readStatus } from "../read/item.ts";
import { editPlan, shownIn } from "./read-plan.ts";

const STATUS_WORDS = ["open", "pending", "in_progress", "blocked", "needs_human", "done", "failed"];
const USAGES: Readonly<Record<string, string>> = {
  add: "usage: mailchute node add ID [--title TEXT] … [-- CMD ARGS…]",
  update: "usage: mailchute node update ID [--title TEXT] … [-- CMD ARGS…]",
  "set-status": `usage: mailchute node set-status ID ${STATUS_WORDS.join("|")}`,
};

export const command = defineCommand({
  usage: "add ID … | update ID … | set-status ID STATUS",
  args: { min: 1, max: 2 },
  takesRest: true,
  subcommands: {
    add: "add a node to the list `nodes`; prints its id",
    update: "set the given fields, and leave the others",
    "set-status": "change the status",
  },
  details: [
    "Changes roadmap.yaml in place: comments, order and spacing stay. If you save the file at the same moment, nothing is lost. A change that would break the plan is refused.",
  ],
  examples: [
    "node add T-7 --title 'Write tests' --after T-6 -- npm test",
    "node update T-7 --priority high --acceptance 'all green'",
    "node set-status T-7 done",
  ],
  options: {
    title: { type: "text", value: "TEXT", help: "what lists show" },
    type: { type: "text", value: "TYPE", choices: NODE_TYPES, help: "default: task" },
    parent: { type: "text", value: "ID", help: "the plan, epic or milestone that it belongs to" },
    after: {
      type: "text",
      value: "ID",
      many: true,
      help: "add: wait until this node is done (see dep for more)",
    },
    agent: { type: "text", value: "NAME", help: "the configured agent that runs it" },
    role: {
      type: "text",
      value: "TYPE",
      help: "the agent type to use instead of the one for the node's type",
    },
    capabilities: { type: "text", value: "A,B", help: "capabilities that the agent must have" },
    priority: priorityOption("default: medium"),
    "max-attempts": {
      type: "number",
      value: "N",
      min: 1,
      max: MAX_ATTEMPTS_MAX,
      help: "run it at most N times",
    },
    goal: { type: "text", value: "TEXT", help: "what is to be reached" },
    prompt: { type: "text", value: "TEXT", help: "text for the agent" },
    acceptance: { type: "text", value: "TEXT", many: true, help: "what must be true at the end" },
    verify: {
      type: "text",
      value: "LINE",
      many: true,
      help: "a line for the shell; it must succeed, or the run has failed",
    },
    input: {
      type: "text",
      value: "NODE:KEY",
      many: true,
      help: "a value of another node to show in its packet",
    },
    domain: { type: "text", value: "NAME", help: "for filters" },
    cwd: { type: "text", value: "DIR", help: "where its programs run" },
    timeout: { type: "duration", unit: "s", value: "TIME", help: "longest run" },
  },
  async run(ctx) {
    const id = ctx.positionals[0] ?? "";
    const word = ctx.positionals[1];
    const given = givenFields(ctx.cwd, ctx.options, ctx.rest);
    if (ctx.subcommand === "set-status") {
      if (Object.keys(given).length > 0 || ctx.options.after.length > 0)
        throw new ErrUsage("node set-status takes no options", USAGES["set-status"]);
      return setStatus(ctx, id, word);
    }
    if (word !== undefined)
      throw new ErrUsage(
        `node ${ctx.subcommand} does not know what to do with ${JSON.stringify(word)}`,
        USAGES[ctx.subcommand],
      );
    const { after } = ctx.options;
    if (ctx.subcommand === "add") {
      const node: NewNode = { id, ...given, ...(after.length > 0 && { dependencies: [...after] }) };
      return change(ctx, id, [{ kind: "add", node }]);
    }
    const edits = [
      ...Object.entries(given).map(([field, value]): RoadmapEdit => {
        return { kind: "set", id, field: field as SettableField, value };
      }),
      ...after.map((on): RoadmapEdit => ({ kind: "add-dep", id, on })),
    ];
    if (edits.length === 0)
      throw new ErrUsage("node update needs something to set", USAGES["update"]);
    return change(ctx, id, edits);
  },
});

type NodeContext = Pick<Context, "stateDir" | "stateFrom" | "env" | "cwd" | "out" | "json">;

/** Makes the edits, and shows the node. */
async function change(
  ctx: NodeContext,
  id: string,
  edits: readonly RoadmapEdit[],
): Promise<number> {
  const { after } = await editPlan(ctx, () => edits);
  const node = findNode(after, id);
  if (ctx.json) ctx.out.json(shownIn(after)(node));
  else ctx.out.line(node?.id);
  return EXIT.ok;
}

async function setStatus(ctx: NodeContext, id: string, word: string | undefined): Promise<number> {
  const status = word === undefined ? undefined : readStatus(word);
  if (status === undefined) {
    const near = word === undefined ? undefined : suggest(word, STATUS_WORDS);
    throw new ErrUsage(
      word === undefined
        ? "node set-status needs a status"
        : `${JSON.stringify(word)} is not a status`,
      near === undefined ? USAGES["set-status"] : `did you mean "${near}"?`,
    );
  }
  const { before, after } = await editPlan(ctx, async (doc) => {
    const known = findNode(doc, id);
    if (status === "open" && known !== undefined && known.status !== "open")
      await tellOpened(ctx, known.id);
    return [{ kind: "status", id, status }];
  });
  const from = findNode(before, id)?.status;
  const node = findNode(after, id);
  if (ctx.json) ctx.out.json({ id: node?.id, from, to: status });
  else ctx.out.line(`${node?.id}: ${from} → ${status}`);
  return EXIT.ok;
}

/** Records that a person opens the node before the file changes, so that the supervisor does not take the change for an old copy. */
async function tellOpened(ctx: NodeContext, id: string): Promise<void> {
  const { settings } = await openSettings(ctx);
  const kv = new KvStore(existingTree(ctx).kv, systemClock, settings.durability);
  await noteOpened(kv, systemClock, id);
  kv.close();
}

/** The given options only, under the keys of the plan's file. */
function givenFields(
  cwd: string,
  options: Context<OptionTable>["options"],
  rest: readonly string[] | undefined,
): Partial<Record<SettableField, unknown>> {
  const texts = (name: string): string[] | undefined => {
    const values = options[name] as unknown as string[];
    return values.length === 0 ? undefined : values;
  };
  const verify = texts("verify");
  const fields: Partial<Record<SettableField, unknown>> = {
    type: options["type"],
    title: options["title"],
    parent: options["parent"],
    domain: options["domain"],
    priority: priorityOf(options["priority"] as string | undefined),
    agent: options["agent"],
    role: options["role"],
    capabilities: (options["capabilities"] as string | undefined)
      ?.split(",")
      .map((one) => one.trim()),
    retry_policy:
      options["max-attempts"] === undefined ? undefined : { max_attempts: options["max-attempts"] },
    goal: options["goal"],
    prompt: options["prompt"],
    acceptance: texts("acceptance"),
    verify: verify?.length === 1 ? verify[0] : verify?.map((line) => ["sh", "-c", line]),
    inputs: texts("input"),
    cwd: options["cwd"] === undefined ? undefined : resolve(cwd, String(options["cwd"])),
    timeout_ms: options["timeout"],
    exec: rest === undefined ? undefined : [...rest],
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
