/**
 * Notices a flood of file events. libuv reads events until none is left, so a program that changes files faster than we read their
 * events would keep the event loop from everything else: timers, other files, the end.
 */

/**
 * The time that events may take in one turn of the event loop (ms). A full queue of the system (16,384 events) takes about 250 ms.
 * That can happen after many files were dropped at once, and is no flood.
 */
const TURN_MS = 500;
/** Reads the clock once in this many events. */
const CLOCK_EVERY = 64;

export class EventFlood {
  private count = 0;
  private sinceMs = 0;
  private turn: NodeJS.Immediate | undefined;

  /** Call this for each event. @returns true when the watch must be closed, so that the event loop goes on */
  note(): boolean {
    if (this.turn === undefined) {
      this.count = 0;
      this.sinceMs = performance.now();
      this.turn = setImmediate(() => {
        this.turn = undefined;
      });
      // An event alone keeps no process alive.
      this.turn.unref();
    }
    this.count++;
    return this.count % CLOCK_EVERY === 0 && performance.now() - this.sinceMs > TURN_MS;
  }
}
