/** `enqueue --like ID`: submits a copy of a task under a new id. Options or an editor can change it. */
import { inLines, withMembers } from "../../codec/json-members.ts";
import { decodeTask } from "../../codec/task-codec.ts";
import { wallSeconds } from "../../core/clock.ts";
import { ErrTaskNotFound, MailchuteError } from "../../core/errors.ts";
import { checkExec } from "../../core/matching.ts";
import { systemClock } from "../../host/system-clock.ts";
import { newId } from "../../mailbox/files/random.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { findWaiting } from "../../mailbox/find/locate.ts";
import { findTaskText } from "../../mailbox/submit/duplicates.ts";
import { readWaiting } from "../../mailbox/submit/edit.ts";
import { submit } from "../../mailbox/submit/submit.ts";
import { ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { dropOf, insideRun } from "../shell/inside-run.ts";
import { waitForTasks } from "../wait/wait-for-tasks.ts";
import { FieldCheck } from "./field-check.ts";
import { tellEnd } from "./print-output.ts";
import { type EnqueueContext, fieldsOf, openInbox } from "./task-options.ts";

/** Fields that a copy does not get: they tell the history of the task, or when it was made. */
const OWN_FIELDS = [
  "id",
  "created_at",
  "updated_at",
  "attempts",
  "status",
  "last_error",
  "claimed_by",
  "claimed_at",
  "verdict",
  "verdict_reason",
  "not_before",
  "dedup_key",
  "dedup_window_ms",
  "callback_of",
];
const NOT_WITH = ["file", "each", "batch", "null", "payload", "dedup", "dedup-window"] as const;

export async function enqueueLike(ctx: EnqueueContext, like: string): Promise<number> {
  const other = NOT_WITH.find((name) => {
    const value = ctx.options[name];
    return value !== undefined && value !== false;
  });
  if (other !== undefined) throw new ErrUsage(`--like and --${other} exclude each other`);
  if (dropOf(ctx) !== undefined) throw insideRun("enqueue --like", "say the whole task");
  const { tree, trays, loaded } = await openInbox(ctx);
  const id = ctx.options.id ?? newId(systemClock.wallMs());
  const { cwd, ...fields } = fieldsOf(ctx);
  const members: Record<string, unknown> = Object.fromEntries(
    OWN_FIELDS.map((name) => [name, undefined]),
  );
  Object.assign(members, { id, created_at: wallSeconds(systemClock), ...fields });
  if (ctx.options.cwd !== undefined || "exec" in fields) members["cwd"] = cwd;
  const bytes = textOf(trays, like);
  const { task } = decodeTask(bytes, like);
  for (const name of ["metadata", "run_limits"] as const)
    if (task[name] !== undefined && name in fields)
      members[name] = { ...task[name], ...(fields[name] as object) };
  if ("max_attempts" in fields) members["retry_policy"] = undefined;
  if ("metadata" in fields)
    Object.assign(members, { dependencies: undefined, depends_on: undefined });
  let text = withMembers(bytes, members);
  if (ctx.options.edit) text = await editedText(ctx, id, text);
  const { task: copy } = decodeTask(Buffer.from(text, "utf8"), id);
  checkExec(copy, loaded.settings.agents, { id });
  new FieldCheck(ctx).check(copy, "task");
  if (ctx.options["dry-run"]) {
    await ctx.out.raw(text);
    return EXIT.ok;
  }
  const sinceMs = Date.now();
  const outcome = await submit(trays, { id, bytes: Buffer.from(text, "utf8") });
  if (!ctx.json) ctx.out.line(id);
  if (!ctx.options.wait) {
    if (ctx.json) ctx.out.json({ id, outcome });
    return EXIT.ok;
  }
  const [settled] = (await waitForTasks(ctx, tree, [id], { areKnown: true, sinceMs })).settled;
  if (ctx.json) ctx.out.json({ id, outcome, status: settled?.status ?? "unknown" });
  else await tellEnd(ctx, tree, settled, { id, isProgram: copy.exec !== undefined });
  return settled?.status === "completed" ? EXIT.ok : EXIT.failed;
}

/** @throws ErrTaskNotFound */
function textOf(trays: Trays, id: string): Buffer {
  const waiting = findWaiting(trays, id);
  if (waiting !== undefined) return readWaiting(trays, id);
  const text = findTaskText(trays, id);
  if (text === undefined)
    throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, {
      id,
      phase: "enqueue",
      hint: "see `mailchute ls`",
    });
  return Buffer.from(text, "utf8");
}

async function editedText(ctx: EnqueueContext, id: string, text: string): Promise<string> {
  const { editText } = await import("../shell/editor.ts");
  const edited = await editText(ctx.env, `${id}.json`, inLines(text));
  try {
    decodeTask(Buffer.from(edited.text, "utf8"), id);
    edited.done();
    return edited.text;
  } catch (error) {
    if (!(error instanceof MailchuteError)) throw error;
    const hint = `your text is kept in ${edited.path}`;
    throw new MailchuteError(error.code, error.message, { id, phase: "edit", hint, cause: error });
  }
}
