/** Makes the services of a supervisor, each after those that it asks, and puts them in the order of a tick. */
import { Backlog } from "../core/backlog.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { SLICE_MS_MAX } from "../core/limits.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { cancellingSequence, ownerSequence } from "../host/identity.ts";
import { NodeWithdrawals } from "../parts/plan/engine/withdraw-nodes.ts";
import { makePlanEngine } from "../parts/plan/part.ts";
import { applyCommand } from "./control/apply-command.ts";
import { takeBackNode } from "./control/cancel.ts";
import type { CommandContext } from "./control/command-context.ts";
import { CommandInbox } from "./control/command-inbox.ts";
import { ControlFile } from "./documents/control-file.ts";
import { Ownership } from "./documents/ownership.ts";
import type { Environment } from "./environment/environment.ts";
import { JournalReader } from "./environment/journal-reader.ts";
import type { SupervisorOptions } from "./environment/options.ts";
import { NEVER, type Service } from "./environment/service.ts";
import { ExitCondition } from "./exit-condition.ts";
import { Rejections } from "./inbox/reject.ts";
import { type FileRejections, InboxScanner } from "./inbox/scanner.ts";
import { Cleaner } from "./maintenance/cleaner.ts";
import { makeCommandRescuer, makeTaskRescuer } from "./maintenance/make-rescuers.ts";
import { Metrics } from "./metrics.ts";
import { Poll } from "./poll.ts";
import { Pool } from "./pool/pool.ts";
import { Shortages } from "./pool/shortages.ts";
import { Completions } from "./queue/completions.ts";
import { DiskLimit } from "./queue/disk-limit.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import { DueTasks } from "./queue/due-tasks.ts";
import { FinishedIds } from "./queue/finished-ids.ts";
import { ProcessingTray } from "./queue/processing-tray.ts";
import { SlotSharing } from "./queue/slot-sharing.ts";
import { StartLimits } from "./queue/start-limits.ts";
import { Starter } from "./queue/starter.ts";
import { WorkerEvents } from "./queue/worker-events.ts";
import { StatusWriter } from "./status/status-writer.ts";
import { Watchers } from "./watchers.ts";

/** Listing what settled takes at most about this much of a tick (ms). */
const SETTLED_SLICE_MS = 2;

/** With `--dry-run` files stay where they are. */
const NO_REJECTIONS: FileRejections = { refuse: () => {}, dropResend: () => "other" };

export type Services = ReturnType<typeof assemble>;

/**
 * @param stop asks the supervisor to end
 * @throws ErrIo when `control.json` cannot be read
 */
export function assemble(
  env: Environment,
  options: SupervisorOptions,
  stop: (drain: boolean) => void,
) {
  const queue = makeQueue(env, options);
  const control = makeControl(env, options, queue, stop);
  const rounds = makeRounds(env, options, { ...queue, ...control });
  const all = { ...queue, ...control, ...rounds };
  return { ...all, ordered: inOrder(env, options, all) };
}

/** What knows of tasks, and starts them. */
function makeQueue(env: Environment, options: SupervisorOptions) {
  const { tree, settings, trays, clock, alerts, facts } = env;
  const backlog = new Backlog();
  const shortages = new Shortages(clock);
  const control = new ControlFile(tree.controlState, settings.durability === "power");
  const disk = new DiskLimit(env, new DiskRoom(tree, settings.free_bytes_min));
  const metrics = new Metrics(tree.metrics, tree.events, (line) =>
    facts.emit("journal:line", line),
  );
  const journal = new JournalReader(env, metrics);
  const plan = makePlanEngine(env, journal, backlog, control);
  const boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
  const pool = new Pool(settings, tree.workers, boot);
  const finishedIds = new FinishedIds(trays, (error) =>
    alerts.report(`settled:${systemCode(error)}`, `cannot list what settled: ${messageOf(error)}`),
  );
  const rejections = new Rejections(env, (id) => finishedIds.has(id));
  const dispatcher = new Dispatcher(env, backlog, pool, finishedIds);
  const completions = new Completions(env, { backlog, dispatcher, finishedIds, plan, pool });
  const scanner = new InboxScanner(
    env,
    backlog,
    options.dryRun === true ? NO_REJECTIONS : rejections,
    dispatcher,
    (id) => completions.isMet(id),
  );
  const newOwner = ownerSequence();
  const rescuer = makeTaskRescuer(env, newOwner, pool);
  const processing = new ProcessingTray(env, backlog, dispatcher, pool, () => rescuer.list());
  const slots = new SlotSharing(pool, processing, control);
  const asked = {
    backlog,
    control,
    disk,
    scanner,
    finishedIds,
    dispatcher,
    completions,
    plan,
    pool,
  };
  const limits = new StartLimits(env, { ...asked, launchesMax: options.maxTasks ?? NEVER });
  const starter = new Starter(limits, plan, dispatcher);
  new WorkerEvents(env, { ...asked, shortages, slots });
  const own = { metrics, journal, rejections, newOwner, rescuer, processing, slots, shortages };
  return { ...asked, ...own, limits, starter };
}

/** What commands do. */
function makeControl(
  env: Environment,
  options: SupervisorOptions,
  queue: ReturnType<typeof makeQueue>,
  stop: (drain: boolean) => void,
) {
  const { settings, controlTrays, telemetry, alerts, facts, wake } = env;
  const { backlog, control, dispatcher, newOwner, plan, slots } = queue;
  const context: CommandContext = {
    ...env,
    ...queue,
    newOwner: cancellingSequence(),
    isFixed: options.once === true,
    notice: (message) => alerts.notice(message),
    shareSlots: () => slots.share(),
    // What it did shows in `processing/`.
    wake: () => facts.emit("processing:changed"),
    stop: (drain) => setTimeout(() => stop(drain), 0),
    hint: (file) => facts.emit("inbox:written", file),
  };
  const commands = new CommandInbox(controlTrays, newOwner, settings.uids, {
    apply: (command) => {
      const result = applyCommand(context, command);
      // What happened is told before it is acknowledged.
      telemetry.flush();
      return result;
    },
    isApplied: (nonce) => control.isApplied(nonce),
    lastWord: (subject) => control.lastWord(subject),
    noteLastWord: (subject, word) => control.noteLastWord(subject, word),
    forgetLastWords: () => control.forgetLastWords(),
    save: () => control.save(),
    onAcknowledged: (nonce) => control.keepApplied((other) => other !== nonce),
    onError: (error) => alerts.report("control", `control mailbox: ${messageOf(error)}`),
  });
  facts.on("control:changed", (file) => {
    commands.ring(file);
    wake();
  });
  const commandRescuer = makeCommandRescuer(env, newOwner, (file) => commands.takeReady(file));
  const takeBack = (id: string): Promise<boolean> => takeBackNode(context, id);
  const withdrawals = new NodeWithdrawals(plan, backlog, dispatcher, alerts, takeBack);
  return { commands, commandRescuer, withdrawals };
}

/** What looks around, tells how it stands, and cleans. */
function makeRounds(
  env: Environment,
  options: SupervisorOptions,
  queue: ReturnType<typeof makeQueue> & ReturnType<typeof makeControl>,
) {
  const { tree, settings, trays, controlTrays, clock, alerts } = env;
  const { backlog, plan } = queue;
  const ownership = new Ownership(tree, clock);
  const watchers = new Watchers(env);
  const cleaner = new Cleaner({
    tree,
    mailboxes: env.isOn ? [trays, controlTrays] : [controlTrays],
    retention: settings.retention,
    clock,
    isNeeded: (id) => backlog.isNeeded(id),
    isInPlan: () => plan.membership(),
    onError: (error) => alerts.report("upkeep", `what is old stays for now: ${messageOf(error)}`),
  });
  const poll = new Poll(env, { ...queue, watchers });
  const status = new StatusWriter(env, { ...queue, ownership, watchers });
  const exit = new ExitCondition(env, options, { ...queue, ownership });
  return { ownership, watchers, cleaner, poll, status, exit };
}

/** The services of a tick, in their order. */
function inOrder(
  env: Environment,
  options: SupervisorOptions,
  s: ReturnType<typeof makeQueue> & ReturnType<typeof makeControl> & ReturnType<typeof makeRounds>,
): readonly Service[] {
  const { isOn, clock } = env;
  const { commands, scanner, finishedIds, completions, cleaner } = s;
  return [
    // A person's word counts before anything starts.
    {
      work: () => commands.work(),
      // Not at once: acknowledgements and file events come in between.
      nextMs: (nowMs) => nowMs + Math.max(1, commands.relookMs ?? NEVER),
    },
    // New files, and ids that are taken, are known before something is chosen.
    {
      work: ({ nowMs }) => {
        if (isOn) scanner.work(nowMs + SLICE_MS_MAX);
      },
      nextMs: (nowMs) => {
        const isPassOver = options.once === true && scanner.isComplete;
        const isLooking = isOn && scanner.hasWork && !isPassOver;
        return isLooking ? nowMs : (scanner.nextLookMs() ?? NEVER);
      },
    },
    {
      work: () => {
        if (!isOn || !finishedIds.hasWork) return;
        finishedIds.work(clock.monotonicMs() + SETTLED_SLICE_MS);
        if (!finishedIds.hasWork) completions.recheckDependencies();
      },
      nextMs: (nowMs) => (isOn && finishedIds.hasWork ? nowMs : NEVER),
    },
    // What others do, and what the dead left, comes back into the queue before the queue is used.
    s.poll,
    s.withdrawals,
    s.disk,
    new DueTasks(env, s.backlog),
    s.starter,
    // Nothing starts after this: what is told is how it stands.
    s.status,
    {
      work: ({ nowMs }) => {
        if (scanner.isComplete || !isOn) cleaner.work(nowMs);
      },
      nextMs: (nowMs) => (cleaner.hasWork ? nowMs : NEVER),
    },
    s.exit,
  ];
}
