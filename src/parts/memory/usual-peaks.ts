/** What the runs of each agent usually need at their peak (bytes): from settings, then from the journal and from runs that are on. */
import { isCoding, type Settings } from "../../core/settings.ts";
import { searchBack } from "../../journal/read-back.ts";
import { learnPeak } from "./admit.ts";

/** A coding agent with its tools, until its records tell: most take less. */
const FIRST_BYTES = 2 * 1024 * 1024 * 1024;
const PEAK = "peak_memory_bytes";
const PEAK_LINE = /"agent_id":"([^"]+)".*"peak_memory_bytes":(\d+)/;
/** So many pieces of the journal are read at the start. */
const PIECES_MAX = 8;

export class UsualPeaks {
  private readonly first = new Map<string, number>();
  private readonly learned = new Map<string, number>();

  constructor({ agents }: Pick<Settings, "agents">) {
    for (const { name, kind, usual_memory_bytes: usual } of agents)
      this.first.set(name, usual ?? (isCoding({ kind }) ? FIRST_BYTES : 0));
  }

  of(agent: string): number {
    return this.learned.get(agent) ?? this.first.get(agent) ?? 0;
  }

  /** Learns from the end of a journal. @throws a system error when it cannot be read */
  readBack(events: string): void {
    const lines: string[] = [];
    let pieces = 0;
    for (const { line } of searchBack(events, [PEAK])) {
      if (line !== undefined) lines.push(line);
      else if (++pieces >= PIECES_MAX) break;
    }
    for (const line of lines.reverse()) this.readLine(line);
  }

  readLine(line: string): void {
    if (!line.includes(PEAK)) return;
    const [, agent, peak] = PEAK_LINE.exec(line) ?? [];
    if (agent !== undefined)
      this.learned.set(agent, learnPeak(this.learned.get(agent), Number(peak)));
  }

  /** A run of this agent has so much now. */
  atLeast(agent: string, bytes: number): void {
    if (bytes > this.of(agent)) this.learned.set(agent, bytes);
  }
}
