/** Tells how many slots of this machine's pool are left for tasks of others, and why there are none. Only reads. */
import fs from "node:fs";
import { systemCode } from "../../../core/errors.ts";
import { closedPool } from "../../../core/gates.ts";
import { parseName } from "../../../core/names.ts";
import { type ControlDocument, controlOf } from "../../../core/saved-documents.ts";
import type { ClusterSettings } from "../../../core/settings.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { readJsonObject } from "../../../view/scan.ts";
import type { SupervisorView } from "../../../view/snapshot.ts";
import { poolOf, readSupervisor } from "../../../view/supervisor.ts";

/** An answer is used again for this long (ms). */
const KEPT_MS = 500;
/** A supervisor that has shown no life for this long hangs, or was stopped (ms). */
const STILL_MS = 20_000;

export interface Room {
  slots: number;
  /** Set when there are none: the reason, as a text for people. */
  why?: string;
}

export class PoolRoom {
  private room: Room = { slots: 0 };
  private readMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly tree: StateTree,
    private readonly trays: Trays,
    private readonly isOfOthers: (id: string) => boolean,
  ) {}

  /** The slots that no task of this tree has. */
  now(): Room {
    const nowMs = performance.now();
    if (nowMs - this.readMs >= KEPT_MS) {
      this.readMs = nowMs;
      this.room = this.read();
    }
    return this.room;
  }

  private read(): Room {
    const nowMs = Date.now();
    const supervisor = readSupervisor(this.tree, nowMs);
    const control = controlOf(readJsonObject(this.tree.controlState));
    const why = whyStopped(supervisor, nowMs, control) ?? this.whyUnwritable();
    if (why !== undefined) return { slots: 0, why };
    const slots = control.max_workers ?? supervisor.document?.workers ?? 0;
    const own = this.trays.storage.list(this.trays.processing).filter((file) => {
      const name = file.includes("~w-") ? parseName(file) : undefined;
      return name?.stage === "w" && !this.isOfOthers(name.id);
    });
    if (slots > own.length) return { slots: slots - own.length };
    return { slots: 0, why: "its own tasks have all slots" };
  }

  private whyUnwritable(): string | undefined {
    for (const dir of [this.trays.inbox, this.tree.jobs])
      try {
        fs.accessSync(dir, fs.constants.W_OK | fs.constants.X_OK);
      } catch (error) {
        const code = systemCode(error);
        // The folder of the jobs is made for the first one.
        if (code !== "ENOENT" || dir === this.trays.inbox)
          return `it has no right to write into ${dir} (${code})`;
      }
    return undefined;
  }
}

/** Why a pool starts nothing; undefined when it may start tasks. Pure. @param nowMs epoch ms */
export function whyStopped(
  supervisor: SupervisorView,
  nowMs: number,
  control?: ControlDocument,
): string | undefined {
  const { state, heartbeat_age_ms: stillMs } = supervisor;
  const closed = closedPool(poolOf(supervisor, nowMs, control));
  if (closed !== undefined) return `${closed.why}: ${closed.do}`;
  // The supervisor may run on another host, where we cannot see whether it lives.
  return state !== "unknown" && (stillMs ?? 0) > STILL_MS
    ? "its pool hangs or was stopped, or its disk is full"
    : undefined;
}

/** The room for tasks of others, by the settings of this machine. Pure. */
export function roomOf(
  { slots: most, accept }: Pick<ClusterSettings, "slots" | "accept">,
  room: Room,
): Room {
  if (accept.length === 0) return { slots: 0, why: "it accepts no agent: cluster: accept" };
  const slots = Math.min(most, room.slots);
  return slots > 0 || room.slots === 0
    ? { ...room, slots }
    : { slots, why: "its cluster: slots is 0" };
}
