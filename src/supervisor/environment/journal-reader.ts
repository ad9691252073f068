/** Reads the journal of events as it grows, and tells the services of its lines. */
import fs from "node:fs";
import { messageOf } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { JournalTail } from "../../journal/read.ts";
import type { Environment } from "./environment.ts";

type ReaderEnvironment = Pick<Environment, "alerts" | "facts" | "tree">;

/** Where reading goes on. */
export interface JournalPlace {
  ino: number;
  offset: number;
}

/** Our records begin with their event. */
const EVENT_FIRST = /^\{"event":"([a-z_]+)",/;
/** Of these events the whole record is read; of the others, the name. */
const PARSED: ReadonlySet<string> = new Set(["completed", "duplicate"]);

export class JournalReader {
  private readonly env: ReaderEnvironment;
  private tail: JournalTail | undefined;

  constructor(env: ReaderEnvironment) {
    this.env = env;
  }

  /** Without it, reading begins with what is written from now on. Before the first `read`. */
  startAt({ ino, offset }: JournalPlace): void {
    this.tail = new JournalTail(this.env.tree.events, offset, ino);
  }

  /** What comes after it was not read yet. */
  get place(): JournalPlace {
    const { ino, offset } = this.opened();
    return { ino, offset };
  }

  /** Lines that are no records. */
  get badCount(): number {
    return this.opened().counts.bad;
  }

  /** Reads a bounded piece. @returns true when there is more */
  read(): boolean {
    try {
      const lines = this.opened().nextLines();
      for (const line of lines) this.tell(line);
      return lines.length > 0;
    } catch (error) {
      // Tasks run without it: their records hold the results.
      this.env.alerts.report("journal", `cannot read the journal of events: ${messageOf(error)}`);
      return false;
    }
  }

  readAll(): void {
    while (this.read());
  }

  /** Lets go of the file; `place` still holds. */
  close(): void {
    this.tail?.close();
  }

  private opened(): JournalTail {
    if (this.tail === undefined) {
      const stats = fs.statSync(this.env.tree.events, { throwIfNoEntry: false });
      this.startAt({ ino: stats?.ino ?? 0, offset: stats?.size ?? 0 });
    }
    return this.tail as JournalTail;
  }

  private tell(line: string): void {
    const { facts } = this.env;
    const first = line.endsWith("}") ? EVENT_FIRST.exec(line)?.[1] : undefined;
    if (first !== undefined && !PARSED.has(first)) {
      facts.emit("journal:line", line, first, undefined);
      return;
    }
    const record = parseObject(line);
    const { event, status, task_id: id } = record ?? {};
    if (typeof event !== "string") this.opened().counts.bad++;
    else if (event === "completed" && status !== "failed" && typeof id === "string")
      facts.emit("journal:completed", id);
    facts.emit("journal:line", line, typeof event === "string" ? event : undefined, record);
  }
}
