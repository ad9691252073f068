/** Runs calls about one dispatch one after the other, and tells their errors. */
import { BadMessage } from "../protocol/message-codec.ts";
import type { Delivery } from "../protocol/ports.ts";

export class Turns {
  private readonly turns = new Map<string, Promise<void>>();

  constructor(private readonly tell: (message: string) => void) {}

  /** Never rejects. The caller calls again later what failed. */
  inTurn(id: string, act: () => Promise<void>): Promise<void> {
    const before = this.turns.get(id) ?? Promise.resolve();
    const turn = before.then(act).catch((error: unknown) => this.trouble(error));
    this.turns.set(id, turn);
    void turn.then(() => {
      if (this.turns.get(id) === turn) this.turns.delete(id);
    });
    return turn;
  }

  /** Resolves when all calls that have begun have ended. */
  async over(): Promise<void> {
    await Promise.all(this.turns.values());
  }

  /** Decodes a message. Tells a bad one, and returns undefined for it. */
  decoded<T>(what: string, decode: () => T): T | undefined {
    try {
      return decode();
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      this.tell(`refused a ${what}: ${error.message}`);
      return undefined;
    }
  }

  trouble(error: unknown): void {
    this.tell(error instanceof Error ? error.message : String(error));
  }
}

/** Handles a message. If that fails, the broker delivers the message again. */
export async function orLater(delivery: Delivery, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    await delivery.later();
    throw error;
  }
}
