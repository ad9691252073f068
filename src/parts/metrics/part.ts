/** Keeps `metrics.json` up to date while a supervisor runs. */
import { messageOf, systemCode } from "../../core/errors.ts";
import type { Part } from "../../supervisor/environment/part.ts";
import type { Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { Metrics } from "./metrics.ts";

/** The least time between two writes (ms). A write waits for the next tick and causes none by itself. */
const WRITE_MS = 2000;

class MetricsPart implements Part {
  private readonly metrics: Metrics;
  private writeAtMs = 0;

  constructor(private readonly host: Pick<PartHost, "env" | "journal">) {
    const { env, journal } = host;
    this.metrics = new Metrics(env.tree.metrics);
    journal.startAt(this.metrics.place);
    env.facts.on("journal:line", (line, event, record) => this.metrics.add(line, event, record));
  }

  work({ nowMs, dueMs }: Tick): void {
    if (dueMs < this.writeAtMs) return;
    this.writeAtMs = nowMs + WRITE_MS;
    this.write();
  }

  /** The last write also counts what the other services wrote to the journal while they closed. */
  close(): void {
    this.host.journal.readAll();
    this.write();
  }

  /** A full disk must not stop the supervisor: the next write holds all counts. */
  private write(): void {
    const { env, journal } = this.host;
    try {
      this.metrics.write(env.trays.clock.wallMs(), journal.place, journal.badCount);
    } catch (error) {
      env.alerts.report(
        `document:${systemCode(error)}`,
        `cannot write metrics.json: ${messageOf(error)}`,
      );
    }
  }
}

export const metrics: MakePart = (host) => new MetricsPart(host);
