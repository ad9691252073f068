/** `attach`: a person goes on in the session of a task's coding agent, on the program's own screen. While that lasts the task does not run. */
import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { type Attached, attachedIn, judgePerson, leaseOfPerson } from "../../agents/attached.ts";
import { type ByHand, byHandIn } from "../../agents/by-hand.ts";
import { matchChosen } from "../../agents/chosen-agent.ts";
import { type SessionDocument, sessionAt } from "../../agents/stream/session-file.ts";
import { compact } from "../../core/compact.ts";
import { ErrInvalidTransition, ErrIo, messageOf } from "../../core/errors.ts";
import { isNodeTask } from "../../core/roadmap.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { ownerPrefix, thisProcess } from "../../host/identity.ts";
import { LEASE_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { retry } from "../../mailbox/retry/retry.ts";
import { safe } from "../../text/render.ts";
import { findTask, noSuchTask, type TaskPlace } from "../../view/find-task.ts";
import { readJsonObject } from "../../view/scan.ts";
import { sessionOfTask } from "../../view/session-of-task.ts";
import { type Context, defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { dropOf, insideRun } from "../shell/inside-run.ts";
import { openMailbox } from "../shell/options.ts";

const LOOK_MS = 50;
/** After this long the command says what it waits for (ms). */
const TELL_MS = 1000;

type Answer = "done" | "go on" | "keep";
const WHAT_FOLLOWS: Readonly<Record<Answer, string>> = {
  done: "done: its checks judge the work now, as that of a run",
  "go on": "the agent goes on in this session",
  keep: "kept: it waits for you",
};

export const command = defineCommand({
  usage: "ID",
  args: { min: 1, max: 1 },
  details: [
    "Opens the screen of the agent's own program (`claude --resume`, `codex resume`) in the session of the task ID, in its folder, with its account and environment. A run that is on ends first, and a failed task is put back. While you are there the task does not run, and no attempt is used up.",
    "When you leave the program it asks what follows. done: checks, review and landing judge the work as that of a run. go on: the agent goes on in the session. keep: the task waits for you. Without a terminal or an answer it keeps the task; if this command is killed, the task goes on once its program has ended.",
    "--done, --go-on and --keep answer beforehand. A task that you keep is given back with --done or --go-on, and no screen opens.",
    "Exit code 3: there is no such task; 4: it has no session, it has ended well, or another attach is in it.",
  ],
  examples: ["attach build", "attach build --done"],
  options: {
    done: { type: "flag", help: "the work is done: have it judged" },
    "go-on": { type: "flag", help: "the agent goes on" },
    keep: { type: "flag", help: "the task waits for you" },
  },
  async run(ctx) {
    if (dropOf(ctx) !== undefined) throw insideRun("attach", "only a person takes a task over");
    const answer = answerIn(ctx.options);
    const { tree, trays, loaded } = await openMailbox(ctx);
    const [id = ""] = ctx.positionals;
    const desk = new Desk(tree, id);
    if (answer !== undefined && answer !== "keep" && desk.isKept) {
      await desk.leave(answer);
      return tell(ctx, id, answer);
    }
    const screen = await takeOver(ctx, desk, trays, loaded.settings);
    try {
      await show(screen, ctx.env, tree.dir, desk.owner);
    } catch (error) {
      await desk.giveUp();
      throw error;
    }
    const chosen = answer ?? (await ask());
    await desk.leave(chosen);
    return tell(ctx, id, chosen);
  },
});

function answerIn(
  options: Readonly<Record<"done" | "go-on" | "keep", boolean>>,
): Answer | undefined {
  const given = (["done", "go-on", "keep"] as const).filter((name) => options[name]);
  if (given.length > 1) throw new ErrUsage("only one of --done, --go-on and --keep can follow");
  return given[0] === "go-on" ? "go on" : given[0];
}

function tell(ctx: Pick<Context, "json" | "out">, id: string, answer: Answer): number {
  if (ctx.json) ctx.out.json({ id, answer });
  else ctx.out.line(`${safe(id)}: ${WHAT_FOLLOWS[answer]}`);
  return EXIT.ok;
}

/** The document that says that this process has the task. */
class Desk {
  readonly owner = ownerPrefix(thisProcess());
  private readonly documents;

  constructor(
    readonly tree: StateTree,
    readonly id: string,
  ) {
    this.documents = attachedIn(tree.dir);
  }

  get isKept(): boolean {
    return this.documents.read(this.id)?.state === "kept";
  }

  /** @param session of an ended task that is put back @throws ErrInvalidTransition when another attach has it */
  async enter(session: SessionDocument | undefined): Promise<void> {
    const { id, owner, tree } = this;
    await this.documents.update(id, (before): Attached => {
      if (before?.state === "here" && judgePerson(before, tree.dir) !== "dead")
        throw refusal(id, "another attach is in its session");
      const here = { v: 1, id, state: "here", owner, since_ms: Date.now() } as const;
      return { ...here, ...compact({ session: session ?? before?.session }) };
    });
  }

  async leave(answer: Answer): Promise<void> {
    const state = ({ done: "done", keep: "kept", "go on": "back" } as const)[answer];
    await this.documents.update(this.id, (before) => {
      // Without one the task was given back already.
      if (before === undefined) return before;
      // Its session is where the next run looks.
      if (state === "back" && before.session === undefined) return undefined;
      return { ...before, state, since_ms: Date.now() };
    });
  }

  /** Nothing has begun. */
  async giveUp(): Promise<void> {
    await this.documents.update(this.id, (before) =>
      before?.state === "here" && before.owner === this.owner ? undefined : before,
    );
  }

  /** The session of a failed task that was put back for this person. */
  get kept(): SessionDocument | undefined {
    return this.documents.read(this.id)?.session;
  }
}

function refusal(id: string, why: string, hint?: string): ErrInvalidTransition {
  const more = hint === undefined ? {} : { hint };
  return new ErrInvalidTransition(`${JSON.stringify(id)}: ${why}`, {
    id,
    phase: "attach",
    ...more,
  });
}

/** Takes the task, and waits until no run of it is left. @returns what to open @throws ErrTaskNotFound, ErrInvalidTransition */
async function takeOver(
  ctx: Context,
  desk: Desk,
  trays: Trays,
  settings: Settings,
): Promise<ByHand> {
  const { id, tree } = desk;
  const place = await findTask(tree, id);
  if (place === undefined) throw noSuchTask(id, "attach");
  if (place.state === "done")
    throw refusal(id, "it has ended well", `go on in its session: mailchute continue ${id} TEXT`);
  const document = readJsonObject(place.path);
  const task = (place.state === "failed" ? document?.["task"] : document) as Task | undefined;
  if (isNodeTask(task, id))
    throw refusal(id, "it is a node of the plan, and each of its phases has a session of its own");
  const failed = place.state === "failed" ? await sessionToOpen(tree, place, settings) : undefined;
  const isOpen = failed !== undefined || desk.kept !== undefined;
  if (!isOpen && !(await hasBegun(tree, place, task, settings))) throw withoutSession(id);
  await desk.enter(failed?.session);
  try {
    if (failed !== undefined) await retry(trays, id);
    await untilNoRun(ctx, tree, id);
    const now = await findTask(tree, id);
    if (now === undefined || now.state === "done" || now.state === "failed")
      throw refusal(id, `it has ended by itself: ${now?.state ?? "its record is gone"}`);
    return (failed ?? (await sessionToOpen(tree, now, settings, desk.kept))).screen;
  } catch (error) {
    await desk.giveUp();
    throw error;
  }
}

/** Whether the task is with an agent whose program has a screen. */
async function hasBegun(
  tree: StateTree,
  { id, state }: TaskPlace,
  task: Task | undefined,
  { agents }: Settings,
): Promise<boolean> {
  if (state === "waiting") return false;
  const { agent } = matchChosen(tree.sessions, { ...task, id }, agents);
  const { loadKind } = await import("../../app/agent-kinds.ts");
  return agent !== undefined && (await loadKind(agent.kind))?.byHand !== undefined;
}

function withoutSession(id: string): ErrInvalidTransition {
  const hint = `only an agent that has begun has one; tell it something: mailchute say ${id} TEXT`;
  return refusal(id, "it has no session that a person can go on in", hint);
}

/** @param kept where the task has none of its own yet @throws ErrInvalidTransition when there is none to open */
async function sessionToOpen(
  tree: StateTree,
  place: TaskPlace,
  settings: Settings,
  kept?: SessionDocument,
): Promise<{ session: SessionDocument; screen: ByHand }> {
  const { id, name, state } = place;
  const own =
    state === "failed"
      ? sessionOfTask(tree, place)
      : name && sessionAt(tree.sessions, `${id}@${name.submission}`);
  const session = own ?? kept;
  if (session === undefined) throw withoutSession(id);
  const { loadKind } = await import("../../app/agent-kinds.ts");
  const screen = byHandIn(session, await loadKind(session.kind), settings);
  if (screen !== undefined) return { session, screen };
  const why =
    session.session_id === null
      ? "its session has not begun"
      : `its session cannot be opened: the folder ${session.cwd} or the agent ${session.agent} is gone, or its program has no screen of its own`;
  throw refusal(id, why);
}

async function untilNoRun(ctx: Context, tree: StateTree, id: string): Promise<void> {
  const fromMs = performance.now();
  for (let isTold = false; ; ) {
    const state = (await findTask(tree, id))?.state;
    if (state !== "ready" && state !== "running" && state !== "settling") return;
    if (!isTold && performance.now() - fromMs > TELL_MS) {
      isTold = true;
      ctx.out.note(`waiting until its run has ended (it is ${state})`);
    }
    await pause(LOOK_MS);
  }
}

/** Resolves when the person has left the program. @throws ErrIo when it does not start */
async function show(
  { program, args, cwd, env: more }: ByHand,
  env: NodeJS.ProcessEnv,
  stateDir: string,
  owner: string,
): Promise<void> {
  const own = { [LEASE_VARIABLE]: leaseOfPerson(owner), [STATE_VARIABLE]: stateDir };
  // Ctrl-C is for the program on the screen.
  const ignore = (): void => {};
  for (const signal of ["SIGINT", "SIGQUIT"] as const) process.on(signal, ignore);
  try {
    const child = spawn(program, args, { cwd, stdio: "inherit", env: { ...env, ...more, ...own } });
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", () => resolve());
    });
  } catch (error) {
    throw new ErrIo(`cannot open ${program}: ${messageOf(error)}`, {
      phase: "attach",
      hint: "the task goes on",
      cause: error,
    });
  } finally {
    for (const signal of ["SIGINT", "SIGQUIT"] as const) process.off(signal, ignore);
  }
}

/** Without a terminal or an answer the task is kept. */
async function ask(): Promise<Answer> {
  if (!process.stdin.isTTY) return "keep";
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new Promise<undefined>((resolve) =>
      lines.once("close", () => resolve(undefined)),
    );
    for (;;) {
      const asked = lines.question("What follows: done (d), go on (g), or keep (k)? ");
      const text = await Promise.race([asked, ended]);
      if (text === undefined) return "keep";
      const [letter = ""] = text.trim().toLowerCase();
      if (letter === "d") return "done";
      if (letter === "g") return "go on";
      if (letter === "k") return "keep";
    }
  } finally {
    lines.close();
  }
}
