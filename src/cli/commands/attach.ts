/** `attach`: a person goes on in the session of a task's coding agent, on the program's own screen. While that lasts the task does not run. */
import { setTimeout as pause } from "node:timers/promises";
import { type Attached, attachedIn, judgePerson, leaseOfPerson } from "../../agents/attached.ts";
import { type ByHand, byHandIn, screenOf } from "../../agents/by-hand.ts";
import { matchChosen } from "../../agents/chosen-agent.ts";
import { lastName, readContinued } from "../../agents/stream/continued.ts";
import { type SessionDocument, sessionAt } from "../../agents/stream/session-file.ts";
import { compact } from "../../core/compact.ts";
import { ErrInvalidTransition, ErrIo, messageOf } from "../../core/errors.ts";
import { ATTACHED_GATE } from "../../core/gates.ts";
import { isNodeTask } from "../../core/roadmap.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { identityOf, ownerPrefix, thisProcess } from "../../host/identity.ts";
import { LEASE_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import { spawn } from "../../host/spawn.ts";
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
    const desk = new Desk(tree, id, answer !== undefined);
    if (answer !== undefined && (await desk.giveBack(answer))) return tell(ctx, id, answer);
    const screen = await takeOver(ctx, desk, trays, loaded.settings);
    let exitCode: number | null;
    try {
      exitCode = await show(screen, ctx.env, desk);
    } catch (error) {
      await desk.giveUp();
      throw error;
    }
    // A screen that could not open the session must not end the task.
    const isAnswered = answer !== undefined && (exitCode === 0 || answer === "keep");
    if (answer !== undefined && !isAnswered)
      ctx.out.note(`${screen.program} ended with ${exitCode ?? "a signal"}`);
    const chosen = isAnswered ? answer : await ask();
    const place = await findTask(tree, id);
    const isOver = place === undefined || place.state === "done" || place.state === "failed";
    if (isOver) await desk.giveUp();
    if (isOver || !(await desk.leave(chosen))) throw endedByItself(id, place?.state);
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

const STATES = { done: "done", keep: "kept", "go on": "back" } as const;

/** The document that says that this process has the task. */
class Desk {
  readonly owner = ownerPrefix(thisProcess());
  private readonly documents;
  /** What it says when nothing comes of this. */
  private before: Attached | undefined;

  /** @param isSure a person has said what follows, so a process that cannot be judged from here does not count */
  constructor(
    readonly tree: StateTree,
    readonly id: string,
    private readonly isSure: boolean,
  ) {
    this.documents = attachedIn(tree.dir);
  }

  /** The session of a failed task that was put back for this person. */
  get session(): SessionDocument | undefined {
    return this.documents.read(this.id)?.session;
  }

  /** @throws ErrInvalidTransition when another attach is in the session */
  async enter(submission: string | undefined): Promise<void> {
    const { documents, id, owner } = this;
    await documents.update(id, (now): Attached => {
      if (now?.state === "here" && !this.isLeft(now))
        throw refusal(id, "another attach is in its session");
      this.before = now?.state === "here" ? this.after(now, "go on") : now;
      // What is left of an earlier task of this id is not its session.
      const isOfEarlier =
        submission !== undefined && (now?.submission ?? submission) !== submission;
      const session = isOfEarlier ? undefined : now?.session;
      const here = { v: 1, id, state: "here", owner, since_ms: Date.now() } as const;
      return { ...here, ...compact({ submission: submission ?? now?.submission, session }) };
    });
  }

  /** From here on the task that was put back waits for its person, whatever comes. */
  async putBack(session: SessionDocument, retryIt: () => Promise<unknown>): Promise<void> {
    await this.change((now) => {
      const { submission: _ofEarlier, ...here } = now;
      return { ...here, session };
    });
    await retryIt();
    this.before = this.after(
      { v: 1, id: this.id, state: "kept", owner: this.owner, since_ms: Date.now(), session },
      "keep",
    );
  }

  /** The person's program runs: the task waits for it, also when this process is killed. */
  async noteScreen(pid: number): Promise<void> {
    await this.change((now) => ({ ...now, screen: ownerPrefix(identityOf(pid)) }));
  }

  /** @returns false when the document was not ours any more */
  async leave(answer: Answer): Promise<boolean> {
    return await this.change((now) => this.after(now, answer));
  }

  /** As if the person had not come. */
  async giveUp(): Promise<void> {
    await this.change(() => this.before);
  }

  /** @returns false when the task is not kept: a screen opens first */
  async giveBack(answer: Answer): Promise<boolean> {
    let isKept = false;
    await this.documents.update(this.id, (now) => {
      isKept =
        now?.state === "kept" ? answer !== "keep" : now?.state === "here" && this.isLeft(now);
      return now !== undefined && isKept ? this.after(now, answer) : now;
    });
    return isKept;
  }

  private isLeft(now: Attached): boolean {
    const verdict = judgePerson(now, this.tree.dir);
    return verdict === "dead" || (verdict === "unknown" && this.isSure);
  }

  /** @returns what the document says then; undefined: it is not needed any more */
  private after(now: Attached, answer: Answer): Attached | undefined {
    // Without a session of its own the next run looks where it always looks.
    if (answer === "go on" && now.session === undefined) return undefined;
    const { screen: _screen, ...rest } = now;
    return { ...rest, state: STATES[answer], since_ms: Date.now() };
  }

  /** Changes the document while it is ours. @returns whether it was */
  private async change(to: (now: Attached) => Attached | undefined): Promise<boolean> {
    let isOurs = false;
    await this.documents.update(this.id, (now) => {
      isOurs = now?.state === "here" && now.owner === this.owner;
      return now !== undefined && isOurs ? to(now) : now;
    });
    return isOurs;
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

function endedByItself(id: string, state: TaskPlace["state"] | undefined): ErrInvalidTransition {
  return refusal(id, `it has ended by itself: ${state ?? "its record is gone"}`);
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
  const isOpen = failed !== undefined || desk.session !== undefined;
  if (!isOpen && !(await hasBegun(tree, place, task, settings))) throw withoutSession(id);
  await desk.enter(place.name?.submission);
  try {
    if (failed !== undefined) {
      refuseTaken(tree, id, failed.session);
      await desk.putBack(failed.session, () => retry(trays, id));
    }
    await untilNoRun(ctx, tree, id);
    const now = await findTask(tree, id);
    if (now === undefined || now.state === "done" || now.state === "failed")
      throw endedByItself(id, now?.state);
    if (now.state === "held" && now.name?.token.startsWith(ATTACHED_GATE) === false)
      ctx.out.note(`it waits for something else, too: mailchute why ${id}`);
    return (failed ?? (await sessionToOpen(tree, now, settings, desk.session))).screen;
  } catch (error) {
    await desk.giveUp();
    throw error;
  }
}

/** @throws ErrInvalidTransition when another task goes on in the session */
function refuseTaken(tree: StateTree, id: string, { session_id: session }: SessionDocument): void {
  const last = session === null ? undefined : lastName(tree.dir, session);
  const other = last === undefined ? undefined : readContinued(tree.dir, last)?.task_id;
  if (other !== undefined && other !== id)
    throw refusal(id, `its session has gone on in the task ${other}`, `mailchute attach ${other}`);
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
  return agent !== undefined && screenOf(agent, await loadKind(agent.kind), "") !== undefined;
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
      : `its session cannot be opened: the folder ${session.cwd} or the agent ${session.agent} is gone, or mailchute does not know its screen (agents[].screen)`;
  throw refusal(id, why);
}

async function untilNoRun(ctx: Context, tree: StateTree, id: string): Promise<void> {
  const fromMs = performance.now();
  for (let isTold = false; ; ) {
    const state = (await findTask(tree, id))?.state;
    // A worker that claims it from now on sees that a person has it.
    if (state !== "running" && state !== "settling") return;
    if (!isTold && performance.now() - fromMs > TELL_MS) {
      isTold = true;
      ctx.out.note(`waiting until its run has ended (it is ${state})`);
    }
    await pause(LOOK_MS);
  }
}

/** @returns the exit code of the program, when the person has left it; null after a signal @throws ErrIo when it does not start */
async function show(
  { program, args, cwd, env: more }: ByHand,
  env: NodeJS.ProcessEnv,
  desk: Desk,
): Promise<number | null> {
  const own = { [LEASE_VARIABLE]: leaseOfPerson(desk.owner), [STATE_VARIABLE]: desk.tree.dir };
  // Ctrl-C is for the program on the screen.
  const ignore = (): void => {};
  for (const signal of ["SIGINT", "SIGQUIT"] as const) process.on(signal, ignore);
  try {
    const child = spawn(program, args, { cwd, stdio: "inherit", env: { ...env, ...more, ...own } });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", resolve);
    });
    ended.catch(() => {});
    if (child.pid !== undefined) await desk.noteScreen(child.pid);
    return await ended;
  } catch (error) {
    throw new ErrIo(`cannot open ${program}: ${messageOf(error)}`, {
      phase: "attach",
      hint: "name in `screen` of its agent what to open; `mailchute why ID` says where the task is",
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
