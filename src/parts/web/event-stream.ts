/** One open stream to a browser. It sends the whole page first, then changed blocks. It never holds more than one page in memory. */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Route } from "./find-page.ts";
import type { Block, SentPage } from "./page.ts";

/** A browser that takes nothing for this long is gone, or sleeps (ms). */
const STUCK_MS = 30_000;

export interface Wanted {
  route: Route;
  query: URLSearchParams;
  /** Streams that want the same page have the same key. */
  key: string;
}

export class EventStream {
  /** The extra paths to watch for the page that was sent last. */
  watch: readonly string[] = [];
  /** True if something has changed since that page was made. */
  isDirty = true;
  /** When its page was made last (monotonic ms). */
  madeMs = Number.NEGATIVE_INFINITY;
  private head = "";
  private blocks: string[] | undefined;
  private stuckSinceMs: number | undefined;

  /** @param lastId the id of the last event that the browser received on an earlier stream */
  constructor(
    private readonly response: ServerResponse,
    readonly wanted: Wanted,
    private lastId: string,
  ) {}

  /** True while the browser has not taken earlier events. Until it has, nothing more is written. */
  get isFull(): boolean {
    return this.response.writableNeedDrain;
  }

  send(page: SentPage): void {
    const { blocks, ...head } = page;
    const texts = blocks.map((block) => JSON.stringify(block));
    const { again_ms: _again, ...said } = head;
    const headText = JSON.stringify(said);
    const before = this.blocks;
    const changed: [number, Block][] = blocks
      .map((block, at): [number, Block] => [at, block])
      .filter(([at]) => texts[at] !== before?.[at]);
    const isSame =
      changed.length === 0 && before?.length === blocks.length && headText === this.head;
    this.head = headText;
    this.blocks = texts;
    if (isSame) return;
    const id = createHash("sha256").update(headText).update(texts.join()).digest("base64url");
    if (before !== undefined) this.write("part", { ...head, count: blocks.length, changed }, id);
    else if (id === this.lastId) this.write("same", {}, id);
    else this.write("page", page, id);
    this.lastId = id;
  }

  /** Says that the server lives. @returns false when the browser has taken nothing for `STUCK_MS` */
  beat(nowMs: number): boolean {
    if (!this.isFull) {
      this.stuckSinceMs = undefined;
      this.write("beat", {});
      return true;
    }
    this.stuckSinceMs ??= nowMs;
    return nowMs - this.stuckSinceMs < STUCK_MS;
  }

  end(): void {
    this.response.destroy();
  }

  private write(event: string, data: object, id?: string): void {
    // JSON has no line breaks, so its content never cuts an event.
    const lines = [`event: ${event}`, `data: ${JSON.stringify(data)}`];
    if (id !== undefined) lines.unshift(`id: ${id}`);
    this.response.write(`${lines.join("\n")}\n\n`);
  }
}
