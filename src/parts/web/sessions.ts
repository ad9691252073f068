/**
 * Knows which browsers may read the pages. A link holds a code, which works once and for a minute. The browser exchanges it for a
 * session. A session has two secrets: a cookie, and a key that every request for data sends in a header. Browsers send cookies to
 * all ports of a host, so another server on this machine may see the cookie. It does not see the key.
 */
import { randomBytes } from "node:crypto";
import { isSame, WrongOnes } from "./secrets.ts";

const SECRET_BYTES = 24;
const CODE_MS = 60_000;
/** After this many wrong ones in a minute the server tells further wrong ones to wait. */
const WRONG_CODES_MAX = 5;
const WRONG_KEYS_MAX = 30;
/** The oldest session ends when there are more. */
const SESSIONS_MAX = 20;

export interface Session {
  /** The secret in the cookie. */
  id: string;
  /** The secret in the header. */
  key: string;
}

export class Sessions {
  private readonly open: Session[] = [];
  private code: { text: string; untilMs: number } | undefined;
  private readonly wrongCodes: WrongOnes;
  private readonly wrongKeys: WrongOnes;

  /** @param nowMs a clock that is never set back @param isLeft whether `web --link` has left this code */
  constructor(
    private readonly nowMs: () => number = () => performance.now(),
    private readonly isLeft: (code: string) => boolean = () => false,
  ) {
    this.wrongCodes = new WrongOnes(WRONG_CODES_MAX, nowMs);
    this.wrongKeys = new WrongOnes(WRONG_KEYS_MAX, nowMs);
  }

  /** Makes the code of a new link. The code before it stops working. */
  newCode(): string {
    const text = secret();
    this.code = { text, untilMs: this.nowMs() + CODE_MS };
    return text;
  }

  /** "later" after too many wrong codes. A right one works even then, so that no other user can lock the owner out. */
  exchange(code: string): Session | "wrong" | "later" {
    const nowMs = this.nowMs();
    const isOwn =
      this.code !== undefined && nowMs < this.code.untilMs && isSame(code, this.code.text);
    if (isOwn || this.isLeft(code)) {
      if (isOwn) this.code = undefined;
      const session = { id: secret(), key: secret() };
      this.open.push(session);
      if (this.open.length > SESSIONS_MAX) this.open.shift();
      return session;
    }
    return this.wrongCodes.isOneTooMany() ? "later" : "wrong";
  }

  /** Like `isOpen`, but counts wrong secrets. "later" after too many wrong ones; a right one passes even then. */
  check(ids: readonly string[], key: string | undefined): "open" | "wrong" | "later" {
    if (this.isOpen(ids, key)) return "open";
    if (ids.length === 0 && key === undefined) return "wrong";
    return this.wrongKeys.isOneTooMany() ? "later" : "wrong";
  }

  /** @param ids the values of the cookie. One of them must be that of the session with this key */
  isOpen(ids: readonly string[], key: string | undefined): boolean {
    if (key === undefined) return false;
    return this.open.some((one) => isSame(key, one.key) && ids.some((id) => isSame(id, one.id)));
  }
}

function secret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}
