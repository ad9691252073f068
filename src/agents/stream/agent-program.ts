/** The port of a kind of coding agent: how its program is started, and how its output is read. Types only. */
import type { AgentSettings } from "../../core/settings.ts";
import type { ReadLine, TurnFault } from "./facts.ts";

/** What is known about a run when its program is about to start. */
export interface RunStart {
  settings: AgentSettings;
  packet: string;
  /** The session that is resumed; undefined: a new one. */
  sessionId: string | undefined;
  /** Where it runs. */
  cwd: string;
  /** The address in the place of that of a service, for a program that reads it from its arguments; undefined without a meter. */
  through?: ((address: string) => string) | undefined;
}

/** How a program is given its packet. */
export type ProgramInput =
  /** As an argument. The program has no standard input. */
  | { kind: "none" }
  /** On standard input, which is closed after it. */
  | { kind: "text"; text: string }
  /** On standard input, which stays open for more. */
  | { kind: "dialogue"; dialogue: Dialogue };

/** The first message of a dialogue. */
export interface Opening {
  uuid: string;
  packet: string;
  /** Messages that an earlier run of the session may have got. For each, a fact `message` says whether it was read or is cancelled. */
  earlier: readonly string[];
}

/** Our side of a conversation with a program while it runs. */
export interface Dialogue {
  /** Reads a line of the program, and answers if the program waits for an answer. */
  readonly read: ReadLine;
  /** Whether a message can be passed to the program now. */
  readonly isReady: boolean;
  /** @param write writes to the standard input of the program */
  begin(opening: Opening, write: (text: string) => void): void;
  /** Passes a message on, even in the middle of a turn. */
  say(uuid: string, text: string): void;
  /** Asks it to end its turn, before it is stopped. It begins no other turn. False: it has no turn that it could end. */
  interrupt(): boolean;
  /** True if the program ends when its input ends: that is tried before a signal. */
  readonly endsAtEof?: boolean;
  /** Asks it to end its turn, so that it gets a message after that. False: it cannot do that now. */
  cut(): boolean;
}

/** How one kind of coding agent is started, and how its output is read. */
export interface AgentProgram {
  newReader(): ReadLine;
  argv(start: RunStart): string[];
  input(start: RunStart): ProgramInput;
  /** Variables that the program must not inherit, such as those of another agent's session. */
  isForeignVariable(name: string): boolean;
  /** Why it did not begin, by the end of its stderr. Undefined when the stderr does not say why. */
  faultOfLastWords(lastWords: string): TurnFault | undefined;
  /** Other folders that its sandbox lets it write to. Empty when it has no sandbox. */
  writableFolders(settings: AgentSettings): string[];
  /** The settings with which its sandbox lets it write to this folder, too. Left out: it has no sandbox. */
  withWritable?(settings: AgentSettings, folder: string): AgentSettings;
  /** True if it says nothing when its service refuses it for its quota. A silence without a tool then counts as that, a few times. */
  readonly isSilentAtLimit?: boolean;
  /** True if a resumed session keeps its id. If the id differs, the program has begun a new session that knows nothing. */
  readonly keepsSessionId?: boolean;
  /** True if the program can say which messages its session has got. */
  readonly knowsMessages?: boolean;
  /** What the program itself keeps of a session. It decides what a resumed session knows. Left out: nothing that we can read. */
  readonly record?: SessionRecord;
  /** A file that the program writes for itself, with facts that its stream lacks, such as its quota. */
  readonly sideStream?: SideStream;
}

/** The program's own record of a session, a file of lines. It belongs to the program, and may be missing. */
export interface SessionRecord {
  /** The path of the file; undefined while it does not exist. */
  find(settings: AgentSettings, sessionId: string): string | undefined;
  /** The message to the model on this line: its uuid if it is one of ours, and its text. Undefined when the line holds no message. */
  readMessage(line: string): { uuid?: string; text?: string } | undefined;
}

/** A file of the program's own. It belongs to the program, and may be missing. */
export interface SideStream {
  /** The path of the file; undefined while it does not exist. */
  find(settings: AgentSettings, sessionId: string): string | undefined;
  newReader(): ReadLine;
}
