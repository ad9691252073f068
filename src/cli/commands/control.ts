/** `control …` and its top-level short forms: commands for a running supervisor. */
import { type Context, defineCommand, ErrUsage, type OptionTable } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { safe } from "../render.ts";
import { awaitAcknowledgement, findSupervisor, sendCommand } from "../send-command.ts";

const ACK_TIMEOUT_MS = 30_000;
const WAIT = { type: "flag", help: "wait for the effect" } as const;
const TIMEOUT = {
  type: "duration",
  unit: "s",
  value: "S",
  help: "with --wait: give up after this long (default: 30 s)",
} as const;

/** Sends one command; prints its id, or with --wait what came of it. */
async function send(
  ctx: Context<OptionTable>,
  command: string,
  args: Record<string, unknown>,
): Promise<number> {
  const sent = await sendCommand(ctx.stateDir, command, args);
  if (ctx.options["wait"] !== true) {
    if (ctx.json) ctx.out.json(sent);
    else ctx.out.line(sent.id);
    if (findSupervisor(ctx.stateDir) === undefined)
      ctx.out.note("no supervisor runs here; the command waits for the next one");
    return EXIT.ok;
  }
  const result = await awaitAcknowledgement(
    ctx.stateDir,
    sent.id,
    (ctx.options["timeout"] as number | undefined) ?? ACK_TIMEOUT_MS,
  );
  if (result === undefined) {
    ctx.out.note(`${sent.id}: no answer in time`);
    return EXIT.waitTimedOut;
  }
  if (ctx.json) ctx.out.json({ ...sent, result });
  else
    ctx.out.line(
      Object.entries(result)
        .map(
          ([key, value]) =>
            `${key}: ${safe(typeof value === "string" ? value : JSON.stringify(value))}`,
        )
        .join(", "),
    );
  return EXIT.ok;
}

function workersOf(text: string | undefined): number {
  if (text === undefined || !/^\d{1,4}$/.test(text)) {
    throw new ErrUsage(
      `set-workers needs a whole number, found ${text === undefined ? "none" : JSON.stringify(text)}`,
      "usage: mailchute set-workers N",
    );
  }
  return Number(text);
}

const controlCommand = defineCommand({
  usage: "",
  subcommands: {
    pause: "launch nothing new; what runs completes",
    resume: "go on",
    "set-workers": "change the number of slots: --workers N",
    replan: "reopen the plan and hold back all but planner nodes until it is done",
    cancel: "stop what runs and put it back: --node ID",
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
    workers: {
      type: "text",
      value: "N",
      help: "with set-workers: slots over all worker processes",
    },
    node: { type: "text", value: "ID", help: "with cancel: the task or roadmap node" },
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
        return send(ctx, "set-workers", { workers: workersOf(workers) });
      case "cancel":
        if (node === undefined)
          throw new ErrUsage("cancel needs --node ID", "usage: mailchute control cancel --node ID");
        return send(ctx, "cancel", { node });
      default:
        return send(ctx, ctx.subcommand, {});
    }
  },
});

const plain = (name: string, usage: string, detail: string) =>
  defineCommand({
    usage,
    details: [detail],
    options: { wait: WAIT, timeout: TIMEOUT },
    run: (ctx) => send(ctx, name, {}),
  });

const setWorkers = defineCommand({
  usage: "N [--wait]",
  args: { min: 1, max: 1 },
  details: ["More slots start work at once; fewer take effect as tasks end."],
  options: { wait: WAIT, timeout: TIMEOUT },
  run: (ctx) => send(ctx, "set-workers", { workers: workersOf(ctx.positionals[0]) }),
});

const cancel = defineCommand({
  usage: "ID… [--requeue]",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "Ends tasks for good, waiting or running: their error record says kind cancelled. With --requeue a running task is stopped and waits " +
      "in the inbox again, without having used up an attempt.",
  ],
  options: {
    requeue: { type: "flag", help: "put back instead of ending" },
    wait: WAIT,
    timeout: TIMEOUT,
  },
  async run(ctx) {
    let code: number = EXIT.ok;
    for (const node of ctx.positionals) {
      const args = ctx.options.requeue ? { node } : { node, final: true };
      code = Math.max(code, await send(ctx, "cancel", args));
    }
    return code;
  },
});

export const commands = {
  control: controlCommand,
  pause: plain(
    "pause",
    "[--wait]",
    "Nothing new is claimed; what runs completes. Survives a restart of the supervisor.",
  ),
  resume: plain("resume", "[--wait]", "Goes on at once."),
  replan: plain(
    "replan",
    "[--wait]",
    "Reopens the plan and holds back all but planner nodes until it is done.",
  ),
  "set-workers": setWorkers,
  cancel,
};
