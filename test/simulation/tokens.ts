/** Stands in for src/mailbox/files/random.ts: names that depend on who asks, and for the how-manieth time, and on nothing else. */

let source: (length: number) => string = () => "0";

/** From here on, tokens come from `next`. */
export function useTokens(next: (length: number) => string): void {
  source = next;
}

export function randomToken(length: number): string {
  return source(length);
}

export function newId(_wallMs: number, prefix = "t"): string {
  return `${prefix}-${source(5)}`;
}
