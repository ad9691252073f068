/**
 * What a supervisor does for the mail of its agents, again and again: it takes what lies in `post/`, and has the mail of each agent
 * delivered. It decides by what is there, and remembers nothing that a crash could lose.
 */
import { dirname } from "node:path";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { CODING_AGENTS } from "../../../core/settings.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { createAgent, readAgent } from "../agents/agents.ts";
import { openPost, sweepPost } from "../post/open-post.ts";
import type { PostBox } from "../post/post-box.ts";
import { findScope } from "../scope/find-scope.ts";
import { explainBadName, HUMAN } from "../scope/scope.ts";
import { MailFolder, storeOf } from "../store/mail-folder.ts";
import { Delivery } from "./delivery.ts";
import { PendingMail } from "./pending-mail.ts";

const SWEEP_MS = 60 * 60 * 1000;

/** @throws ErrMailboxDir, a system error */
export async function openWatch(env: Environment): Promise<MailWatch> {
  const { tree, settings, alerts, trays } = env;
  const store = storeOf(settings, tree.dir, process.env);
  const onError = (error: unknown): void =>
    alerts.report(`post:${systemCode(error)}`, `post/: ${messageOf(error)}`);
  const post = await openPost(tree.dir, settings, store, onError);
  const folder = new MailFolder(store, await findScope(dirname(tree.dir)));
  folder.make();
  const names = new Map<string, string>();
  for (const { name, kind } of settings.agents) {
    const own = name.toLowerCase();
    if (!CODING_AGENTS.some((coding) => coding === kind)) continue;
    if (own === HUMAN || explainBadName(own) !== undefined) continue;
    names.set(own, name);
    const known = readAgent(folder, own);
    if (known !== undefined && known.archived_at === null) continue;
    // Archived by hand: it stays so.
    if (known !== undefined) names.delete(own);
    else await createAgent(folder, { name: own, type: kind, home: tree.dir }, trays.clock.wallMs());
  }
  const pending = new PendingMail(folder, [...names.keys()], trays.clock.monotonicMs());
  const sweep = (): void => sweepPost(post.trays, settings);
  return new MailWatch(env, post.box, pending, new Delivery(env, folder, pending, names), sweep);
}

export class MailWatch {
  private readonly env: Environment;
  private readonly post: PostBox;
  private readonly pending: PendingMail;
  private readonly delivery: Delivery;
  private readonly sweep: () => void;
  private sweepAtMs = 0;

  constructor(
    env: Environment,
    post: PostBox,
    pending: PendingMail,
    delivery: Delivery,
    sweep: () => void,
  ) {
    this.env = env;
    this.post = post;
    this.pending = pending;
    this.delivery = delivery;
    this.sweep = sweep;
  }

  /** Whether an agent is about to be woken, or a file of the post is about to be taken. */
  get hasWork(): boolean {
    return this.post.hasWaiting || this.delivery.hasWork;
  }

  /** @throws a system error: the next look tries again */
  async look(isStart = false): Promise<void> {
    const { clock } = this.env.trays;
    await this.post.take(isStart);
    this.pending.look(clock.monotonicMs());
    for (const { id, project, branch, from_agent: from } of this.pending.held.splice(0))
      this.env.alerts.alert(
        "mail_held",
        `mail of ${project}:${branch}:${from} (${id}) is held for you: accept_mail_from does not name its project. Pass it on: mailchute release ${id}`,
      );
    await this.delivery.work();
    if (clock.monotonicMs() < this.sweepAtMs) return;
    this.sweepAtMs = clock.monotonicMs() + SWEEP_MS;
    this.sweep();
  }
}
