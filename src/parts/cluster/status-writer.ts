/** Writes the state of the bridge to `cluster/bridge.json`. */
import type { BridgeView } from "./bridge/options.ts";
import { type KnownMachine, type Machines, mayBeSent } from "./protocol/machines.ts";
import type { BegunTask, MachineEntry, TargetEntry, Told } from "./tree/bridge-document.ts";

/** The longest and the shortest time between two writes (ms). So readers see that the bridge lives. */
const WRITE_MS_MAX = 3000;
const WRITE_MS_MIN = 250;
/** At most this many machines are named that take no tasks. */
const WHY_MAX = 5;
/** At most this many tasks are listed with their machines. */
const BEGUN_MAX = 200;
/** A machine that was silent for this long is no longer shown (ms). */
const FORGET_MS = 3_600_000;

export interface StatusOptions {
  /** Facts that do not change, and whether the servers can be reached. */
  self: () => Pick<Told, "version" | "machine" | "tree" | "servers" | "is_connected" | "trouble">;
  machines: Machines;
  /** Targets of the remote agents in the settings. */
  targets: readonly string[];
  write: (told: Told) => void;
}

export class StatusWriter {
  private readonly options: StatusOptions;
  private writtenMs = Number.NEGATIVE_INFINITY;
  private written = "";

  constructor(options: StatusOptions) {
    this.options = options;
  }

  /** Writes what has changed. @param nowMs monotonic. @throws a system error when the file cannot be written */
  update(view: BridgeView, nowMs: number, wallMs: number): void {
    const sinceMs = nowMs - this.writtenMs;
    if (sinceMs < WRITE_MS_MIN) return;
    const targets = this.targetsOf(view, nowMs);
    const told = this.options.self();
    const begun = begunOf(view);
    const unanswered = Object.fromEntries(view.unanswered);
    const text = JSON.stringify([targets, begun, unanswered, told]);
    if (text === this.written && sinceMs < WRITE_MS_MAX) return;
    const machines = this.machinesOf(view, nowMs, wallMs);
    const at = new Date(wallMs).toISOString();
    this.options.write({ ...told, at, machines, targets, begun, unanswered });
    this.written = text;
    this.writtenMs = nowMs;
  }

  private targetsOf({ held, begun }: BridgeView, nowMs: number): Record<string, TargetEntry> {
    const { machines, targets } = this.options;
    const entries = new Map<string, TargetEntry>();
    const entryOf = (target: string): TargetEntry => {
      let entry = entries.get(target);
      if (entry === undefined) {
        const room = machines.roomFor(target, nowMs);
        const none = room > 0 ? [] : machines.whyNone(target, nowMs).slice(0, WHY_MAX);
        entry = { room, may_be_sent: mayBeSent(room), sent: 0, begun: 0 };
        if (none.length > 0) entry.why_none = none;
        entries.set(target, entry);
      }
      return entry;
    };
    for (const target of targets) entryOf(target);
    for (const { id, target } of held) {
      const entry = entryOf(target);
      entry.sent += 1;
      if (begun.has(id)) entry.begun += 1;
    }
    return Object.fromEntries(entries);
  }

  private machinesOf({ begun }: BridgeView, nowMs: number, wallMs: number): MachineEntry[] {
    const { machines } = this.options;
    const ours = new Map<string, number>();
    for (const { machine } of begun.values()) ours.set(machine, (ours.get(machine) ?? 0) + 1);
    return machines.list(nowMs, FORGET_MS).map((one: KnownMachine) => ({
      name: one.machine,
      version: one.program,
      serves: one.serves,
      room: one.room,
      open: one.open,
      is_draining: one.is_draining,
      ...(one.why === undefined ? {} : { why: one.why }),
      ...twinsOf(machines.twins(one, nowMs)),
      ours: ours.get(one.machine) ?? 0,
      load: one.load,
      cpus: one.cpus,
      heard_at: new Date(wallMs - (nowMs - one.heardMs)).toISOString(),
      is_there: machines.isThere(one, nowMs),
    }));
  }
}

function twinsOf(trees: string[]): Pick<MachineEntry, "twins"> {
  return trees.length === 0 ? {} : { twins: trees };
}

function begunOf({ held, begun }: BridgeView): BegunTask[] {
  const tasks: BegunTask[] = [];
  for (const { id, dispatch, target } of held) {
    const machine = begun.get(id)?.machine;
    if (machine !== undefined) tasks.push({ id: dispatch.task, target, machine });
    if (tasks.length === BEGUN_MAX) break;
  }
  return tasks;
}
