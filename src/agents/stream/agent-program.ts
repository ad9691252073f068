/** The port of a kind of coding agent: how its program is started, and how its output is read. Types only. */
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

/** How one kind of coding agent is started, and how its output is read. */
export interface AgentProgram {
  newReader(): ReadLine;
  /** @param sessionId the session that is resumed; undefined: a new one */
  argv(settings: AgentSettings, packet: string, sessionId: string | undefined): string[];
  input(packet: string): ProgramInput;
  /** Variables that the program must not inherit, such as those of another agent's session. */
  isForeignVariable(name: string): boolean;
  /** Why it did not begin, from the end of its stderr. Undefined when that does not say why. */
  faultOfLastWords(lastWords: string): TurnFault | undefined;
  /** Other folders to which its sandbox lets it write. Empty when it has no sandbox. */
  writableFolders(settings: AgentSettings): string[];
  /** True if a resumed session keeps its id. If the id differs, the program has begun a new session that knows nothing. */
  readonly keepsSessionId?: boolean;
  /** A file that the program writes for itself, with facts that its stream lacks, such as its quota. */
  readonly sideStream?: SideStream;
}

/** A file of the program's own. It belongs to the program, and may be missing. */
export interface SideStream {
  /** The path of the file; undefined while it does not exist. */
  find(settings: AgentSettings, sessionId: string): string | undefined;
  newReader(): ReadLine;
}
