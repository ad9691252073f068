/**
 * Looks after the mail of a supervisor's agents in repeated looks: takes the files of `post/`, and delivers the mail of each agent.
 * It decides by what is on disk, and remembers nothing that a crash could lose.
 */
import type { Apart } from "../../../core/apart.ts";
import { messageOf, systemCode } from "../../../core/errors.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { ordersApart } from "../../../supervisor/environment/orders-apart.ts";
import { submitFirstTask } from "../agents/spawn.ts";
import { WokenAgents } from "../agents/woken-agents.ts";
import { Exits } from "../exits/exits.ts";
import type { RunNote } from "../exits/run-notes.ts";
import type { MailDropFolder } from "../post/mail-drop-folder.ts";
import { openPost, sweepPost } from "../post/open-post.ts";
import { sendAnswers } from "../requests/asked.ts";
import { openOwn } from "../roots/open-own.ts";
import { indexFull } from "../store/write-indexes.ts";
import { archiveIdle } from "./archive-idle.ts";
import { Delivery } from "./delivery.ts";
import { PendingMail } from "./pending-mail.ts";

const SWEEP_MS = 60 * 60 * 1000;
/** Time between two looks for full files without an index (ms). */
const INDEX_MS = 5000;
/** Time between two looks for agents to archive (ms); shorter if the settings archive idle agents sooner. */
const ARCHIVE_MS = 60 * 1000;

/**
 * @param notes the tasks that this process has noted: see `Exits`
 * @throws ErrMailboxDir, a system error
 */
export async function openWatch(env: Environment, notes: Map<string, RunNote>): Promise<MailWatch> {
  const { tree, settings, alerts, trays } = env;
  const own = await openOwn(settings, tree.dir, process.env);
  const { folder, store } = own;
  const onError = (error: unknown): void =>
    alerts.report(`post:${systemCode(error)}`, `post/: ${messageOf(error)}`);
  const post = openPost(tree.dir, settings, own, onError);
  folder.make();
  const agents = new WokenAgents(folder, tree.dir, settings.agents);
  await agents.open(trays.clock.wallMs());
  const pending = new PendingMail(folder);
  const sweep = (): void => sweepPost(post.trays, settings);
  const exits = new Exits(env, store, folder, notes);
  const asked = ordersApart(env, "the answer to");
  const answers = (): void => sendAnswers(tree.dir, store, trays.clock.wallMs(), asked);
  const delivery = new Delivery(env, folder, pending, agents);
  const look = async (): Promise<void> => {
    for (const agent of agents.look())
      try {
        await submitFirstTask({ folder, trays }, agent, trays.clock.wallMs());
      } catch (error) {
        // The next look tries again. Other agents still get their mail.
        agents.forget();
        const what = `mail: the first task of ${agent.name} waits: ${messageOf(error)}`;
        alerts.report(`spawn:${agent.name}`, what);
      }
    await pending.look([...agents.names.keys()], trays.clock.monotonicMs());
  };
  const archive = (): Promise<void> => archiveIdle(env, folder);
  const index = (): Promise<void> => indexFull(folder);
  const parts = { post: post.box, exits, answers, pending, delivery, look, index, sweep, archive };
  return new MailWatch(env, parts);
}

interface WatchParts {
  post: MailDropFolder;
  exits: Exits;
  /** Sends the answers of people to the agents that asked. */
  answers: () => void;
  pending: PendingMail;
  /** Looks for new agents and new messages. */
  look: () => Promise<void>;
  delivery: Delivery;
  /** Makes an index of each full file of messages. */
  index: () => Promise<void>;
  /** Removes old records of the post. */
  sweep: () => void;
  /** Archives spawned agents that have been idle for long. */
  archive: () => Promise<void>;
}

export class MailWatch {
  private readonly deps: WatchParts;
  /** A step that fails holds up no other one. */
  private readonly steps: Apart;
  /** The steps that have succeeded once. */
  private readonly begun = new Set<string>();
  private sweepAtMs = 0;
  private indexAtMs = 0;
  private archiveAtMs = 0;

  constructor(
    private readonly env: Environment,
    parts: WatchParts,
  ) {
    this.deps = parts;
    this.steps = ordersApart(env, "mail:");
  }

  /** True while an agent is about to be woken, an exit must still be reported, or a file waits in `post/`. */
  get hasWork(): boolean {
    return this.deps.post.hasWaiting || this.deps.exits.hasWork || this.deps.delivery.hasWork;
  }

  /** @throws a system error: the next look tries again */
  async look(isStart = false): Promise<void> {
    const { settings, trays } = this.env;
    const { clock } = trays;
    const steps = [
      ["post", (isFirst: boolean) => this.deps.post.take(isFirst)],
      ["exits", (isFirst: boolean) => this.deps.exits.look(isFirst)],
      ["answers", () => this.deps.answers()],
      ["messages", () => this.deps.look()],
      ["held mail", () => this.tellHeld()],
      ["delivery", () => this.deps.delivery.work()],
    ] as const;
    await this.steps.each(
      steps,
      ([name]) => name,
      async ([name, step]) => {
        await step(isStart || !this.begun.has(name));
        this.begun.add(name);
      },
    );
    if (clock.monotonicMs() >= this.indexAtMs) {
      this.indexAtMs = clock.monotonicMs() + INDEX_MS;
      await this.deps.index();
    }
    if (clock.monotonicMs() >= this.archiveAtMs) {
      this.archiveAtMs = clock.monotonicMs() + Math.min(ARCHIVE_MS, settings.spawn.archive_ms);
      await this.deps.archive();
    }
    if (clock.monotonicMs() < this.sweepAtMs) return;
    this.sweepAtMs = clock.monotonicMs() + SWEEP_MS;
    this.deps.sweep();
  }

  private tellHeld(): void {
    for (const { id, project, branch, from_agent: from } of this.deps.pending.held.splice(0))
      this.env.alerts.alert(
        "mail_held",
        `mail of ${project}:${branch}:${from} (${id}) is held for you: accept_mail_from does not name its project. Pass it on: mailchute release ${id}`,
      );
  }

  /** Reports the last exits. @throws a system error: the next supervisor tries again */
  async finish(): Promise<void> {
    await this.deps.exits.look();
  }
}
