/** `continue`: submits a task that resumes the session of a finished one. Runs nothing. */
import fs from "node:fs";
import {
  giveSession,
  lastName,
  readContinued,
  takeBackSession,
} from "../../agents/stream/continued.ts";
import { sessionOfRun } from "../../agents/stream/session-file.ts";
import { checkTask } from "../../codec/task-codec.ts";
import { wallSeconds } from "../../core/clock.ts";
import { ErrInvalidTransition } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { systemClock } from "../../host/system-clock.ts";
import { newId } from "../../mailbox/files/random.ts";
import { submit } from "../../mailbox/submit/submit.ts";
import { safe } from "../../text/render.ts";
import { findRun, findTask, noSuchTask } from "../../view/find-task.ts";
import { readJsonObject } from "../../view/scan.ts";
import { type Session, sessionOfTask } from "../../view/session-of-task.ts";
import { wantsWorktree, worktreeIdOf } from "../../worker/task-defaults.ts";
import { defineCommand, textOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, openMailbox } from "../shell/options.ts";
import { waitForTasks } from "../wait/wait-for-tasks.ts";

export const command = defineCommand({
  usage: "ID TEXT",
  args: { min: 2, max: Number.POSITIVE_INFINITY },
  details: [
    "Puts a new task into the inbox and prints its id. A coding agent then goes on in the session of the task ID, which has ended well or badly: with TEXT as its prompt, in the same folder or worktree, as the same agent. It knows all that was said before.",
    "Exit code 3: there is no such task, 4: it waits or runs, it has left no session, or another task has the session.",
  ],
  examples: ['continue build "now update the changelog, too"'],
  options: {
    id: textOption("ID", "the new task's id; left out = a fresh one"),
    wait: { type: "flag", help: "wait until it has settled; exit 1 when it failed" },
  },
  async run(ctx) {
    existingTree(ctx);
    const { tree, trays, loaded } = await openMailbox(ctx);
    const [id = "", ...words] = ctx.positionals;
    const found = await sessionOf(tree, id);
    const worktree = await worktreeOf(tree, id, loaded.settings);
    refuseChanged(found, loaded.settings, id, worktree !== undefined);
    const newOne = ctx.options.id ?? newId(systemClock.wallMs());
    const isDurable = loaded.settings.durability === "power";
    const { name, session } = await take(tree, id, found, newOne, isDurable);
    const task = {
      id: newOne,
      created_at: wallSeconds(systemClock),
      agent: session.agent,
      // Only this one has the session.
      agents: [session.agent],
      prompt: words.join(" "),
      ...(worktree ?? { cwd: session.cwd }),
      continues: id,
      session: name,
    };
    const sinceMs = Date.now();
    try {
      checkTask(task, newOne);
      await submit(trays, { id: newOne, bytes: Buffer.from(`${JSON.stringify(task)}\n`, "utf8") });
    } catch (error) {
      takeBackSession(tree.dir, name);
      throw error;
    }
    if (!ctx.json) ctx.out.line(newOne);
    const answer = { id: newOne, continues: id, session: session.session_id };
    if (!ctx.options.wait) {
      if (ctx.json) ctx.out.json(answer);
      return EXIT.ok;
    }
    const waited = await waitForTasks(ctx, tree, [newOne], { areKnown: true, sinceMs });
    const [settled] = waited.settled;
    if (ctx.json) ctx.out.json({ ...answer, status: settled?.status ?? "unknown" });
    else if (settled?.status === "failed")
      ctx.out.note(`${newOne} failed: ${safe(settled.error ?? "")}`);
    return settled?.status === "completed" ? EXIT.ok : EXIT.failed;
  },
});

/** The session that the newest run of a settled task has left. @throws ErrTaskNotFound, ErrInvalidTransition */
async function sessionOf(tree: StateTree, id: string): Promise<Session> {
  const place = await findTask(tree, id);
  if (place === undefined) throw noSuchTask(id, "continue");
  if (place.state !== "done" && place.state !== "failed")
    throw new ErrInvalidTransition(`${JSON.stringify(id)} has not ended: it is ${place.state}`, {
      id,
      phase: "continue",
      hint: `tell it now: mailchute say ${id} TEXT`,
    });
  const session = sessionOfTask(tree, place);
  if (session === undefined)
    throw new ErrInvalidTransition(`${JSON.stringify(id)} has left no session to continue`, {
      id,
      phase: "continue",
      hint: "only coding agents have sessions, and they are kept as long as the task's runs",
    });
  return session;
}

type InWorktree = Pick<Task, "worktree" | "cwd" | "metadata" | "setup" | "cache">;

/**
 * The fields that give the new task the worktree of the ended task, where its session was. A worktree that is gone is made again.
 * @returns undefined when the ended task had no worktree
 */
async function worktreeOf(
  tree: StateTree,
  id: string,
  { agents }: Settings,
): Promise<InWorktree | undefined> {
  const place = await findTask(tree, id);
  const record = place === undefined ? undefined : readJsonObject(place.path);
  const task = record?.["task"] as Task | undefined;
  if (task === undefined) return undefined;
  const agent = agents.find((one) => one.name === record?.["agent_id"]);
  if (agent === undefined || !wantsWorktree(task, agent)) return undefined;
  const path = task.metadata?.worktree;
  return {
    worktree: "auto",
    metadata: {
      worktree_of: worktreeIdOf({ ...task, id }),
      ...(path === undefined ? {} : { worktree: path }),
    },
    ...(task.cwd === undefined ? {} : { cwd: task.cwd }),
    ...(task.setup === undefined ? {} : { setup: task.setup }),
    ...(task.cache === undefined ? {} : { cache: task.cache }),
  };
}

/** @throws ErrInvalidTransition when the session cannot be resumed as it was */
function refuseChanged(
  session: Session,
  { agents }: Settings,
  id: string,
  hasWorktree: boolean,
): void {
  const agent = agents.find((one) => one.name === session.agent);
  const why =
    agent === undefined
      ? `its agent ${session.agent} is not in the settings any more`
      : agent.kind !== session.kind
        ? `its agent ${session.agent} is of kind ${agent.kind} now, and was ${session.kind}`
        : hasWorktree || fs.existsSync(session.cwd)
          ? undefined
          : `its folder ${session.cwd} is gone`;
  if (why !== undefined) throw new ErrInvalidTransition(why, { id, phase: "continue" });
}

/** Gives the session to the new task. @throws ErrInvalidTransition when another task has it */
async function take(
  tree: StateTree,
  id: string,
  found: Session,
  newOne: string,
  isDurable: boolean,
): Promise<{ name: string; session: Session }> {
  for (;;) {
    const last = lastName(tree.dir, found.session_id);
    const holder = last === undefined ? undefined : readContinued(tree.dir, last)?.task_id;
    if (holder !== undefined) await refuseHeld(tree, holder, id);
    // The last task that had the session knows how much of its cost is booked.
    const session = (await latestOf(tree, holder, found.session_id)) ?? found;
    const given = { ...session, task_id: newOne, continues: id, was_refused: false };
    const name = giveSession(tree.dir, given, last, isDurable);
    if (name === undefined) continue;
    try {
      // A retry may have put one of the tasks back into the inbox by then. After this point, its run would be refused.
      await sessionOf(tree, id);
      if (holder !== undefined) await refuseHeld(tree, holder, id);
      return { name, session };
    } catch (error) {
      takeBackSession(tree.dir, name);
      throw error;
    }
  }
}

async function refuseHeld(tree: StateTree, holder: string, id: string): Promise<void> {
  const place = await findTask(tree, holder);
  // Undefined: the task was never submitted, or its record was removed after its retention.
  if (place === undefined || place.state === "done" || place.state === "failed") return;
  throw new ErrInvalidTransition(
    `the session of ${JSON.stringify(id)} has gone on in ${JSON.stringify(holder)}, which is ${place.state}`,
    { id, phase: "continue", hint: `tell that one: mailchute say ${holder} TEXT` },
  );
}

async function latestOf(
  tree: StateTree,
  holder: string | undefined,
  sessionId: string,
): Promise<Session | undefined> {
  if (holder === undefined) return undefined;
  const place = await findTask(tree, holder);
  const record = place === undefined ? undefined : readJsonObject(place.path);
  const run = findRun(tree, holder, place, record);
  const session = run === undefined ? undefined : sessionOfRun(run);
  return session?.session_id === sessionId ? (session as Session) : undefined;
}
