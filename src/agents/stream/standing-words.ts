/**
 * Decides when a run gets its standing instructions: in its packet, and again with the next message after each time its context was
 * compacted. Nothing is written to disk: after a kill, the next run gets them in its packet.
 */
import type { Briefing } from "../briefing.ts";

export class StandingWords {
  private compactions = 0;
  /** The latest message with the instructions, and how many compactions came before it. */
  private told: { uuid: string; compactions: number; isRead: boolean };

  constructor(
    private readonly briefing: Briefing | undefined,
    packetUuid: string,
  ) {
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

  /** Called when the model has read this message. */
  noteRead(uuid: string): void {
    const { told } = this;
    if (uuid !== told.uuid || told.compactions !== this.compactions || told.isRead) return;
    told.isRead = true;
    this.briefing?.note("briefed");
  }

  /** Called when the program does not pass this message on to the model. */
  noteWithdrawn(uuid: string): void {
    if (uuid === this.told.uuid && !this.told.isRead) this.told.compactions = -1;
  }
}
