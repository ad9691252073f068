/** Lets a half of a bridge look at its tree, one look at a time. A failed or slow look in one half does not delay the other. */

interface Half {
  /** It does not look before this time (monotonic ms). */
  readonly restsUntilMs: number;
  look(): Promise<void>;
}

export class Looker {
  private isLooking = false;
  private isToLookAgain = false;
  private isOver = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly half: Half,
    private readonly onTrouble: (error: unknown) => void,
  ) {}

  /** Looks now, unless a look is under way. Never rejects. */
  async look(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      await this.half.look();
    } catch (error) {
      this.onTrouble(error);
    } finally {
      this.isLooking = false;
    }
    if (!this.isToLookAgain) return;
    this.isToLookAgain = false;
    this.wake();
  }

  /** Called when something in the tree has changed. It looks when its rest is over. */
  wake(): void {
    if (this.isOver) return;
    if (this.isLooking) {
      this.isToLookAgain = true;
      return;
    }
    const restMs = this.half.restsUntilMs - performance.now();
    if (restMs <= 0) void this.look();
    else
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.wake();
      }, restMs);
  }

  stop(): void {
    this.isOver = true;
    clearTimeout(this.timer);
  }
}
