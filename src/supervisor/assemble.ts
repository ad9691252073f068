/** Makes the services of a supervisor and puts them in the order of a tick. Each is made after the services that it asks. */
import { Backlog } from "../core/backlog.ts";
import type { Dependency } from "../core/dependencies.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { cancellingSequence, ownerSequence, skippingSequence } from "../host/identity.ts";
import { awaitedRecords } from "../mailbox/find/awaited-records.ts";
import { applyCommand, makeCommandTable } from "./control/apply-command.ts";
import type { CommandContext, CommandTable, RunControl } from "./control/command-context.ts";
import { CommandInbox } from "./control/command-inbox.ts";
import { ControlFile } from "./documents/control-file.ts";
import { Ownership } from "./documents/ownership.ts";
import type { Environment } from "./environment/environment.ts";
import { JournalReader } from "./environment/journal-reader.ts";
import type { Lifecycle } from "./environment/lifecycle.ts";
import type { SupervisorOptions } from "./environment/options.ts";
import { Parts } from "./environment/parts.ts";
import type { Service } from "./environment/service.ts";
import { ExitCondition } from "./exit-condition.ts";
import type { FileRejections, KeyJudge } from "./inbox/inbox-files.ts";
import { KeyHolders } from "./inbox/key-holders.ts";
import { Rejections } from "./inbox/reject.ts";
import { InboxScanner } from "./inbox/scanner.ts";
import { Cleaner } from "./maintenance/cleaner.ts";
import { makeCommandRecovery, makeTaskRecovery } from "./maintenance/make-recovery.ts";
import type { TaskRecovery } from "./maintenance/task-recovery.ts";
import type { MakePart } from "./part.ts";
import { Poll } from "./poll.ts";
import { Pool } from "./pool/pool.ts";
import { Shortages } from "./pool/shortages.ts";
import { AcceptedTasks } from "./queue/accepted-tasks.ts";
import { Completions } from "./queue/completions.ts";
import { DiskLimit } from "./queue/disk-limit.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import { DueTasks } from "./queue/due-tasks.ts";
import { ProcessingTray } from "./queue/processing-tray.ts";
import type { Queue } from "./queue/queue.ts";
import { Skipper } from "./queue/skipper.ts";
import { SlotSharing } from "./queue/slot-sharing.ts";
import { StartLimits } from "./queue/start-limits.ts";
import { Starter } from "./queue/starter.ts";
import { FinishedIds, IdProbe } from "./queue/taken-ids.ts";
import { WorkerEvents } from "./queue/worker-events.ts";
import { RunReport } from "./run-report.ts";
import { Shutdown } from "./shutdown.ts";
import { cleanService, commandService, scanService } from "./slices.ts";
import { Startup } from "./startup.ts";
import { StatusWriter } from "./status/status-writer.ts";
import { Watchers } from "./watchers.ts";

/** The services that the supervisor itself calls. */
export interface Services {
  /** All services, in the order of a tick. */
  readonly ordered: readonly Service[];
  readonly pool: Pool;
  readonly startup: Startup;
  readonly shutdown: Shutdown;
  readonly report: RunReport;
}

/** With `--dry-run` files stay where they are. */
const NO_REJECTIONS: FileRejections = { refuse: () => {}, dropResend: () => "other" };
const NO_KEYS: KeyJudge = {
  judge: () => "holds",
  unsureCount: 0,
  answered: () => [],
  forget() {},
};

/**
 * @param makeParts each is called once
 * @throws ErrIo when `control.json` cannot be read
 */
export function assemble(
  env: Environment,
  options: SupervisorOptions,
  lifecycle: Lifecycle,
  makeParts: readonly MakePart[],
): Services {
  const { tree, settings, trays } = env;
  const isOnePass = options.once === true;
  const isOn = settings.mailbox_enabled;

  // Services that the others ask.
  const parts = new Parts();
  const pool = new Pool(settings, tree, options.startWorker);
  const shortages = new Shortages(trays.clock);
  const tellDamage = (message: string): void => env.alerts.alert("control_damaged", message);
  const control = new ControlFile(tree.controlState, settings.durability === "power", tellDamage);
  const disk = new DiskLimit(env, new DiskRoom(tree, settings.free_bytes_min));
  const journal = new JournalReader(env);
  const ownership = new Ownership(tree, trays.clock);
  const watchers = new Watchers(env);
  const newOwner = ownerSequence();

  // Services for waiting, running and ended tasks, and for the choice of the tasks that start.
  const taskRecovery = makeTaskRecovery(env, newOwner, pool.workers);
  const isDryRun = options.dryRun === true;
  const { queue, completions, rejections } = makeQueue(env, pool, parts, taskRecovery, isDryRun);
  const skipper = new Skipper(env, queue, completions, parts, skippingSequence());
  const slots = new SlotSharing(pool, queue.processing, control);
  const holds = { control, disk, parts, lifecycle };
  const limits = new StartLimits(env, queue, holds, options.maxTasks);
  new WorkerEvents(env, lifecycle, { ...queue, shortages, slots });

  // Commands.
  const run = runControl(lifecycle, slots, isOnePass);
  const context = { env, control, queue, parts, newOwner: cancellingSequence(), run };
  const table = makeCommandTable();
  const commands = makeCommandInbox(context, table, newOwner);
  const commandRecovery = makeCommandRecovery(env, newOwner, (file) => commands.takeReady(file));

  for (const make of makeParts)
    parts.add(make({ env, journal, control, queue, limits, commands: table }));

  // Services that look around, report the state, clean up, and end the run.
  const recovery = { taskRecovery, commandRecovery, commands, control };
  const poll = new Poll(env, { queue, journal, completions, slots, watchers, recovery });
  const shortOf = { shortages, disk, watchers };
  const status = new StatusWriter(env, lifecycle, { queue, parts, ownership, control, shortOf });
  const cleaner = makeCleaner(env, queue.backlog, skipper, parts);
  const exit = { queue, parts, commands, control, limits, ownership };
  const movers = [rejections, skipper];
  return {
    pool,
    startup: new Startup(env, options, { status, control, limits, pool, poll, parts }),
    shutdown: new Shutdown(env, lifecycle, { pool, poll, parts, commands, movers, status }),
    report: new RunReport(env, { queue, parts, completions, rejections, status }),
    ordered: [
      // Commands of a person come before anything starts.
      commandService(commands),
      // New files and used ids must be known before a task is chosen.
      ...(isOn ? [scanService(queue.scanner, isOnePass), completions] : []),
      // Recovered tasks, and the moves of other processes, must reach the queue before it is used.
      poll,
      // By now all failures are known.
      ...(isOn ? [skipper] : []),
      disk,
      new DueTasks(env, queue.backlog),
      // Parts may make tasks or hold some back before the next start.
      parts,
      new Starter(limits, queue.dispatcher),
      // Nothing starts after this point, so the report is correct.
      status,
      cleanService(cleaner, () => queue.scanner.isComplete || !isOn),
      new ExitCondition(settings, options, lifecycle, exit, skipper, env.facts),
    ],
  };
}

/** Makes the services that know the waiting, running and ended tasks. */
function makeQueue(
  env: Environment,
  pool: Pool,
  parts: Parts,
  taskRecovery: TaskRecovery,
  isDryRun: boolean,
): { queue: Queue; completions: Completions; rejections: Rejections } {
  const { trays, alerts } = env;
  const backlog = new Backlog((group) => parts.slotsOf(group) !== undefined);
  const finishedIds = new FinishedIds(trays, (error) =>
    alerts.report(`settled:${systemCode(error)}`, `cannot list what settled: ${messageOf(error)}`),
  );
  const rejections = new Rejections(env, (id) => finishedIds.has(id));
  const accepted = new AcceptedTasks();
  const ids = new IdProbe(trays, accepted, finishedIds);
  const { workers } = pool;
  const own = { accepted, backlog, finishedIds, workers };
  const processing = new ProcessingTray(env, own, () => taskRecovery.list());
  const dispatcher = new Dispatcher(env, { accepted, backlog, ids, pool, processing }, parts);
  const known = { accepted, backlog, finishedIds, pool };
  const completions = new Completions(env, known, parts);
  const isMet = (dependency: Dependency): boolean => completions.isMet(dependency);
  const keys = isDryRun ? NO_KEYS : new KeyHolders(env, (id) => parts.ownerOf(id) !== undefined);
  const refusals = isDryRun ? NO_REJECTIONS : rejections;
  const scanner = new InboxScanner(env, backlog, refusals, { ids, keys, isMet });
  const queue = { accepted, backlog, dispatcher, finishedIds, ids, pool, processing, scanner };
  return { queue, completions, rejections };
}

function runControl(lifecycle: Lifecycle, slots: SlotSharing, isFixed: boolean): RunControl {
  return {
    isFixed,
    shareSlots: () => slots.share(),
    // Wait until the command is acknowledged, then end the run.
    stop: (drain) => setTimeout(() => lifecycle.ask(drain), 0),
  };
}

function makeCommandInbox(
  context: CommandContext,
  table: CommandTable,
  newOwner: () => string,
): CommandInbox {
  const { controlTrays, settings, telemetry, alerts, facts, wake } = context.env;
  const commands = new CommandInbox(controlTrays, newOwner, settings.uids, {
    apply: (command) => {
      const result = applyCommand(table, context, command);
      // Write the events before the command is acknowledged.
      telemetry.flush();
      return result;
    },
    control: context.control,
    onError: (error) => alerts.report("control", `control mailbox: ${messageOf(error)}`),
  });
  facts.on("control:changed", (file) => {
    commands.ring(file);
    wake();
  });
  return commands;
}

function makeCleaner(env: Environment, backlog: Backlog, skipper: Skipper, parts: Parts): Cleaner {
  const { tree, settings, trays, controlTrays, alerts } = env;
  const { retention, mailbox_enabled: isOn } = settings;
  const mailboxes = isOn ? [trays, controlTrays] : [controlTrays];
  const isAwaited = awaitedRecords(trays, tree);
  return new Cleaner(
    { tree, mailboxes, retention, clock: trays.clock },
    {
      isNeeded: (id) => backlog.isNeeded(id) || skipper.isNeeded(id) || isAwaited(id),
      isInPlan: () => parts.membership(),
      onError: (error) =>
        alerts.report(
          "upkeep",
          `cannot remove old files, and tries again later: ${messageOf(error)}`,
        ),
    },
  );
}
