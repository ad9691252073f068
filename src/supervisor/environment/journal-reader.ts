/** Reads the journal of events as it grows, and tells the services of its lines. */
import { messageOf } from "../../core/errors.ts";
import type { Environment } from "./environment.ts";

/** Reads a bounded piece: ids of tasks that completed, and whether there is more. */
interface Source {
  read(): { completedIds: string[]; hasMore: boolean };
}

export class JournalReader {
  private readonly env: Pick<Environment, "alerts" | "facts">;
  private readonly source: Source;

  constructor(env: Pick<Environment, "alerts" | "facts">, source: Source) {
    this.env = env;
    this.source = source;
  }

  /** Reads a bounded piece. @returns true when there is more */
  read(): boolean {
    const { alerts, facts } = this.env;
    try {
      const { completedIds, hasMore } = this.source.read();
      for (const id of completedIds) facts.emit("journal:completed", id);
      return hasMore;
    } catch (error) {
      // Tasks run without it: their records say what became of them.
      alerts.report("journal", `cannot read the journal of events: ${messageOf(error)}`);
      return false;
    }
  }

  readAll(): void {
    while (this.read());
  }
}
