/** The port of a kind of coding agent: how its program is started and understood. Shapes only. */
import type { AgentSettings } from "../../core/settings.ts";
import type { ReadLine, TurnFault } from "./facts.ts";

/** How a program is given its packet. */
export type ProgramInput =
  /** As an argument. It has no standard input. */
  | { kind: "none" }
  /** On standard input, which is closed after it. */
  | { kind: "text"; text: string }
  /** As the first message on standard input, which stays open for more. */
  | { kind: "frames"; frame: (uuid: string, text: string, priority?: "next") => string };

/** How one kind of coding agent is started and understood. */
export interface AgentProgram {
  newReader(): ReadLine;
  /** @param sessionId the session that is resumed; undefined: a new one */
  argv(settings: AgentSettings, packet: string, sessionId: string | undefined): string[];
  input(packet: string): ProgramInput;
  /** Variables that the program must not inherit, as those of another agent's session. */
  isForeignVariable(name: string): boolean;
  /** Why it did not even begin, by the end of what it wrote to stderr; undefined when that says nothing. */
  faultOfLastWords(lastWords: string): TurnFault | undefined;
  /** Folders beside its own that its sandbox lets it write to; empty when it has no sandbox. */
  writableFolders(settings: AgentSettings): string[];
  /** True: a session that it resumes has the id that was asked for. With another id it has begun anew and knows nothing. */
  readonly keepsSessionId?: boolean;
  /** A file of its own in which it says more than in its stream, as about its quota. */
  readonly sideStream?: SideStream;
}

/** A file of the program's own. It belongs to the program, and may be missing. */
export interface SideStream {
  /** Where it is; undefined while it is not there. */
  find(settings: AgentSettings, sessionId: string): string | undefined;
  newReader(): ReadLine;
}
