/** `chat`: a prompt that controls the supervisor with the same commands as the command line. */
import { type Context, defineCommand, ErrUsage } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { openSettings, treeOf } from "../../cli/shell/options.ts";
import { findSupervisor } from "../../mailbox/commands/send-command.ts";
import { paint, safe } from "../../text/render.ts";
import { batchesWithFailures } from "../../view/batches.ts";
import { idsIn, processingPlaces } from "../../view/find-task.ts";
import { Lines } from "./lines.ts";
import { answerError, perform, say } from "./perform.ts";
import { findChatAgent, propose } from "./propose.ts";
import { type Action, parseSlash, SLASH_COMMANDS, suggestSlash } from "./slash-commands.ts";

/** How many ids of each tray completion offers. */
const COMPLETIONS_MAX = 100;

const OPTIONS = {
  "no-llm": { type: "flag", help: "understand commands only; never run an agent" },
  agent: {
    type: "text",
    value: "NAME",
    help: "the agent that free text goes to (default: the default one of kind exec)",
  },
  yes: { type: "flag", short: "y", help: "run what the agent proposes without asking" },
  plain: { type: "flag", help: "no line editing, no history, no completion" },
} as const;

type ChatContext = Context<typeof OPTIONS>;

export const command = defineCommand({
  usage: "",
  details: [
    `Commands: ${Object.values(SLASH_COMMANDS)
      .map(({ usage }) => usage)
      .join(", ")}. Reads lines from a pipe as well; exit code 0 at /exit and at the end of input.`,
    "Tab completes, Tab Tab lists what fits, Up brings back earlier lines of this session. These lines are written to no file.",
    "Other text goes to a configured agent of kind exec, which can only propose these commands. The proposed commands are checked and shown, and run " +
      "when you confirm them; from a pipe they run only with --yes.",
  ],
  examples: ["chat", "chat --no-llm", "chat --yes < orders.txt"],
  options: OPTIONS,
  async run(ctx) {
    const isPerson = process.stdin.isTTY === true && ctx.isTerminal && !ctx.json;
    let busy: AbortController | undefined;
    const lines = new Lines({
      isEditing: isPerson && !ctx.options.plain,
      prompt: isPerson ? "mailchute> " : "",
      complete: (line) => complete(ctx, line),
      onInterrupt: () => {
        if (busy !== undefined) busy.abort("stop");
        else ctx.out.line("\n/exit or Ctrl-D leaves");
      },
    });
    if (isPerson) greet(ctx);
    try {
      for (;;) {
        const line = (await lines.next())?.trim();
        if (line === undefined) {
          if (isPerson) ctx.out.line();
          return EXIT.ok;
        }
        if (line === "") continue;
        busy = new AbortController();
        const isOver = line.startsWith("/")
          ? await obey(ctx, () => parseSlash(line))
          : await listen(ctx, line, busy.signal, isPerson ? lines : undefined);
        busy = undefined;
        if (isOver) return EXIT.ok;
      }
    } finally {
      lines.close();
    }
  },
});

function greet(ctx: Context): void {
  const supervisor = findSupervisor(ctx.stateDir);
  const who =
    supervisor === undefined
      ? "no supervisor runs: commands wait for the next one"
      : `supervisor pid ${supervisor.pid}`;
  ctx.out.line(`${safe(ctx.stateDir)}: ${who}`);
  ctx.out.line(
    paint(ctx.colour, "dim", "/help lists the commands, Tab completes, Up repeats, /exit leaves"),
  );
}

/** @returns true when the conversation is over */
async function obey(ctx: Context, parse: () => Action): Promise<boolean> {
  try {
    const action = parse();
    if (action.kind === "exit") return true;
    await perform(ctx, action);
  } catch (error) {
    answerError(ctx, error);
  }
  return false;
}

/** Handles free text. @param lines asks the person for a confirmation; undefined when input comes from a pipe */
async function listen(
  ctx: ChatContext,
  text: string,
  signal: AbortSignal,
  lines: Lines | undefined,
): Promise<boolean> {
  const agent = await chooseAgent(ctx, text);
  if (agent === undefined) return false;
  const { settings } = await openSettings(ctx);
  if (lines !== undefined) ctx.out.line(paint(ctx.colour, "dim", `asking ${safe(agent.name)}…`));
  const proposal = await propose(ctx, agent, settings, text, signal);
  if (typeof proposal === "string") {
    answerError(ctx, new ErrUsage(`the agent ${agent.name} gave no answer: ${proposal}`));
    return false;
  }
  const shown = proposal.commands.map(({ line }) => line);
  if (ctx.json) ctx.out.json({ agent: agent.name, ...proposal, commands: shown });
  else {
    for (const remark of proposal.remarks) say(ctx, `${safe(agent.name)}: ${safe(remark)}`);
    for (const { line, reason } of proposal.refused)
      say(ctx, `left out: ${safe(line)} (${safe(reason)})`);
    for (const line of shown) ctx.out.line(`proposed: ${safe(line)}`);
    if (shown.length === 0) ctx.out.line(`${safe(agent.name)} proposes no command`);
  }
  if (shown.length === 0 || !(await isAgreed(ctx, shown.length, lines))) return false;
  for (const { line, action } of proposal.commands) {
    if (!ctx.json) ctx.out.line(paint(ctx.colour, "cyan", safe(line)));
    if (await obey(ctx, () => action)) return true;
  }
  return false;
}

/** The agent for free text. If there is none, explains what to do instead. */
async function chooseAgent(
  ctx: ChatContext,
  text: string,
): Promise<ReturnType<typeof findChatAgent>> {
  const near = suggestSlash(text);
  const isMeant = near === undefined ? "/help lists the commands" : `did you mean ${near}?`;
  if (ctx.options["no-llm"]) {
    answerError(ctx, new ErrUsage("with --no-llm only commands are understood", isMeant));
    return undefined;
  }
  try {
    const { settings } = await openSettings(ctx);
    const agent = findChatAgent(settings.agents, ctx.options.agent);
    if (agent !== undefined) return agent;
    const what =
      ctx.options.agent === undefined
        ? "free text needs a configured agent of kind exec, and config.yaml has none"
        : `no agent of kind exec is called ${JSON.stringify(ctx.options.agent)}`;
    answerError(ctx, new ErrUsage(what, isMeant));
  } catch (error) {
    answerError(ctx, error);
  }
  return undefined;
}

async function isAgreed(
  ctx: ChatContext,
  count: number,
  lines: Lines | undefined,
): Promise<boolean> {
  if (ctx.options.yes) return true;
  if (lines === undefined) {
    if (!ctx.json) ctx.out.line("not run: from a pipe proposals are run only with --yes");
    return false;
  }
  const answer = await lines.next(count === 1 ? "run it? [y/N] " : `run these ${count}? [y/N] `);
  const isYes = /^\s*y(?:es)?\s*$/i.test(answer ?? "");
  if (!isYes) ctx.out.line("not run");
  return isYes;
}

/** Completes a command that begins with a slash, then the word after it. */
function complete(ctx: Context, line: string): [words: string[], word: string] {
  const words = line.split(/\s+/);
  const [head = "", second = ""] = words;
  const last = words.at(-1) ?? "";
  const those = (all: readonly string[]): [string[], string] => [
    all.filter((one) => one.startsWith(last)),
    last,
  ];
  // Adds a blank after a command that takes more words, as shells do.
  if (words.length <= 1)
    return those(
      Object.entries(SLASH_COMMANDS).map(
        ([name, { usage }]) => `/${name}${usage.includes(" ") ? " " : ""}`,
      ),
    );
  const command = SLASH_COMMANDS[head.slice(1)];
  if (words.length > 2 || command === undefined) return [[], second];
  if (command.words !== undefined) return those(command.words);
  return command.ids === undefined ? [[], second] : those(idsFor(ctx, command.ids));
}

function idsFor(ctx: Context, wanted: "live" | "failed" | "any"): string[] {
  const tree = treeOf(ctx);
  const trays = { live: ["inbox"], failed: ["failed"], any: ["failed", "outbox"] } as const;
  const others = wanted === "failed" ? batchesWithFailures(tree) : processingPlaces(tree);
  const ids = [
    ...others.map(({ id }) => id),
    ...trays[wanted].flatMap((tray) => idsIn(tree, tray, COMPLETIONS_MAX)),
  ];
  return [...new Set(ids)].sort();
}
