/**
 * Works on many orders so that one that fails holds up no other. An order that fails is told, and tried again after a pause that doubles
 * each time. Every loop over orders that others have left uses it. Pure: the clock and the alerts come in from outside.
 */
import { messageOf } from "./errors.ts";

/** The pause after the first failure, and the longest one (ms). */
const AGAIN_MS = { first: 1000, max: 60_000 } as const;
/** After this many failures in a row an order counts as stuck. */
const STUCK = 3;

export interface ApartPorts {
  /** What the orders are, for the text: `the landing of`. */
  readonly what: string;
  /** Monotonic ms. */
  readonly nowMs: () => number;
  /** @param key the same for each failure of an order */
  readonly tell: (key: string, message: string) => void;
}

export class Apart {
  private readonly failed = new Map<string, { count: number; againAtMs: number }>();

  constructor(private readonly ports: ApartPorts) {}

  /** True for an order that has failed several times in a row. It is still tried again, and nothing should wait for it. */
  isStuck(key: string): boolean {
    return (this.failed.get(key)?.count ?? 0) >= STUCK;
  }

  /** Works on each order, one after the other. An order that failed is left out until its pause is over. Never rejects. */
  async each<T>(
    orders: Iterable<T>,
    keyOf: (order: T) => string,
    work: (order: T) => unknown,
  ): Promise<void> {
    for (const [key, order] of this.due(orders, keyOf))
      try {
        await work(order);
        this.failed.delete(key);
      } catch (error) {
        this.noteFailure(key, error);
      }
  }

  /** The same without waiting for anything. */
  eachNow<T>(orders: Iterable<T>, keyOf: (order: T) => string, work: (order: T) => void): void {
    for (const [key, order] of this.due(orders, keyOf))
      try {
        work(order);
        this.failed.delete(key);
      } catch (error) {
        this.noteFailure(key, error);
      }
  }

  /** The orders with no pause, with their keys. At the end it forgets those that are gone. */
  private *due<T>(orders: Iterable<T>, keyOf: (order: T) => string): Generator<[string, T]> {
    const keys = new Set<string>();
    // A copy, because the work on an order may remove it.
    const all = [...orders];
    for (const order of all) {
      const key = keyOf(order);
      keys.add(key);
      if (!this.isPaused(key)) yield [key, order];
    }
    for (const key of this.failed.keys()) if (!keys.has(key)) this.failed.delete(key);
  }

  private isPaused(key: string): boolean {
    return this.ports.nowMs() < (this.failed.get(key)?.againAtMs ?? Number.NEGATIVE_INFINITY);
  }

  private noteFailure(key: string, error: unknown): void {
    const count = (this.failed.get(key)?.count ?? 0) + 1;
    const pauseMs = Math.min(AGAIN_MS.max, AGAIN_MS.first * 2 ** (count - 1));
    this.failed.set(key, { count, againAtMs: this.ports.nowMs() + pauseMs });
    const { what } = this.ports;
    const seconds = Math.round(pauseMs / 1000);
    this.ports.tell(
      `${what}:${key}`,
      `${what} ${key}: ${messageOf(error)}; the others go on, and it is tried again in ${seconds} s`,
    );
  }
}
