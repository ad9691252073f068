/** `edit` and `urgent`: change tasks that wait. The supervisor makes the change; without a supervisor, this command does. */
import { inLines, withMembers } from "../../codec/json-members.ts";
import { decodeTask } from "../../codec/task-codec.ts";
import { ErrInvalidTransition, MailchuteError, messageOf } from "../../core/errors.ts";
import { PRIORITY_MAX } from "../../core/priority.ts";
import { isNodeTask } from "../../core/roadmap.ts";
import { fieldJudge } from "../../core/task-fields.ts";
import { editingSequence } from "../../host/identity.ts";
import { systemClock } from "../../host/system-clock.ts";
import {
  awaitAcknowledgement,
  findSupervisor,
  sendCommand,
} from "../../mailbox/commands/send-command.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { applyEdit, digestOf, readWaiting, stageEdit } from "../../mailbox/submit/edit.ts";
import { safe } from "../../text/render.ts";
import {
  type Context,
  defineCommand,
  type OptionTable,
  priorityOf,
  priorityOption,
  textOption,
} from "../shell/command-spec.ts";
import { EXIT, exitCodeOf } from "../shell/exit-codes.ts";
import { existingTree, openMailbox } from "../shell/options.ts";
import { readUntil } from "../shell/until.ts";

const ACK_TIMEOUT_MS = 30_000;
const GONE =
  "Exit code 4: the task has started, has settled, or was changed in between, and nothing was changed.";

const edit = defineCommand({
  usage: "ID [--priority N] [--delay TIME] [--after ID]",
  args: { min: 1, max: 1 },
  details: [
    "Changes a task that waits in the inbox: without options in your editor (VISUAL, EDITOR), which gets a copy of its file. The task can start while you edit. Its id and created_at stay.",
    `A text that is no valid task is refused, and kept. ${GONE}`,
  ],
  examples: [
    "edit nightly",
    "edit nightly --priority 5 --delay 2h",
    "edit deploy --after build --after lint",
  ],
  options: {
    priority: priorityOption("higher first"),
    delay: textOption("TIME", "not before this time has passed, or comes: 5m, 07:00; 0: at once"),
    after: {
      type: "text",
      value: "ID",
      many: true,
      help: "run only when these have completed, in place of those that it had",
    },
  },
  async run(ctx) {
    const { priority, delay, after } = ctx.options;
    const [id = ""] = ctx.positionals;
    existingTree(ctx);
    const { trays } = await openMailbox(ctx);
    const bytes = readWaiting(trays, id);
    if (priority === undefined && delay === undefined && after.length === 0)
      return editByHand(ctx, trays, id, bytes);
    const members: Record<string, unknown> = {};
    if (priority !== undefined) members["priority"] = priorityOf(priority);
    if (delay !== undefined) {
      const nowMs = systemClock.wallMs();
      const atMs = readUntil(delay, nowMs, "--delay");
      members["not_before"] = atMs === nowMs ? undefined : Math.ceil(atMs / 1000);
    }
    if (after.length > 0) {
      const { metadata } = decodeTask(bytes, id).task;
      const inPlaceOf = { dependencies: undefined, depends_on: undefined };
      Object.assign(members, inPlaceOf, { metadata: { ...metadata, dependencies: after } });
    }
    return tell(ctx, id, await change(ctx, trays, id, bytes, withMembers(bytes, members)));
  },
});

const urgent = defineCommand({
  usage: "ID…",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    `Gives waiting tasks the highest priority, so that they are the next to start. What they wait for, such as other tasks or a full group, still holds. ${GONE}`,
  ],
  options: {},
  async run(ctx) {
    existingTree(ctx);
    const { trays } = await openMailbox(ctx);
    let exitCode: number = EXIT.ok;
    for (const id of new Set(ctx.positionals)) {
      try {
        const bytes = readWaiting(trays, id);
        const text = withMembers(bytes, { priority: PRIORITY_MAX });
        tell(ctx, id, await change(ctx, trays, id, bytes, text));
      } catch (error) {
        const code = exitCodeOf(error);
        if (code === EXIT.bug || code === EXIT.io || ctx.positionals.length === 1) throw error;
        ctx.out.note(`${safe(id)}: ${safe(messageOf(error))}`);
        exitCode = Math.max(exitCode, code);
      }
    }
    return exitCode;
  },
});

type EditContext = Context<OptionTable>;

async function editByHand(
  ctx: EditContext,
  trays: Trays,
  id: string,
  bytes: Buffer,
): Promise<number> {
  const { editText } = await import("../shell/editor.ts");
  const before = inLines(bytes.toString("utf8"));
  const edited = await editText(ctx.env, `${id}.json`, before);
  try {
    const isChanged = edited.text !== before && (await change(ctx, trays, id, bytes, edited.text));
    edited.done();
    return tell(ctx, id, isChanged);
  } catch (error) {
    if (!(error instanceof MailchuteError)) throw error;
    const hint = [error.hint, `your text is kept in ${edited.path}`].filter(Boolean).join("; ");
    throw new MailchuteError(error.code, error.message, { id, phase: "edit", hint, cause: error });
  }
}

/** @returns whether the text has changed */
async function change(
  ctx: EditContext,
  trays: Trays,
  id: string,
  before: Buffer,
  text: string,
): Promise<boolean> {
  const bytes = Buffer.from(text, "utf8");
  const { task } = decodeTask(bytes, id);
  const was = digestOf(before);
  const { task: old } = decodeTask(before, id);
  const known = new Set(
    fieldJudge()
      .judge(old, "task")
      .map(({ why }) => why),
  );
  for (const { why } of fieldJudge().judge(task, "task"))
    if (!known.has(why)) ctx.out.note(`warning: ${safe(why)}`);
  if (isNodeTask(old, id))
    throw new ErrInvalidTransition(`${id} is a node of the plan`, {
      id,
      phase: "edit",
      hint: "change it in the plan",
    });
  if (findSupervisor(ctx.stateDir) === undefined) {
    const staged = await stageEdit(trays, { id, bytes, was });
    return applyEdit(trays, staged, editingSequence()());
  }
  const sent = await sendCommand(ctx.stateDir, "edit", { node: id, text, was });
  const result = await awaitAcknowledgement(ctx.stateDir, sent.id, ACK_TIMEOUT_MS);
  if (result === undefined)
    throw new MailchuteError("ErrSupervisorGone", "the supervisor did not answer in time", { id });
  return result["changed"] === true;
}

function tell(ctx: EditContext, id: string, isChanged: boolean): number {
  if (ctx.json) ctx.out.json({ id, changed: isChanged });
  else if (isChanged) ctx.out.line(safe(id));
  else ctx.out.note(`${safe(id)}: nothing was changed`);
  return EXIT.ok;
}

export const commands = { edit, urgent };
