/** `control …` and its short forms such as `pause`: commands for a running supervisor. */
import { openIdReaders } from "../../app/id-readers.ts";
import { ErrTaskNotFound, messageOf } from "../../core/errors.ts";
import {
  awaitAcknowledgement,
  type SentCommand,
  sendCommand,
} from "../../mailbox/commands/send-command.ts";
import { resultText } from "../../text/command-result.ts";
import { safe } from "../../text/render.ts";
import { findTask, noSuchTask } from "../../view/find-task.ts";
import {
  type Context,
  defineCommand,
  ErrUsage,
  type OptionTable,
  textOption,
} from "../shell/command-spec.ts";
import { describeError, type ErrorReport } from "../shell/error-text.ts";
import { EXIT, exitCodeOf } from "../shell/exit-codes.ts";
import { giveCommand, noteIfAlone, TIMEOUT, timeoutOf, WAIT } from "../shell/give-command.ts";
import { existingTree, openSettings } from "../shell/options.ts";

/** Sends one command for each task before it waits for any. A refused command does not stop the others. */
async function sendEach(
  ctx: Context<OptionTable>,
  command: string,
  each: readonly Record<string, unknown>[],
): Promise<number> {
  existingTree(ctx);
  const isWaiting = ctx.options["wait"] === true;
  const sent: (SentCommand & { result?: object })[] = [];
  const refused: (Omit<SentCommand, "id"> & { error: ErrorReport })[] = [];
  let exitCode: number = EXIT.ok;
  const refuse = (one: Omit<SentCommand, "id">, error: unknown): void => {
    const code = exitCodeOf(error);
    if (code === EXIT.bug || code === EXIT.io) throw error;
    refused.push({ ...one, error: describeError(error) });
    exitCode = Math.max(exitCode, code);
    if (!ctx.json) ctx.out.note(`${safe(one.args["node"])}: ${safe(messageOf(error))}`);
  };
  for (const args of each) {
    try {
      await checkTask(ctx, args["node"]);
      const one = await sendCommand(ctx.stateDir, command, args);
      sent.push(one);
      if (!ctx.json && !isWaiting) ctx.out.line(one.id);
    } catch (error) {
      refuse({ command, args }, error);
    }
  }
  if (!isWaiting && sent.length > 0) noteIfAlone(ctx);
  const deadline = performance.now() + timeoutOf(ctx);
  for (const one of isWaiting ? sent.splice(0) : []) {
    try {
      const leftMs = Math.max(0, deadline - performance.now());
      const result = await awaitAcknowledgement(ctx.stateDir, one.id, leftMs);
      sent.push(result === undefined ? one : { ...one, result });
      if (result === undefined) {
        ctx.out.note(`${safe(one.args["node"])}: no answer in time`);
        exitCode = Math.max(exitCode, EXIT.waitTimedOut);
      } else if (!ctx.json) ctx.out.line(resultText(result));
    } catch (error) {
      refuse(one, error);
    }
  }
  const placeOf = ({ args }: Pick<SentCommand, "args">): number =>
    each.findIndex(({ node }) => node === args["node"]);
  refused.sort((a, b) => placeOf(a) - placeOf(b));
  if (ctx.json) ctx.out.json({ sent, refused });
  return exitCode;
}

/** @throws ErrTaskNotFound when neither a tray nor the plan knows the id. A plan that cannot be read may know it */
async function checkTask(ctx: Context<OptionTable>, id: unknown): Promise<void> {
  const tree = existingTree(ctx);
  if (typeof id !== "string" || (await findTask(tree, id)) !== undefined) return;
  const isInPlan = await openIdReaders(tree, undefined).membership();
  if (isInPlan?.(id) === false) throw noSuchTask(id, "cancel");
}

function workersOf(text: string | undefined): number {
  if (text === undefined || !/^\d{1,15}$/.test(text)) {
    throw new ErrUsage(
      `set-workers needs a whole number, found ${text === undefined ? "none" : JSON.stringify(text)}`,
      "usage: mailchute set-workers N",
    );
  }
  return Number(text);
}

function setSlots(ctx: Context<OptionTable>, text: string | undefined): Promise<number> {
  const workers = workersOf(text);
  if (workers === 0 && !ctx.json)
    ctx.out.note("with 0 slots no task starts, until mailchute set-workers N");
  return giveCommand(ctx, "set-workers", { workers });
}

const controlCommand = defineCommand({
  usage: "pause | resume | set-workers --workers N | replan | cancel --node ID",
  subcommands: {
    pause: "start nothing new; running tasks go on to their end",
    resume: "go on",
    "set-workers": "change the number of slots: --workers N",
    replan: "open the plan again; until it is done, only planner nodes start",
    cancel: "stop a running task and put it back: --node ID",
  },
  details: [
    "Enqueues the command and prints its id. The same commands may be dropped as files into control/inbox/.",
  ],
  examples: [
    "control pause",
    "control set-workers --workers 3",
    "control cancel --node report-7 --wait",
  ],
  options: {
    workers: textOption("N", "with set-workers: slots over all worker processes"),
    node: textOption("ID", "with cancel: the task or roadmap node"),
    wait: WAIT,
    timeout: TIMEOUT,
  },
  async run(ctx) {
    const { workers, node } = ctx.options;
    const only = (name: string, value: unknown): void => {
      if (value !== undefined)
        throw new ErrUsage(
          `--${name} does not go with ${ctx.subcommand}`,
          "see `mailchute control --help`",
        );
    };
    if (ctx.subcommand !== "set-workers") only("workers", workers);
    if (ctx.subcommand !== "cancel") only("node", node);
    switch (ctx.subcommand) {
      case "set-workers":
        return setSlots(ctx, workers);
      case "cancel":
        if (node === undefined)
          throw new ErrUsage("cancel needs --node ID", "usage: mailchute control cancel --node ID");
        await checkTask(ctx, node);
        return giveCommand(ctx, "cancel", { node });
      default:
        return giveCommand(ctx, ctx.subcommand, {});
    }
  },
});

const plain = (name: string, usage: string, detail: string) =>
  defineCommand({
    usage,
    details: [detail],
    options: { wait: WAIT, timeout: TIMEOUT },
    run: (ctx) => giveCommand(ctx, name, {}),
  });

const setWorkers = defineCommand({
  usage: "N [--wait]",
  args: { min: 1, max: 1 },
  details: [
    "More slots are used at once. With fewer slots, no running task is stopped: slots go as tasks end.",
  ],
  options: { wait: WAIT, timeout: TIMEOUT },
  run: (ctx) => setSlots(ctx, ctx.positionals[0]),
});

const resume = defineCommand({
  usage: "[--wait] | --agent NAME",
  details: [
    "New tasks start again at once. With --agent: the tasks of one agent that was paused because its runs failed again and again. That " +
      "works without a supervisor.",
  ],
  examples: ["resume", "resume --agent coder"],
  options: {
    agent: textOption("NAME", "the paused agent: `mailchute status` shows why it is paused"),
    wait: WAIT,
    timeout: TIMEOUT,
  },
  async run(ctx) {
    const { agent } = ctx.options;
    if (agent === undefined) return giveCommand(ctx, "resume", {});
    const { BreakerFile } = await import("../../agents/breaker/breaker-file.ts");
    const paused = new BreakerFile(existingTree(ctx).dir, agent).resume();
    const { settings } = await openSettings(ctx);
    if (paused === undefined && !settings.agents.some(({ name }) => name === agent))
      throw new ErrTaskNotFound(`config.yaml has no agent ${JSON.stringify(agent)}`, {
        id: agent,
        phase: "resume",
        hint: "`mailchute status` shows which agents are paused",
      });
    if (ctx.json) ctx.out.json({ agent, resumed: paused !== undefined });
    else if (paused === undefined) ctx.out.note(`the agent ${safe(agent)} is not paused`);
    else ctx.out.line(`the tasks of ${safe(agent)} start again`);
    return EXIT.ok;
  },
});

const cancel = defineCommand({
  usage: "ID… [--requeue]",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "Ends tasks for good, waiting or running: their error record says kind cancelled. With --requeue a running task is stopped and put back " +
      "into the inbox, and uses up no attempt. Of several tasks, all are cancelled first, and then --wait waits for them. --json prints one object: " +
      "the commands that were sent, and those that were refused. Exit code 3: no tray and no plan has the task.",
  ],
  options: {
    requeue: { type: "flag", help: "put the tasks back instead of ending them" },
    wait: WAIT,
    timeout: TIMEOUT,
  },
  async run(ctx) {
    const each = [...new Set(ctx.positionals)].map((node) =>
      ctx.options.requeue ? { node } : { node, final: true },
    );
    const [first] = each;
    if (first === undefined || each.length > 1) return sendEach(ctx, "cancel", each);
    await checkTask(ctx, first.node);
    return giveCommand(ctx, "cancel", first);
  },
});

export const commands = {
  control: controlCommand,
  pause: plain(
    "pause",
    "[--wait]",
    "Nothing new starts; running tasks go on to their end. The pause holds over a restart of the supervisor.",
  ),
  resume,
  replan: plain(
    "replan",
    "[--wait]",
    "Opens the plan again. Until it is done, only planner nodes start.",
  ),
  "set-workers": setWorkers,
  cancel,
};
