/** `interrupt`: ends the turn of a running agent. The agent goes on in its session with a new text. */
import { defineCommand, durationOption, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { compact } from "../../../core/compact.ts";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../../core/errors.ts";
import {
  awaitAcknowledgement,
  findSupervisor,
  sendCommand,
} from "../../../mailbox/commands/send-command.ts";
import { findClaim, locate } from "../../../mailbox/find/locate.ts";
import { safe } from "../../../text/render.ts";
import { readAgent } from "../agents/agents.ts";
import { runsOfAgent } from "../agents/runs-of-agent.ts";
import { openOwn } from "../roots/open-own.ts";
import { parseAddress } from "../scope/scope.ts";

const ACK_TIMEOUT_MS = 30_000;
const TEXT_CHARS_MAX = 32 * 1024;

/** What happens to the run, for each answer of the supervisor. */
const OUTCOMES: Readonly<Record<string, string>> = {
  turn: "its turn has ended, and the same run goes on with your text",
  run: "its run was stopped, and the next one goes on in its session with your text",
  later: "mailchute could not stop its run from here; the next run gets your text",
};

export const command = defineCommand({
  usage: "NAME|ID [TEXT] [--wait]",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "Ends what the agent NAME, or the agent of the task ID, does now. It goes on in the same session and reads TEXT first. A running claude, codex with `mode: app-server`, or program of kind acp stays; the run of another coding agent, or of one that does not answer for 3 s, is stopped, and its next run goes on. No attempt is used up.",
    "Prints the id of the command; with --wait, what has become of the run. Exit code 3: there is no such task or agent, 4: nothing of it runs, or it is no coding agent.",
  ],
  examples: ['interrupt coder-2 "stop that, look at the schema first" --wait', "interrupt build"],
  options: {
    wait: { type: "flag", help: "wait for the effect" },
    timeout: durationOption("S", "with --wait: give up after this long (default: 30 s)"),
  },
  async run(ctx) {
    existingTree(ctx);
    const [named = "", ...words] = ctx.positionals;
    const text = words.join(" ");
    if (words.length > 0 && text.trim() === "") throw new ErrUsage("there is no text");
    if (text.length > TEXT_CHARS_MAX)
      throw new ErrUsage(`a text has at most ${TEXT_CHARS_MAX} characters`, "name a file in it");
    const node = await findRun(ctx, named);
    const args = compact({ node, text: words.length === 0 ? undefined : text });
    const sent = await sendCommand(ctx.stateDir, "interrupt", args);
    if (!ctx.options.wait) {
      if (ctx.json) ctx.out.json(sent);
      else ctx.out.line(sent.id);
      if (findSupervisor(ctx.stateDir) === undefined)
        ctx.out.note("no supervisor runs here; the command waits for the next one");
      return EXIT.ok;
    }
    const limitMs = ctx.options.timeout ?? ACK_TIMEOUT_MS;
    const result = await awaitAcknowledgement(ctx.stateDir, sent.id, limitMs);
    if (result === undefined) {
      ctx.out.note(`${sent.id}: no answer in time`);
      return EXIT.waitTimedOut;
    }
    if (ctx.json) ctx.out.json({ ...sent, result });
    else ctx.out.line(`${safe(node)}: ${OUTCOMES[String(result["goes_on"])] ?? "interrupted"}`);
    return EXIT.ok;
  },
});

type FindContext = Parameters<typeof openMailbox>[0];

/** The id of the running task: `named` itself, or the task of the agent with this name. @throws ErrTaskNotFound, ErrInvalidTransition */
async function findRun(ctx: FindContext, named: string): Promise<string> {
  const { loaded, trays, tree } = await openMailbox(ctx, true);
  const { settings } = loaded;
  if (findClaim(trays, named)?.name.stage === "w") return named;
  const { folder } = await openOwn(settings, tree.dir, ctx.env);
  const name = parseAddress(named.replace(/^@/, ""), folder.scope)?.name ?? "";
  const isConfigured = settings.agents.some((one) => one.name.toLowerCase() === name);
  const isAgent = isConfigured || readAgent(folder, name) !== undefined;
  const details = { id: named, phase: "interrupt" };
  if (!isAgent && locate(trays, named) === undefined)
    throw new ErrTaskNotFound(`there is no task and no agent ${JSON.stringify(named)}`, {
      ...details,
      hint: "`mailchute agents` and `mailchute status` list them",
    });
  const [run, ...more] = isAgent ? runsOfAgent(trays, folder, settings.agents, name) : [];
  if (run === undefined)
    throw new ErrInvalidTransition(`nothing of ${JSON.stringify(named)} runs`, {
      ...details,
      hint: isAgent
        ? `nothing was done; leave a message: mailchute say TEXT --to ${name}`
        : `nothing was done; its next run gets a text with: mailchute say ${named} TEXT`,
    });
  if (more.length === 0) return run;
  throw new ErrInvalidTransition(`${JSON.stringify(named)} has ${more.length + 1} runs`, {
    ...details,
    hint: `name one of them: ${[run, ...more].join(", ")}`,
  });
}
