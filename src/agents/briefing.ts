/** What a part tells runs of coding agents: who they work with, and what is new. Types only. */

/** What one run is told besides its task. */
export interface Briefing {
  /** The scope that its agent belongs to. */
  readonly scope: { readonly project: string; readonly branch: string };
  /** Its current standing instructions: who it is, who else is there, and how it sends messages to them. At most 2 KiB. */
  standing(): string;
  /** The news since the agent was last told; "" when there are none, or it gets no news. @param bytesMax the largest size of the text */
  news(bytesMax: number): string;
  note(what: BriefingNote): void;
  /** Resolves when the notes are written, or cannot be written. Never rejects. */
  flush(): Promise<void>;
}

export type BriefingNote =
  /** The session that the agent works in. */
  | { session_id: string }
  /** The program has shortened its context, so the model may have lost its standing instructions. */
  | "compacted"
  /** The model has read its standing instructions. */
  | "briefed";
