/** Reads the journal of events as it grows, and passes its lines to the services. */
import { messageOf } from "../../core/errors.ts";
import { statOf } from "../../host/regular-file.ts";
import { readEventLine } from "../../journal/event-line.ts";
import type { JournalPlace } from "../../journal/read-on.ts";
import { JournalTail } from "../../journal/tail.ts";
import type { Environment } from "./environment.ts";

type ReaderEnvironment = Pick<Environment, "alerts" | "facts" | "tree">;

export class JournalReader {
  private tail: JournalTail | undefined;

  constructor(private readonly env: ReaderEnvironment) {}

  /** Call before the first `read`. Without this call, reading begins at the end of the journal. */
  startAt({ ino, offset }: JournalPlace): void {
    this.tail = new JournalTail(this.env.tree.events, offset, ino);
  }

  /** The place up to which lines were read. */
  get place(): JournalPlace {
    const { ino, offset } = this.opened();
    return { ino, offset };
  }

  /** How many lines were no records. */
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
      // Tasks can run without the journal, because their records hold the results.
      this.env.alerts.report("journal", `cannot read the journal of events: ${messageOf(error)}`);
      return false;
    }
  }

  readAll(): void {
    while (this.read());
  }

  /** Closes the file; `place` is still valid. */
  close(): void {
    this.tail?.close();
  }

  private opened(): JournalTail {
    if (this.tail === undefined) {
      const stats = statOf(this.env.tree.events);
      this.startAt({ ino: stats?.ino ?? 0, offset: stats?.size ?? 0 });
    }
    return this.tail as JournalTail;
  }

  private tell(line: string): void {
    const { facts } = this.env;
    const { event, record } = readEventLine(line);
    if (event === undefined) this.opened().counts.bad++;
    else if (event === "completed" && record?.["status"] !== "failed") {
      const id = record?.["task_id"];
      if (typeof id === "string") facts.emit("journal:completed", id);
    }
    facts.emit("journal:line", line, event, record);
  }
}
