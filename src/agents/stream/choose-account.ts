/**
 * Chooses the account with which a run of a coding agent works: the first one of its agent whose gate is open. A session lives in
 * the home of the account that began it. It goes on there, also when it has to wait a little; when its account is closed for long,
 * a new session on the next account takes over and is told what the old one left.
 */
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { Settings } from "../../core/settings.ts";
import { AccountGate, type Refused, waitFor } from "./account-gate.ts";
import type { SessionDocument } from "./session-file.ts";

/** A session waits so long for its own account, which costs less than to begin anew (ms). */
const SESSION_WAIT_MS = 5 * 60_000;

export type Entered =
  | { gate: AccountGate; session: SessionDocument }
  | { refusal: AttemptOutcome; gate?: undefined };

export interface AccountChoice {
  /** Of the agent, the best first. */
  accounts: readonly string[];
  all: Settings["accounts"];
  /** Of the run's lease. */
  owner: string;
}

/** @param fresh a session that knows nothing yet; the chosen account is put into it */
export async function enterAccount(
  { accounts, all, owner }: AccountChoice,
  session: SessionDocument,
  fresh: SessionDocument,
): Promise<Entered> {
  const isBound = session.session_id !== null;
  const order = isBound
    ? [session.account, ...accounts.filter((one) => one !== session.account)]
    : accounts;
  let soonest: AttemptOutcome | undefined;
  let soonestMs = Number.POSITIVE_INFINITY;
  for (const account of order) {
    const gate = new AccountGate(account, owner, all);
    const refused = await gate.enter();
    const isOwn = isBound && account === session.account;
    if (refused === undefined) {
      const isSame = account === session.account;
      const anew = { ...fresh, account, hand_off: session.hand_off };
      return { gate, session: isSame ? session : anew };
    }
    if ("hindrance" in refused) return { refusal: refused.hindrance };
    const nowMs = Date.now();
    const wait = waitFor(account, refused, nowMs);
    if (isOwn && accounts.length > 1 && staysWith(session, refused, nowMs)) {
      // No gate holds it: another account of its agent may be open, and it is not to go there.
      const { hold: _gate, ...later } = wait;
      return { refusal: later };
    }
    if (refused.untilMs >= soonestMs) continue;
    soonestMs = refused.untilMs;
    soonest = wait;
  }
  return { refusal: soonest ?? { kind: "released", message: "its agent has no account" } };
}

/** A task that goes on with what another one began has no words of its own about that: it needs that session. */
function staysWith(session: SessionDocument, refused: Refused, nowMs: number): boolean {
  return (
    session.untold === true || ("untilMs" in refused && refused.untilMs - nowMs <= SESSION_WAIT_MS)
  );
}
