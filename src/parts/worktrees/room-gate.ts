/** The gate of tasks for whose worktrees there is no room. It opens by itself. */
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import type { Part, StartLimit, StatusSource } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { DiskRoom, ROOM_GATE } from "./disk-room.ts";

const LOOK_MS = 500;
/** A shorter opening, for a start that looks for room again, does not count (ms). */
const OPEN_MS_MIN = 10_000;
/** Tasks that have waited for so long need a person (ms). */
const TELL_MS = 600_000;
const TELL_AGAIN_MS = 3_600_000;
const WHAT_TO_DO =
  "make room on the disk: `mailchute worktrees ls` shows what each worktree holds, `clean ID` saves that and removes it. Or wait for tasks that run";

class RoomGate implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  gates: readonly ClosedGate[] = [];
  private readonly room: DiskRoom;
  private lookAtMs = 0;
  private closedAtMs = 0;
  private openedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly env: PartHost["env"]) {
    this.room = new DiskRoom(env.tree, env.settings, env.trays);
  }

  work({ nowMs }: Tick): void {
    if (nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    const why = this.room.waiting();
    if (why !== undefined) this.tellWhenLong(why, nowMs);
    if (why === this.gates[0]?.why) return;
    if (why === undefined) this.openedAtMs = nowMs;
    this.gates = why === undefined ? [] : [closedGate(ROOM_GATE, why, WHAT_TO_DO)];
    this.version++;
  }

  private tellWhenLong(why: string, nowMs: number): void {
    const isOpen = this.gates.length === 0;
    if (isOpen && nowMs - this.openedAtMs >= OPEN_MS_MIN) this.closedAtMs = nowMs;
    if (nowMs - this.closedAtMs < TELL_MS) return;
    const message = `tasks have waited for room on the disk for more than 10 minutes: ${why}; ${WHAT_TO_DO}`;
    this.env.alerts.report(ROOM_GATE, message, TELL_AGAIN_MS);
  }

  nextMs(): number {
    return this.gates.length > 0 ? this.lookAtMs : NEVER;
  }
}

export const worktreeRoom: MakePart = ({ env }) => new RoomGate(env);
