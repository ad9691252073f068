/**
 * Delivers the mail of agents. An agent that runs a task gets its mail through the messages of that task. Any other agent is woken by a
 * task. The offer is written before it is made. The cursor moves only when the stream of the run proves that the model has read the
 * mail. So mail is delivered at least once, each time with the same ids, and never counts as read without proof.
 */
import { dirname } from "node:path";
import { TaskMessages } from "../../../agents/stream/task-messages.ts";
import type { Apart } from "../../../core/apart.ts";
import { submitOnce } from "../../../mailbox/submit/submit-once.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { ordersApart } from "../../../supervisor/environment/orders-apart.ts";
import { readAgent } from "../agents/agents.ts";
import type { WokenAgents } from "../agents/woken-agents.ts";
import { formatAddress } from "../scope/scope.ts";
import { textOf } from "../store/blobs.ts";
import { moveCursor, noteFailure, readCursor } from "../store/cursors.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import type { Numbered } from "../store/read-messages.ts";
import { IDS_MAX, noteWake, readWakes, type WakeRecord } from "../store/wake-log.ts";
import { AgentTasks } from "./agent-tasks.ts";
import { type Bundle, makeBundle } from "./bundle.ts";
import { dropOffer, type MailOffer, readOffer, senderOfOffer, writeOffer } from "./offers.ts";
import type { PendingMail, Waiting } from "./pending-mail.ts";
import {
  canWakeBy,
  dueAtWork,
  isOwnMail,
  judgeChain,
  judgeWake,
  selfTimes,
  wakeIdOf,
  wakePrefixOf,
} from "./wake-rules.ts";
import { wakeTask } from "./wake-task.ts";

export class Delivery {
  /** True while an agent is about to be woken, or reads its mail. */
  hasWork = false;
  private readonly tasks: AgentTasks;
  private readonly orders: Apart;
  private readonly told = new Set<string>();
  /** Wake-ups that this process has submitted, or found submitted. */
  private readonly submitted = new Set<string>();
  private readonly offers = new Map<string, MailOffer | undefined>();

  constructor(
    private readonly env: Environment,
    private readonly folder: MailFolder,
    private readonly pending: PendingMail,
    private readonly agents: WokenAgents,
  ) {
    this.orders = ordersApart(env, "the mail of");
    this.tasks = new AgentTasks(env, folder);
  }

  /** Never rejects: the mail of an agent that cannot be delivered is tried again. */
  async work(): Promise<void> {
    let hasWork = false;
    this.tasks.lookAgain();
    await this.orders.each(
      this.agents.names.keys(),
      (name) => name,
      async (name) => {
        if (await this.deliver(name)) hasWork = true;
      },
    );
    this.hasWork = hasWork;
  }

  /** @returns true if the agent is about to be woken, or reads its mail now */
  private async deliver(name: string): Promise<boolean> {
    const offer = this.offerOf(name);
    if (offer !== undefined) {
      await this.followUp(name, offer);
      await this.offerUrgent(name);
      // After this offer has ended, there may be more mail.
      return this.offerOf(name) === undefined || this.tasks.isActive(offer.task);
    }
    if (!this.pending.has(name)) return false;
    const { monotonicMs, wallMs } = this.now();
    const cursor = readCursor(this.folder, name);
    const waiting = await this.pending.of(name, cursor.upto, monotonicMs);
    if (waiting === undefined) return false;
    const running = this.tasks.runOf(name) ?? this.firstTaskOf(name);
    const due = running === undefined ? waiting.messages : dueAtWork(waiting.messages);
    const newest = due.at(-1);
    // All of the mail is for the time after the run.
    if (newest === undefined) return running !== undefined && this.tasks.isActive(running);
    const bundle = this.bundleOf(due);
    const chain = {
      bundle,
      selfAtMs: this.selfTimes(name, bundle),
      sentAtMs: newest.created_at * 1000,
      wallMs,
    };
    if (running !== undefined) {
      const { verdict, why } = judgeChain(chain);
      if (verdict === "held") this.tellHeld(name, cursor.n, why);
      if (verdict !== "now") return false;
      await this.offer(name, bundle, { task: running, isWake: false, n: cursor.n });
      return true;
    }
    const { verdict, why } = judgeWake({
      ...chain,
      cursor,
      canWake: this.canWake(name, waiting),
      sinceMs: waiting.sinceMs,
      lastMs: waiting.lastMs,
      nowMs: monotonicMs,
      cursorAtMs: cursor.at * 1000,
    });
    if (verdict === "held") this.tellHeld(name, cursor.n, why);
    if (verdict !== "now") return verdict === "soon";
    const agent = readAgent(this.folder, name);
    if (agent === undefined || agent.archived_at !== null) return false;
    const address = { ...this.folder.scope, name };
    const last = this.tasks.findUnclaimed(wakePrefixOf(address, agent.inc));
    // The last wake-up was read and will run again: its next run gets this mail, too.
    if (last !== undefined) return this.tasks.isActive(last);
    const task = wakeIdOf(address, agent.inc, cursor);
    await this.offer(name, bundle, { task, isWake: true, n: cursor.n });
    return true;
  }

  /** Offers urgent mail at once, even if the run has not read the previous offer. */
  private async offerUrgent(name: string): Promise<void> {
    const offer = this.offerOf(name);
    if (offer === undefined || offer.say === null) return;
    const messages = this.pending.behind(name, offer.upto);
    if (!messages.some(isUrgent) || this.tasks.runOf(name) !== offer.task) return;
    const bundle = this.bundleOf(messages);
    const { earlier = [], isWake, n, say, task } = offer;
    await this.offer(name, bundle, { task, isWake, n, earlier: [...earlier, say] });
  }

  private bundleOf(messages: readonly Numbered[]): Bundle {
    const { folder } = this;
    const text = (one: Numbered): string => textOf(folder, one) ?? "(its text is missing)";
    return makeBundle(folder.scope, messages, text);
  }

  private canWake(name: string, waiting: Waiting): boolean {
    const { orchestrator, scope } = this.folder;
    return canWakeBy(waiting, formatAddress({ ...scope, name }) === orchestrator);
  }

  /** Writes the offer, then makes it. A crash in between leaves an offer that `followUp` makes. */
  private async offer(
    name: string,
    bundle: Bundle,
    to: Pick<MailOffer, "task" | "isWake" | "n" | "earlier">,
  ): Promise<void> {
    const { text, upto, hops } = bundle;
    // Written first: this record gives the hops of everything that the run says after the offer.
    noteWake(this.folder, name, this.recordOf(name, bundle, to.task, to.isWake));
    const urgent = { isUrgent: bundle.messages.some(isUrgent) };
    const offer: MailOffer = { v: 1, ...to, upto, text, hops, ...urgent, say: null };
    this.write(name, offer);
    await this.followUp(name, offer);
  }

  private recordOf(name: string, bundle: Bundle, task: string, isWake: boolean): WakeRecord {
    const from = bundle.messages.map(({ project, branch, from_agent: sender }) =>
      formatAddress({ project, branch, name: sender }),
    );
    return {
      v: 1,
      at: Math.floor(this.now().wallMs / 1000),
      task,
      is_wake: isWake,
      hops: bundle.hops,
      is_self: isOwnMail(this.folder.scope, name, bundle),
      ids: bundle.messages.slice(0, IDS_MAX).map(({ id }) => id),
      from: [...new Set(from)].slice(0, IDS_MAX),
    };
  }

  private selfTimes(name: string, bundle: Bundle): number[] {
    const isOwn = isOwnMail(this.folder.scope, name, bundle);
    return isOwn ? selfTimes(readWakes(this.folder, name)) : [];
  }

  /** Continues an offer: makes it, looks for the proof that it was read, or ends it when its task has ended without proof. */
  private async followUp(name: string, offer: MailOffer): Promise<void> {
    const { env, folder } = this;
    const atMs = env.trays.clock.wallMs();
    const cursor = readCursor(folder, name);
    // The mail was read in another way. If the wake-up has not begun yet, it is kept: its run also gets mail that comes now.
    if (offer.upto <= cursor.upto)
      return offer.isWake && this.tasks.isStillToRun(offer.task) ? undefined : this.drop(name);
    const box = new TaskMessages(env.tree.dir, offer.task, folder.isDurable);
    const from = senderOfOffer(offer);
    const say = offer.say ?? box.find(from) ?? box.post(offer.text, from, offer.isUrgent);
    if (offer.say === null) this.write(name, { ...offer, say });
    // Repeated each time, because the process that wrote the offer may have died before it submitted the task.
    if (offer.isWake) await this.submitWake(name, offer);
    // The task is checked before the proofs: its last run wrote its proofs before it ended.
    const isLive = this.tasks.isLive(offer.task);
    const isRead = [...(offer.earlier ?? []), say].every((one) => box.stateOf(one) === "read");
    if (isRead) moveCursor(folder, name, offer.upto, { by: "run", atMs });
    else if (isLive) return;
    // If the cursor has a newer record, a process that died here has counted the failure already.
    else if (offer.isWake && cursor.n === offer.n) noteFailure(folder, name, cursor, atMs);
    this.drop(name);
  }

  /** Cached, because no other process writes offers of this tree's agents. */
  private offerOf(name: string): MailOffer | undefined {
    if (!this.offers.has(name)) this.offers.set(name, readOffer(this.folder, name));
    return this.offers.get(name);
  }

  private write(name: string, offer: MailOffer): void {
    writeOffer(this.folder, name, offer);
    this.offers.set(name, offer);
  }

  private drop(name: string): void {
    dropOffer(this.folder, name);
    this.offers.set(name, undefined);
  }

  private async submitWake(name: string, { task: id, hops }: MailOffer): Promise<void> {
    if (this.submitted.has(id)) return;
    const { trays, tree } = this.env;
    const agent = this.agents.names.get(name) ?? name;
    const task = wakeTask(
      { id, agent, name, scope: this.folder.reference, hops },
      dirname(tree.dir),
    );
    const bytes = Buffer.from(`${JSON.stringify(task)}\n`);
    if ((await submitOnce(trays, { id, bytes })) === "submitted")
      this.env.facts.emit("inbox:written", `${id}.json`);
    this.submitted.add(id);
  }

  /** The first task of a spawned agent, while it is live. The agent reads its mail in that task, so no second run starts. */
  private firstTaskOf(name: string): string | undefined {
    const { firstTasks } = this.agents;
    const task = firstTasks.get(name);
    if (task === undefined || this.tasks.isLive(task)) return task;
    firstTasks.delete(name);
    return undefined;
  }

  /** Reports held mail once for each cursor record. */
  private tellHeld(name: string, n: number, why: string): void {
    const key = `${name}.${n}`;
    if (this.told.has(key)) return;
    this.told.add(key);
    const address = formatAddress({ ...this.folder.scope, name });
    this.env.alerts.alert(
      "mail_held",
      `mail for ${address} is held: ${why}. Read it: mailchute mail ${name}; --ack lets the next mail through`,
    );
  }

  private now(): { monotonicMs: number; wallMs: number } {
    const { clock } = this.env.trays;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}

function isUrgent({ when }: Numbered): boolean {
  return when === "now";
}
