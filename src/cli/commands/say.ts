/**
 * `say`: leaves a message for the coding agent of a task, and reports the state of the message. With --to, the message is mail for
 * agents by their names. A part delivers mail.
 */

import { setTimeout as pause } from "node:timers/promises";
import { matchChosen } from "../../agents/chosen-agent.ts";
import {
  MESSAGE_BYTES_MAX,
  MESSAGE_STATES,
  type MessageState,
  TaskMessages,
} from "../../agents/stream/task-messages.ts";
import { MESSAGE_SENDERS } from "../../app/senders.ts";
import { ErrInvalidTransition } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { findTask, noSuchTask, type TaskPlace } from "../../view/find-task.ts";
import { readJsonObject } from "../../view/scan.ts";
import { sessionOfTask } from "../../view/session-of-task.ts";
import { defineCommand, durationOption, ErrUsage, textOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { dropOf, insideRun } from "../shell/inside-run.ts";
import type { SayContext } from "../shell/message-sender.ts";
import { existingTree, openSettings } from "../shell/options.ts";

const LOOK_MS = 50;

export const command = defineCommand({
  usage: "ID TEXT | TEXT --to NAME",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "Leaves a message for an agent, whether it runs or not: for the agent of the task ID; or by name, with --to or where the one TEXT mentions @NAME. A message by name is mail (`messages` shows it).",
    "Each message is recorded (on disk, and never lost), then offered (given to the program), then read (its model provably has it, or a person used `mail --ack`). The command prints how far it is; --wait STATE waits until then.",
    "A running claude, codex with `mode: app-server`, or program of kind acp gets it at its next step or after its turn; all others with their next run. No agent ends its work well before it has read all messages of its task: it runs once more if it has to.",
    "Exit code 1: the task ended before that; 3: there is no such task; 4: it has ended, or its agent is no coding agent; 124: the time was over.",
  ],
  examples: [
    'say build "the tests are in tests/unit" --wait read',
    'say "the schema is merged" --to ann --to backend:main:impl-1',
    'say "@ann, please look at the schema"',
  ],
  options: {
    to: {
      type: "text",
      value: "NAME",
      many: true,
      help: "an agent as NAME, BRANCH:NAME or PROJECT:BRANCH:NAME, or human",
    },
    scope: textOption("PROJECT:BRANCH", "where the names are (default: as for `messages`)"),
    from: textOption("NAME", "who says it (default: human, in a run its agent)"),
    id: textOption("ID", "with the same id it is recorded once"),
    thread: textOption("ID", "the message that began the conversation"),
    "reply-to": textOption("ID", "the message that this answers"),
    "needs-human": { type: "flag", help: "a person has to see it" },
    when: {
      type: "text",
      value: "TIME",
      choices: ["now", "next", "idle"],
      help: "an agent that runs gets it now (its turn ends), at its next step (default), or by name also when idle, after its run",
    },
    wait: {
      type: "text",
      value: "STATE",
      choices: [...MESSAGE_STATES, "seen"],
      help: "until it is recorded (default), offered or read",
    },
    timeout: durationOption("TIME", "wait no longer than this: 30, 500ms, 5m"),
  },
  async run(ctx) {
    if (ctx.options.to.length > 0 || ctx.positionals.length === 1) return await sendMail(ctx);
    if (dropOf(ctx) !== undefined)
      throw insideRun("say ID", "write to the agent by its name: --to NAME");
    if (ctx.options.when === "idle")
      throw new ErrUsage(
        "--when idle is for mail: a task is over when its agent is idle",
        "write to the agent by its name: --to NAME",
      );
    refuseNamesOptions(ctx.options);
    const tree = existingTree(ctx);
    const { settings } = await openSettings(ctx);
    const [id = "", ...words] = ctx.positionals;
    const text = words.join(" ");
    if (text.trim() === "") throw new ErrUsage("there is no text");
    if (Buffer.byteLength(text) > MESSAGE_BYTES_MAX)
      throw new ErrUsage(`a message has at most ${MESSAGE_BYTES_MAX} bytes`, "name a file in it");
    const place = await openTask(tree, id);
    const isLive = await takesMessages(tree, place, settings);
    const box = new TaskMessages(tree.dir, id, settings.durability === "power");
    const n = box.post(text, "cli", ctx.options.when === "now");
    const wanted = stateOf(ctx.options.wait);
    const deadlineMs = performance.now() + (ctx.options.timeout ?? Number.POSITIVE_INFINITY);
    const { state, isOver } = await waitFor(tree, id, box, n, wanted, deadlineMs);
    const next = outlook(tree, isLive, state, await findTask(tree, id));
    if (ctx.json) ctx.out.json({ id, message: n, state, next });
    else {
      ctx.out.line(`message ${n} to ${id}: ${state}`);
      if (next !== "") ctx.out.note(next);
    }
    if (hasReached(state, wanted)) return EXIT.ok;
    return isOver ? EXIT.failed : EXIT.waitTimedOut;
  },
});

/** Options of messages by name. */
const BY_NAME = ["scope", "from", "id", "thread", "reply-to", "needs-human"] as const;

/** @throws ErrUsage: they would have no effect */
function refuseNamesOptions(options: SayContext["options"]): void {
  const given = BY_NAME.find((name) => (options[name] ?? false) !== false);
  if (given !== undefined)
    throw new ErrUsage(
      `--${given} is for a message by name, and this one goes to a task`,
      "write to the agent by its name: --to NAME",
    );
}

function stateOf(wanted: string | undefined): MessageState {
  return wanted === "seen"
    ? "read"
    : (MESSAGE_STATES.find((state) => state === wanted) ?? "recorded");
}

/** @throws ErrUsage */
async function sendMail(ctx: SayContext): Promise<number> {
  for (const send of MESSAGE_SENDERS) return await send(ctx);
  throw new ErrUsage("there is no text for the task");
}

const hasReached = (state: MessageState, wanted: MessageState): boolean =>
  MESSAGE_STATES.indexOf(state) >= MESSAGE_STATES.indexOf(wanted);

/** @throws ErrTaskNotFound, ErrInvalidTransition */
async function openTask(tree: StateTree, id: string): Promise<TaskPlace> {
  const place = await findTask(tree, id);
  if (place === undefined) throw noSuchTask(id, "say");
  if (hasEnded(place))
    throw new ErrInvalidTransition(`${JSON.stringify(id)} has ended, and its agent reads no more`, {
      id,
      phase: "say",
      hint: adviceFor(tree, place),
    });
  return place;
}

function hasEnded(place: TaskPlace | undefined): boolean {
  return place === undefined || place.state === "done" || place.state === "failed";
}

/** What to do for an ended task. `continue` refuses one without a session, such as a program's. */
function adviceFor(tree: StateTree, place: TaskPlace): string {
  return sessionOfTask(tree, place) === undefined
    ? "it has left no session to go on in; make a new task: mailchute enqueue"
    : `go on in its session: mailchute continue ${place.id} TEXT`;
}

/** Whether the agent that has the task takes messages while it runs. @throws ErrInvalidTransition when it is no coding agent */
async function takesMessages(
  { sessions }: StateTree,
  { id, path }: TaskPlace,
  settings: Settings,
): Promise<boolean> {
  const task = readJsonObject(path) as Task | undefined;
  const { agent } = matchChosen(sessions, { ...task, id }, settings.agents);
  const { loadKind } = await import("../../app/agent-kinds.ts");
  const kind = agent === undefined ? undefined : await loadKind(agent.kind);
  if (agent !== undefined && kind !== undefined) return kind.takesMessages(agent);
  throw new ErrInvalidTransition(
    `${JSON.stringify(id)} is not a task of a coding agent: only coding agents read messages`,
    { id, phase: "say" },
  );
}

/** @returns the last state of the message; `isOver`: the task has ended, so the state will not change any more */
async function waitFor(
  tree: StateTree,
  id: string,
  box: TaskMessages,
  n: number,
  wanted: MessageState,
  deadlineMs: number,
): Promise<{ state: MessageState; isOver: boolean }> {
  for (;;) {
    // Look up the task first: its last run wrote its proofs before it ended.
    const isOver = hasReached("recorded", wanted) ? false : hasEnded(await findTask(tree, id));
    const state = box.stateOf(n);
    if (hasReached(state, wanted) || isOver || performance.now() > deadlineMs)
      return { state, isOver };
    await pause(LOOK_MS);
  }
}

/** What happens to the message next. */
function outlook(
  tree: StateTree,
  isLive: boolean,
  state: MessageState,
  place: TaskPlace | undefined,
): string {
  if (state === "read") return "";
  if (place === undefined) return "the task has ended without it";
  if (hasEnded(place)) return `the task has ended without it; ${adviceFor(tree, place)}`;
  return place?.state === "running" && isLive
    ? "the agent runs, and reads it at its next step, or in one more run when its work is done"
    : "it is kept for the agent's next run of this task";
}
