/** The gate of tasks for whose worktrees there is no room. It opens by itself. */
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import type { Part, StartLimit, StatusSource } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { DiskRoom, ROOM_GATE } from "./disk-room.ts";

const LOOK_MS = 500;

class RoomGate implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  gates: readonly ClosedGate[] = [];
  private readonly room: DiskRoom;
  private lookAtMs = 0;

  constructor({ tree, settings, trays }: PartHost["env"]) {
    this.room = new DiskRoom(tree, settings, trays);
  }

  work({ nowMs }: Tick): void {
    if (nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    const why = this.room.waiting();
    if (why === this.gates[0]?.why) return;
    const todo =
      "make room on the disk: `mailchute worktrees ls` shows what each worktree holds, `clean ID` saves that and removes it. Or wait for tasks that run";
    this.gates = why === undefined ? [] : [closedGate(ROOM_GATE, why, todo)];
    this.version++;
  }

  nextMs(): number {
    return this.gates.length > 0 ? this.lookAtMs : NEVER;
  }
}

export const worktreeRoom: MakePart = ({ env }) => new RoomGate(env);
