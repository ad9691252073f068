import { stoppedOutcome } from "../../agents/agent.ts";
import { compact } from "../../core/compact.ts";
import { MailchuteError, messageOf } from "../../core/errors.ts";
import { landingGateOf } from "../../core/landing.ts";
import { type AttemptOutcome, type Deferred, deferred, failed } from "../../core/outcome.ts";
import {
  type CleanCheckout,
  makeCleanCheckout,
  removeCleanCheckout,
} from "../../git/clean-checkout.ts";
import { changesOf } from "../../git/kept-settings.ts";
import { listRefs, makeRef } from "../../git/refs.ts";
import {
  atCommonDir,
  commitOf,
  isAncestor,
  openRepository,
  type Repository,
} from "../../git/repository.ts";
import { endCalls, isDiskFull } from "../../git/run-git.ts";
import { LEASE_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import { type LandingOrder, loadOrder, stateOf, writeLanding } from "../../worker/landing-files.ts";
import type { AssignedAgent, AttemptTools } from "../../worker/runner.ts";
import { askReviewer } from "./ask-reviewer.ts";
import {
  findRed,
  isWaiting,
  type Layer,
  matesOf,
  noteRed,
  type StackPlace,
  stackUp,
  takeRed,
} from "./batch.ts";
import { bringTogether, changedFiles, hasSameFiles } from "./bring-together.ts";
import { checkLanding, freshPrograms } from "./check-landing.ts";
import { handOver } from "./hand-over.ts";
import { type Checked, noteChecked, readChecked } from "./landed-ref.ts";
import { forPerson, success } from "./landing-outcomes.ts";
import { landingPathOf } from "./landing-paths.ts";
import { explainLeftovers, explainLinks } from "./leftovers.ts";
import { explainInTheWay, moveTarget, placeOfTarget } from "./move-target.ts";
import { writeProof } from "./proof.ts";
import { lookAtChange } from "./protect-check.ts";
import { startOf } from "./review-packet.ts";
import {
  canMend,
  fixesOf,
  mayMend,
  othersOf,
  sendBack,
  submitFix,
  type Unfit,
} from "./send-back.ts";
import {
  conflictText,
  heldText,
  isRunOf,
  noRoomText,
  protectedText,
  redText,
  refusedText,
} from "./why-not.ts";

/** How long a landing waits for a person or an agent before it looks again (ms). */
const WAIT_MS = 10_000;
/** How often one run begins again because others have moved the target. */
const ROUNDS_MAX = 10;

export class Landing {
  constructor(
    private readonly tools: AttemptTools,
    private readonly assigned: AssignedAgent,
  ) {}

  /** Never rejects. */
  async run(): Promise<AttemptOutcome> {
    const { task, stateDir, lease, stop } = this.assigned.assignment;
    let order: LandingOrder | undefined;
    try {
      order = loadOrder(stateDir, String(task["landing_of"]));
      if (order === undefined)
        return forPerson("nothing is known of the work of that task: landings/ has no order of it");
      const env = { [LEASE_VARIABLE]: lease, [STATE_VARIABLE]: stateDir };
      const repository = await openRepository(order.repository, env);
      const changed = await listRefs(repository, order.changed_ref);
      if (changed.length > 0) {
        const { task_id, repository: at } = order;
        const isOfTask = (id: string): boolean => isRunOf(task_id, id);
        return forPerson(heldText(order, changesOf(at, isOfTask)));
      }
      try {
        const outcome = (await this.afterFix(order)) ?? (await this.land(order, repository));
        this.noteEnd(order, outcome);
        return outcome;
      } finally {
        // This also removes the worktree of a killed run.
        await removeCleanCheckout(repository, landingPathOf(order));
      }
    } catch (error) {
      // A stop ends git, too.
      if (stop.reason !== undefined) return stoppedOutcome(stop.reason, 0);
      const { hint } = error instanceof MailchuteError ? error : {};
      const text = `${messageOf(error)}${hint === undefined ? "" : `; ${hint}`}`;
      return isDiskFull(error)
        ? deferred(noRoomText(order, text))
        : failed("landing", "ErrLanding", text);
    }
  }

  /** Notes before the landing settles whether it has landed, because tasks wait for that and its record may be removed. */
  private noteEnd(order: LandingOrder, outcome: AttemptOutcome): void {
    const { dir } = this.tools.tree;
    const state = stateOf(dir, order);
    const landed = outcome.kind === "completed";
    const { commit } = landed ? (outcome.output as { commit: string }) : {};
    if ((state.landed === true) !== landed)
      writeLanding(dir, order.task_id, "state", { ...state, landed, ...compact({ commit }) });
  }

  /** Waits for the agent that mends the work. Undefined when no agent mends it, or when it is mended. */
  private async afterFix(order: LandingOrder): Promise<AttemptOutcome | undefined> {
    const { fix } = stateOf(this.tools.tree.dir, order);
    if (fix === null) return undefined;
    switch (await submitFix(this.tools.tree, this.tools.trays, order, fix)) {
      case "open":
        return this.wait(order, `${fix.id} mends the work`, fix.id);
      case "failed":
        return forPerson(`${fix.id} could not mend it (mailchute show ${fix.id}). ${fix.text}`);
      default:
        return undefined;
    }
  }

  private async land(order: LandingOrder, repository: Repository): Promise<AttemptOutcome> {
    const { task_id, branch, target, land } = order;
    const call = atCommonDir(repository);
    const fault = await explainLeftovers(repository, order);
    if (fault !== undefined) return this.refuse(order, fault);
    const tip = await commitOf(call, `refs/heads/${branch}`);
    const at = await commitOf(call, `refs/heads/${target}`);
    const earlier = await readChecked(repository, order);
    if (earlier !== undefined && at !== undefined && (tip === undefined || earlier.tip === tip))
      if (await isAncestor(call, earlier.commit, at))
        return this.landed(order, repository, earlier);
    if (tip === undefined) {
      const todo =
        earlier === undefined
          ? `If a run has removed it, its work is saved: mailchute rescue ${task_id}`
          : `What landed before is kept: mailchute land ${task_id} --again`;
      return forPerson(`the branch ${branch} of ${task_id} is gone. ${todo}`);
    }
    if (tip === order.base) return success(order, "nothing", tip, "nothing to land");
    if (at !== undefined && (await isAncestor(call, tip, at)) && land !== "exec")
      return this.landed(order, repository, { commit: tip, tip });
    const broken = await explainLinks(repository, order, tip, at);
    if (broken !== undefined) return this.refuse(order, broken);
    if (land === "exec") {
      const { changed } = await lookAtChange(repository, order, order.base, tip);
      return (
        (await this.review(order, repository, tip, at)) ??
        this.holdProtected(order, tip, changed) ??
        (await handOver(this.assigned, order, tip))
      );
    }
    if (at === undefined)
      await makeRef(repository, { name: `refs/heads/${target}`, commit: order.base });
    return this.bringIn(order, repository, tip);
  }

  private async bringIn(
    order: LandingOrder,
    repository: Repository,
    tip: string,
  ): Promise<AttemptOutcome> {
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      const outcome = await this.bringInOnce(order, repository, tip);
      if (outcome !== undefined) return outcome;
    }
    return this.wait(order, `${order.target} moved ${ROUNDS_MAX} times while the work was checked`);
  }

  /** @returns undefined when it must begin again, because the target has moved */
  private async bringInOnce(
    order: LandingOrder,
    repository: Repository,
    tip: string,
  ): Promise<AttemptOutcome | undefined> {
    const { task_id: id, target, base } = order;
    const { tree, trays } = this.tools;
    this.endGitAtStop();
    const from = (await commitOf(atCommonDir(repository), `refs/heads/${target}`)) ?? base;
    // Asked before the check of the work, because that may take long.
    const place = await placeOfTarget(repository, order);
    if (place.kind === "busy") return this.wait(order, place.why);
    const path = landingPathOf(order);
    const worktree = await makeCleanCheckout(repository, path, tip);
    const together = await bringTogether(repository, worktree, { id, base, tip, target: from });
    if (together.kind === "conflict" && (await hasSameFiles(repository, base, tip, from)))
      return this.landed(order, repository, { commit: from, tip });
    if (together.kind === "conflict")
      return this.refuse(order, conflictText(order, together.files), together.text, {
        cause: "work",
        target: from,
        files: together.files,
      });
    const { commit } = together;
    const others = othersOf(tree, order);
    const mendedBy = fixesOf(tree, trays, others);
    const other = mendedBy(await changedFiles(repository, from, commit));
    if (other !== undefined)
      return this.wait(order, `${other} mends other work on the same files`, other);
    const inTheWay = await explainInTheWay(repository, order, place, from, commit);
    if (inTheWay !== undefined) return this.wait(order, inTheWay);
    const unreviewed = await this.review(order, repository, tip, from);
    if (unreviewed !== undefined) return unreviewed;
    const { changed, added } = await lookAtChange(repository, order, from, commit);
    const held = this.holdProtected(order, tip, changed);
    if (held !== undefined) return held;
    const red = takeRed(tree, order, { tip, target: from });
    if (red !== undefined) return this.refuseRed(order, from, red);
    const own: Layer = { order, tip, commit, added };
    const mates = changed.length === 0 ? this.matesOf(order, others) : [];
    const at = { repository, path, from, target: place };
    const { batch } = this.tools.settings.landing;
    const stack = mates.length === 0 ? [own] : await stackUp(at, own, mates, batch, mendedBy);
    // Work that was tried on top, and did not fit, has taken the place of this work there.
    return this.checkAndMove(at, stack, mates.length === 0 ? worktree : undefined);
  }

  /**
   * Work that waits and may be checked together with this one. There is none for work that is tried again, so that it costs the others no
   * check; for work without a check; and for work that a reviewer or a person has accepted, or that must be red before.
   */
  private matesOf(order: LandingOrder, others: readonly LandingOrder[]): LandingOrder[] {
    const { checks, review_by: reviewer, prove, began_ms: began = 0 } = order;
    const { tree, trays } = this.tools;
    const isAccepted = stateOf(tree.dir, order).accepted_files !== undefined;
    const { attempt } = this.assigned.assignment;
    if (attempt > 1 || checks.verify === undefined || reviewer !== undefined) return [];
    if (prove !== undefined || isAccepted) return [];
    const mates = matesOf(tree, trays, order, others);
    // Programs that changed after this work began, or after later work, are found by its own check.
    return mates.filter(
      (mate) => (mate.began_ms ?? 0) >= began || freshPrograms(this.assigned, mate).length === 0,
    );
  }

  /**
   * Checks the stack, and moves the target to the highest layer that was checked and is green. The first layer is this landing's own.
   * @param fresh the worktree with the first layer, if nothing else was there since
   * @returns undefined when it must begin again
   */
  private async checkAndMove(
    { repository, path, from }: StackPlace,
    stack: readonly Layer[],
    fresh: CleanCheckout | undefined,
  ): Promise<AttemptOutcome | undefined> {
    const { tree, trays } = this.tools;
    const { stop } = this.assigned.assignment;
    const [{ order }] = stack as [Layer];
    const { green, red } = await findRed(stack.length, async (count) => {
      this.endGitAtStop();
      const layers = stack.slice(0, count);
      const commit = layers.at(-1)?.commit ?? from;
      const guarded = { changed: [], added: layers.flatMap(({ added }) => added) };
      // What an earlier check or a conflict has left there must not decide.
      const at = fresh ?? (await makeCleanCheckout(repository, path, commit));
      return checkLanding(this.tools, this.assigned, order, repository, at, {
        from,
        commit,
        guarded,
      });
    });
    this.endGitAtStop();
    if (red !== undefined && green === 0) return this.refuseRed(order, from, red);
    if (stop.reason !== undefined) return stoppedOutcome(stop.reason, 0);
    const layers = stack.slice(0, green);
    const to = layers.at(-1)?.commit ?? from;
    const [above] = stack.slice(green);
    if (above !== undefined && red !== undefined) noteRed(tree, above, to, red);
    // A person may have cancelled one of them.
    if (!layers.every((layer) => layer.order === order || isWaiting(trays, layer.order)))
      return undefined;
    const ids = layers.map((layer) => layer.order.task_id);
    const checkedOf = ({ order: { task_id }, tip }: Layer): Checked => ({
      commit: to,
      tip,
      onto: from,
      mates: ids.filter((id) => id !== task_id),
    });
    for (const layer of layers) await noteChecked(repository, layer.order, checkedOf(layer));
    const place = await placeOfTarget(repository, order);
    if (place.kind === "busy") return this.wait(order, place.why);
    const moved = await moveTarget(repository, order, place, from, to);
    if (moved.kind === "busy") return this.wait(order, moved.why);
    if (moved.kind === "elsewhere") return undefined;
    return this.landed(order, repository, checkedOf(stack[0] as Layer));
  }

  private refuseRed(
    order: LandingOrder,
    target: string,
    red: AttemptOutcome,
  ): AttemptOutcome | Promise<AttemptOutcome> {
    // A check that was ended by a signal says nothing about the work, so it is tried again.
    if (red.kind !== "failed" || red.failure !== "verify" || red.signal !== null) return red;
    return this.refuse(order, redText(order, red.message), red.lastWords, {
      cause: "work",
      target,
    });
  }

  /** A program that runs listens to the stop itself, and leaves no listener. */
  private endGitAtStop(): void {
    const { lease, stop } = this.assigned.assignment;
    stop.onStop(() => endCalls(LEASE_VARIABLE, lease));
  }

  /** Asks the reviewer for its verdict. @returns undefined when it says `pass`, or when the task has no reviewer */
  private async review(
    order: LandingOrder,
    repository: Repository,
    tip: string,
    target: string | undefined,
  ): Promise<AttemptOutcome | undefined> {
    const { task_id, review_by: reviewer } = order;
    if (reviewer === undefined) return undefined;
    const start = await startOf(atCommonDir(repository), order, tip, target);
    const found = await askReviewer(this.tools, order, repository, { start, tip });
    const work = `this work (${tip.slice(0, 12)})`;
    switch (found.is) {
      case "passed":
        return undefined;
      case "open":
        return this.wait(order, `${reviewer} reviews it (${found.id})`, found.id);
      case "refused":
        return this.refuse(order, `${reviewer} does not pass ${work}: ${found.text}`, "", {
          cause: "review",
        });
      case "silent":
        return forPerson(
          `${reviewer} has not reviewed ${work}: ${found.why}. To ask it again: mailchute land ${task_id}; to land it as it is: mailchute land ${task_id} --no-review`,
        );
    }
  }

  /** Work that changes protected files waits for a person, unless its reviewer has passed it. */
  private holdProtected(
    order: LandingOrder,
    tip: string,
    files: readonly string[],
  ): AttemptOutcome | undefined {
    const isSeen =
      order.review_by !== undefined || stateOf(this.tools.tree.dir, order).accepted_files === tip;
    return files.length === 0 || isSeen ? undefined : forPerson(protectedText(order, files));
  }

  private async landed(
    order: LandingOrder,
    repository: Repository,
    checked: Checked,
  ): Promise<AttemptOutcome> {
    const { task_id, target, checks } = order;
    const { commit, tip, mates = [] } = checked;
    if ((await readChecked(repository, order)) === undefined)
      await noteChecked(repository, order, checked);
    const { tree, trays } = this.tools;
    const nowMs = trays.clock.wallMs();
    await writeProof(repository, order, { tree, trays, checked, nowMs });
    const spaces = await this.tools.loadWorkspaces?.(this.tools);
    const reasons = (await spaces?.release(order, tip)) ?? [];
    const stays = reasons.length === 0 ? "" : `; the worktree of ${task_id} stays: ${reasons[0]}`;
    const others = mates.length === 0 ? "" : `, checked together with ${mates.join(", ")}`;
    const how = checks.verify === undefined ? ", unchecked" : others;
    return success(
      order,
      "landed",
      commit,
      `landed on ${target} as ${commit.slice(0, 12)}${how}${stays}`,
    );
  }

  /** The agent gets the work back, as often as `mayMend` allows. After that a person must look at it. */
  private async refuse(
    order: LandingOrder,
    why: string,
    more = "",
    unfit: Unfit = { cause: "work" },
  ): Promise<AttemptOutcome> {
    const { tree, trays } = this.tools;
    const { stop } = this.assigned.assignment;
    if (stop.reason !== undefined) return stoppedOutcome(stop.reason, 0);
    const isOwn = order.land === "merge" || order.land === "exec";
    if (isOwn && canMend(order) && mayMend(stateOf(tree.dir, order), unfit)) {
      const text = more === "" ? why : `${why}\n\n${more}`;
      const id = await sendBack(tree, trays, order, text, unfit);
      return this.wait(order, `${id} mends the work`, id);
    }
    return forPerson(unfit.cause === "review" ? refusedText(order, why) : why, more);
  }

  private wait(order: LandingOrder, why: string, on: string | null = null): Deferred {
    const { dir } = this.tools.tree;
    const state = stateOf(dir, order);
    const until_ms = this.tools.trays.clock.wallMs() + WAIT_MS;
    writeLanding(dir, order.task_id, "state", { ...state, wait: { why, on, until_ms } });
    const gate = landingGateOf(order.task_id);
    return { kind: "deferred", message: why, delayMs: WAIT_MS, hold: gate };
  }
}
