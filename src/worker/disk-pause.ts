/** What keeps a worker from claiming because of the disk: a pause after the disk refused a step, and too little room. */
import type { Clock } from "../core/clock.ts";
import { systemCode } from "../core/errors.ts";
import { type DiskRoom, ROOM_LOOK_MS } from "../host/disk-room.ts";
import { say } from "../host/say.ts";

/** Length of the first pause (ms); it is doubled up to the second value. */
const PAUSE_MS = [100, 5000] as const;

/** Pauses claiming after the disk refused a claim or a settlement. */
export class DiskPause {
  private pauseMs: number = PAUSE_MS[0];
  private timer: NodeJS.Timeout | undefined;
  private isLifted = false;
  private told = "";

  /** @param onOver called when the refused step can be tried again */
  constructor(private readonly onOver: () => void) {}

  get isOn(): boolean {
    return this.timer !== undefined && !this.isLifted;
  }

  /** @param what the step that failed, for people: "settle a" */
  begin(what: string, error: unknown): void {
    if (this.timer !== undefined) return;
    this.isLifted = false;
    this.tell(what, systemCode(error) || String(error));
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.pauseMs = Math.min(this.pauseMs * 2, PAUSE_MS[1]);
      this.onOver();
    }, this.pauseMs);
  }

  /** Called when the disk refuses only some steps: other tasks can be claimed, and the pause before the refused ones stays as long. */
  lift(): void {
    this.isLifted = true;
  }

  /** Called when the disk works again: the next pause is short. */
  shorten(): void {
    this.pauseMs = PAUSE_MS[0];
    this.told = "";
  }

  /** Prints the reason, but not the same one for hours. */
  private tell(what: string, why: string): void {
    const isLongest = this.pauseMs === PAUSE_MS[1];
    const words = `(${why}); trying again ${isLongest ? "every" : "in"} ${this.pauseMs} ms`;
    if (words === this.told) return;
    this.told = words;
    say(`cannot ${what} yet ${words}`);
  }
}

/** Keeps new work from starting while the disk has too little room, and reports when there is room again. */
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
