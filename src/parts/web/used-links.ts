/** Which links have acted, and what they did: `web/used/<nonce>.json`. A link acts once, whichever server gets it and dies. */
import { isoTime } from "../../core/iso-time.ts";
import { isNumber, isText, orNull, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { judgeSaved, savedSelf } from "../../host/identity.ts";

const used = shape({
  /** ISO 8601. */
  at: isText,
  /** What was asked for, such as `retry build`. */
  what: isText,
  /** The server that has taken it. */
  place: isText,
  pid: isNumber,
  start_ticks: isNumber,
  /** What came of it; null while it is on. */
  outcome: orNull(isText),
});
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;

export class UsedLinks {
  private readonly documents;

  constructor(stateDir: string) {
    this.documents = new Documents(stateDir, "web/used", used);
  }

  /**
   * Acts, unless this link has acted before. A server that died in the middle leaves it unused: the verbs refuse what is done already.
   * @returns what came of it, or undefined when the link was used before. @throws what `act` throws, a system error
   */
  async once(nonce: string, what: string, act: () => Promise<string>): Promise<string | undefined> {
    this.forget();
    const taken = { at: isoTime(Date.now()), what, ...savedSelf(), outcome: null };
    let isFree = false;
    await this.documents.update(nonce, (before) => {
      isFree = before === undefined || (before.outcome === null && judgeSaved(before) === "dead");
      return isFree ? taken : before;
    });
    if (!isFree) return undefined;
    const end = (outcome: string): void => this.documents.replace(nonce, { ...taken, outcome });
    try {
      const said = await act();
      end(said);
      return said;
    } catch (error) {
      end(error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  private forget(): void {
    for (const [name, { at }] of this.documents.readAll())
      if (Date.parse(at) < Date.now() - KEPT_MS) this.documents.remove(name);
  }
}
