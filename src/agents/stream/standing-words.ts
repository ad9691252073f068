/**
 * When a run is told its standing instructions: in its packet, and once more with the next message after each time its context was
 * compacted. A run whose process is killed needs no memory of that, because the next run has a packet.
 */
import type { Briefing } from "../briefing.ts";

export class StandingWords {
  private readonly briefing: Briefing | undefined;
  private compactions = 0;
  /** The latest message that had them, and how many compactions came before it. */
  private told: { uuid: string; compactions: number; isRead: boolean };

  constructor(briefing: Briefing | undefined, packetUuid: string) {
    this.briefing = briefing;
    this.told = { uuid: packetUuid, compactions: 0, isRead: false };
  }

  noteCompacted(): void {
    this.compactions++;
    this.briefing?.note("compacted");
  }

  /** The text of a message that is about to be written, with the instructions if they are due. */
  addTo(uuid: string, text: string): string {
    if (this.briefing === undefined || this.told.compactions === this.compactions) return text;
    this.told = { uuid, compactions: this.compactions, isRead: false };
    return `${this.briefing.standing()}\n\n${text}`;
  }

  /** The model has read this message. */
  noteRead(uuid: string): void {
    const { told } = this;
    if (uuid !== told.uuid || told.compactions !== this.compactions || told.isRead) return;
    told.isRead = true;
    this.briefing?.note("briefed");
  }

  /** The program does not pass this message on. */
  noteWithdrawn(uuid: string): void {
    if (uuid === this.told.uuid && !this.told.isRead) this.told.compactions = -1;
  }
}
