/** One open stream of a browser: the whole page first, then the blocks that have changed. It holds one page, whatever the browser reads. */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Route } from "./find-page.ts";
import type { Block, SentPage } from "./page.ts";

/** A browser that takes nothing for so long is gone, or sleeps (ms). */
const STUCK_MS = 30_000;

export interface Wanted {
  route: Route;
  query: URLSearchParams;
  /** The same for all streams that want the same page. */
  key: string;
}

export class EventStream {
  readonly wanted: Wanted;
  /** Of the page that was sent last. */
  watch: readonly string[] = [];
  /** Something has changed since. */
  isDirty = true;
  /** When its page was made last (monotonic ms). */
  madeMs = Number.NEGATIVE_INFINITY;
  private readonly response: ServerResponse;
  private head = "";
  private blocks: string[] | undefined;
  private lastId: string;
  private stuckSinceMs: number | undefined;

  /** @param lastId of the last event that the browser has got before */
  constructor(response: ServerResponse, wanted: Wanted, lastId: string) {
    this.response = response;
    this.wanted = wanted;
    this.lastId = lastId;
  }

  /** What was sent before has not been taken yet: nothing more is written until then. */
  get isFull(): boolean {
    return this.response.writableNeedDrain;
  }

  send(page: SentPage): void {
    const { blocks, ...head } = page;
    const texts = blocks.map((block) => JSON.stringify(block));
    const { at_ms: _at, again_ms: _again, ...said } = head;
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

  /** Says that the server is there. @returns false when the browser has taken nothing for long */
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
    // JSON has no line breaks of its own, so an event is never cut by what it holds.
    const lines = [`event: ${event}`, `data: ${JSON.stringify(data)}`];
    if (id !== undefined) lines.unshift(`id: ${id}`);
    this.response.write(`${lines.join("\n")}\n\n`);
  }
}
