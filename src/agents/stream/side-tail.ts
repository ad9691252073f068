/** Follows a file that the program writes for itself. The file has facts that the stream lacks. */
import type { AgentSettings } from "../../core/settings.ts";
import { statOf } from "../../host/regular-file.ts";
import type { SideStream } from "./agent-program.ts";
import type { Fact } from "./facts.ts";
import { LineTail } from "./line-tail.ts";

export class SideTail {
  private tail: LineTail | undefined;

  /** @param resumed the session that is resumed. What its file holds at the start belongs to earlier runs */
  constructor(
    private readonly stream: SideStream,
    private readonly settings: AgentSettings,
    resumed: string | undefined,
    private readonly onFacts: (line: string, facts: readonly Fact[]) => void,
  ) {
    const path = resumed === undefined ? undefined : stream.find(settings, resumed);
    const size = path === undefined ? 0 : (statOf(path)?.size ?? 0);
    if (path !== undefined) this.tail = this.open(path, size);
  }

  read(sessionId: string | undefined): void {
    if (this.tail === undefined && sessionId !== undefined) {
      const path = this.stream.find(this.settings, sessionId);
      if (path !== undefined) this.tail = this.open(path, 0);
    }
    this.tail?.read();
  }

  end(sessionId: string | undefined): void {
    this.read(sessionId);
    this.tail?.end();
  }

  private open(path: string, from: number): LineTail {
    const read = this.stream.newReader();
    return new LineTail(path, from, (line) => this.onFacts(line, read(line)));
  }
}
