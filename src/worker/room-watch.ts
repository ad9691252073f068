/** Keeps new work from starting while the disk has too little room, and reports when there is room again. */
import type { Clock } from "../core/clock.ts";
import { type DiskRoom, ROOM_LOOK_MS } from "../host/disk-room.ts";

export class RoomWatch {
  private timer: NodeJS.Timeout | undefined;

  /** @param onRoom called when there is room again and refused work can start */
  constructor(
    private readonly room: DiskRoom,
    private readonly clock: Clock,
    private readonly onRoom: () => void,
  ) {}

  /** False: nothing new may start. */
  get hasRoom(): boolean {
    const hasRoom = this.room.shortageAt(this.clock.monotonicMs()) === undefined;
    if (!hasRoom) this.timer ??= setTimeout(() => this.lookAgain(), ROOM_LOOK_MS);
    return hasRoom;
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private lookAgain(): void {
    this.timer = undefined;
    if (this.hasRoom) this.onRoom();
  }
}
