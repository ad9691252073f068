/** Makes the services of a supervisor, each after those that it asks, and puts them in the order of a tick. */
import { Backlog } from "../core/backlog.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { SLICE_MS_MAX } from "../core/limits.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { cancellingSequence, ownerSequence } from "../host/identity.ts";
import { applyCommand, makeCommandTable } from "./control/apply-command.ts";
import type { CommandContext } from "./control/command-context.ts";
import { CommandInbox } from "./control/command-inbox.ts";
import { ControlFile } from "./documents/control-file.ts";
import { Ownership } from "./documents/ownership.ts";
import type { Environment } from "./environment/environment.ts";
import { JournalReader } from "./environment/journal-reader.ts";
import type { RunMode } from "./environment/options.ts";
import { Parts } from "./environment/parts.ts";
import { NEVER, type Service } from "./environment/service.ts";
import { ExitCondition } from "./exit-condition.ts";
import { Rejections } from "./inbox/reject.ts";
import { type FileRejections, InboxScanner } from "./inbox/scanner.ts";
import { Cleaner } from "./maintenance/cleaner.ts";
import { makeCommandRescuer, makeTaskRescuer } from "./maintenance/make-rescuers.ts";
import type { MakePart } from "./part.ts";
import { Poll } from "./poll.ts";
import { Pool } from "./pool/pool.ts";
import { Shortages } from "./pool/shortages.ts";
import { Completions } from "./queue/completions.ts";
import { DiskLimit } from "./queue/disk-limit.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import { DueTasks } from "./queue/due-tasks.ts";
import { FinishedIds } from "./queue/finished-ids.ts";
import { ProcessingTray } from "./queue/processing-tray.ts";
import type { Queue } from "./queue/queue.ts";
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
 * @param makeParts each is called once
 * @param stop asks the supervisor to end
 * @throws ErrIo when `control.json` cannot be read
 */
export function assemble(
  env: Environment,
  mode: RunMode,
  makeParts: readonly MakePart[],
  stop: (drain: boolean) => void,
) {
  const tasks = makeTaskServices(env, mode);
  const control = makeCommandServices(env, mode, tasks, stop);
  for (const make of makeParts) tasks.parts.add(make({ env, ...tasks, ...control }));
  const rounds = makeRounds(env, mode, { ...tasks, ...control });
  const all = { ...tasks, ...control, ...rounds };
  return { ...all, ordered: inOrder(env, mode, all) };
}

/** What knows of tasks, and starts them. */
function makeTaskServices(env: Environment, mode: RunMode) {
  const { tree, settings, trays, clock, alerts } = env;
  const parts = new Parts();
  const backlog = new Backlog();
  const shortages = new Shortages(clock);
  const control = new ControlFile(tree.controlState, settings.durability === "power");
  const disk = new DiskLimit(env, new DiskRoom(tree, settings.free_bytes_min));
  const journal = new JournalReader(env);
  const boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
  const pool = new Pool(settings, tree.workers, boot);
  const finishedIds = new FinishedIds(trays, (error) =>
    alerts.report(`settled:${systemCode(error)}`, `cannot list what settled: ${messageOf(error)}`),
  );
  const rejections = new Rejections(env, (id) => finishedIds.has(id));
  const dispatcher = new Dispatcher(env, backlog, pool, finishedIds);
  const completions = new Completions(env, { backlog, dispatcher, finishedIds, pool }, parts);
  const scanner = new InboxScanner(
    env,
    backlog,
    mode.dryRun === true ? NO_REJECTIONS : rejections,
    dispatcher,
    (id) => completions.isMet(id),
  );
  const newOwner = ownerSequence();
  const rescuer = makeTaskRescuer(env, newOwner, pool);
  const processing = new ProcessingTray(env, backlog, dispatcher, pool, () => rescuer.list());
  const queue: Queue = { backlog, scanner, dispatcher, processing, finishedIds, pool };
  const slots = new SlotSharing(pool, processing, control);
  const limits = new StartLimits(env, queue, control, disk, parts, mode.maxTasks ?? NEVER);
  const starter = new Starter(limits, dispatcher);
  new WorkerEvents(env, { pool, dispatcher, shortages, slots });
  return {
    parts,
    queue,
    control,
    disk,
    journal,
    completions,
    rejections,
    newOwner,
    rescuer,
    slots,
    shortages,
    limits,
    starter,
  };
}

/** What commands do. */
function makeCommandServices(
  env: Environment,
  mode: RunMode,
  tasks: ReturnType<typeof makeTaskServices>,
  stop: (drain: boolean) => void,
) {
  const { settings, controlTrays, telemetry, alerts, facts, wake } = env;
  const { control, newOwner, parts, queue, slots } = tasks;
  const context: CommandContext = {
    env,
    control,
    queue,
    parts,
    newOwner: cancellingSequence(),
    run: {
      isFixed: mode.once === true,
      shareSlots: () => slots.share(),
      // A command is acknowledged before it ends the run.
      stop: (drain) => setTimeout(() => stop(drain), 0),
    },
  };
  const table = makeCommandTable();
  const commands = new CommandInbox(controlTrays, newOwner, settings.uids, {
    apply: (command) => {
      const result = applyCommand(table, context, command);
      // What happened is told before it is acknowledged.
      telemetry.flush();
      return result;
    },
    control,
    onError: (error) => alerts.report("control", `control mailbox: ${messageOf(error)}`),
  });
  facts.on("control:changed", (file) => {
    commands.ring(file);
    wake();
  });
  const commandRescuer = makeCommandRescuer(env, newOwner, (file) => commands.takeReady(file));
  return { commandInbox: commands, commands: table, commandRescuer };
}

/** What looks around, tells how it stands, and cleans. */
function makeRounds(
  env: Environment,
  mode: RunMode,
  tasks: ReturnType<typeof makeTaskServices> & ReturnType<typeof makeCommandServices>,
) {
  const { tree, settings, trays, controlTrays, clock, alerts } = env;
  const { commandInbox: commands, commandRescuer, control, parts, queue, rescuer } = tasks;
  const ownership = new Ownership(tree, clock);
  const watchers = new Watchers(env);
  const mailboxes = env.isOn ? [trays, controlTrays] : [controlTrays];
  const cleaner = new Cleaner(
    { tree, mailboxes, retention: settings.retention, clock },
    {
      isNeeded: (id) => queue.backlog.isNeeded(id),
      isInPlan: () => parts.membership(),
      onError: (error) => alerts.report("upkeep", `what is old stays for now: ${messageOf(error)}`),
    },
  );
  const recovery = { rescuer, commandRescuer, commands, control };
  const poll = new Poll(env, { ...tasks, watchers, recovery });
  const status = new StatusWriter(env, { ...tasks, ownership, watchers });
  const exit = new ExitCondition(env, mode, { ...tasks, commands, ownership });
  return { ownership, watchers, cleaner, poll, status, exit };
}

/** The services of a tick, in their order. */
function inOrder(
  env: Environment,
  mode: RunMode,
  s: ReturnType<typeof makeTaskServices> &
    ReturnType<typeof makeCommandServices> &
    ReturnType<typeof makeRounds>,
): readonly Service[] {
  const { isOn, clock } = env;
  const { commandInbox: commands, completions, cleaner } = s;
  const { backlog, finishedIds, scanner } = s.queue;
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
        const isPassOver = mode.once === true && scanner.isComplete;
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
    s.disk,
    new DueTasks(env, backlog),
    // What they make, or hold back, counts for what is started next.
    s.parts,
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
