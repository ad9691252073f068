/** Parses plans without blocking the process: a large plan is parsed in a separate thread. */
import { dirname, join } from "node:path";
import { Worker as Thread } from "node:worker_threads";
import { messageOf } from "../../../core/errors.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { isSource, pathOfEntry } from "../../../host/package.ts";
import { parseRoadmap, type RoadmapDocument } from "./document.ts";

/** A shorter text is parsed in this thread, which takes some milliseconds (UTF-16 units). */
const IN_PLACE_CHARS_MAX = 32 * 1024;

export interface LoadRequest {
  id: number;
  text: string;
}

/** Messages of the thread: the nodes in portions, so that receiving them never blocks for long, and then the rest. */
export type LoadReply =
  | { id: number; nodes: RoadmapNode[] }
  | { id: number; rest: Omit<RoadmapDocument, "nodes" | "text"> }
  | { id: number; failure: string };

interface Waiting {
  text: string;
  nodes: RoadmapNode[];
  resolve(doc: RoadmapDocument): void;
  reject(error: Error): void;
}

export class RoadmapLoader {
  private thread: Thread | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;

  /**
   * Returns the same as `parseRoadmap(text)`. Several calls may run at once.
   * @throws Error if the thread died; the next call starts another
   */
  load(text: string): Promise<RoadmapDocument> {
    if (text.length < IN_PLACE_CHARS_MAX)
      return new Promise((resolve) => resolve(parseRoadmap(text)));
    this.thread ??= this.startThread();
    const { thread } = this;
    const id = this.nextId++;
    // An idle thread must not keep the process alive, but one with a waiting caller must.
    if (this.waiting.size === 0) thread.ref();
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { text, nodes: [], resolve, reject });
      thread.postMessage({ id, text } satisfies LoadRequest);
    });
  }

  async close(): Promise<void> {
    const { thread } = this;
    this.fail(new Error("the loader was closed"));
    await thread?.terminate();
  }

  private startThread(): Thread {
    const entry = pathOfEntry("parts/plan/read/parse-thread");
    const thread = isSource
      ? new Thread(join(dirname(entry), "source-thread.mjs"), { workerData: entry })
      : new Thread(entry);
    thread.on("message", (reply: LoadReply) => this.take(thread, reply));
    thread.on("error", (error) =>
      this.fail(new Error(`reading the plan failed: ${messageOf(error)}`)),
    );
    thread.on("exit", () => {
      if (this.thread === thread) this.fail(new Error("the thread that reads the plan ended"));
    });
    return thread;
  }

  private take(thread: Thread, reply: LoadReply): void {
    const one = this.waiting.get(reply.id);
    if (one === undefined) return;
    if ("nodes" in reply) {
      for (const node of reply.nodes) one.nodes.push(node);
      return;
    }
    this.waiting.delete(reply.id);
    if (this.waiting.size === 0) thread.unref();
    if ("rest" in reply) one.resolve({ ...reply.rest, text: one.text, nodes: one.nodes });
    else one.reject(new Error(`reading the plan failed: ${reply.failure}`));
  }

  private fail(error: Error): void {
    this.thread = undefined;
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of all) one.reject(error);
  }
}
