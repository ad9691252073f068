/** What a part tells runs of coding agents: with whom they work, and what is new. Types only. */

/** What one run is told beside its task. */
export interface Briefing {
  /** To which its agent belongs. */
  readonly scope: { readonly project: string; readonly branch: string };
  /** Its standing instructions: who it is, who else is there, how it speaks to them. As things are now; at most 2 KiB. */
  standing(): string;
  /** What is new since the agent was told last, if it is told that. "" when there is nothing. @param bytesMax its longest size */
  news(bytesMax: number): string;
  note(what: BriefingNote): void;
  /** Resolves when what was noted is written, or cannot be. Never rejects. */
  flush(): Promise<void>;
}

export type BriefingNote =
  /** The session in which it works. */
  | { session_id: string }
  /** The program has shortened its context, so the model may have lost its standing instructions. */
  | "compacted"
  /** The model has read its standing instructions. */
  | "briefed";
