/**
 * Chooses the account for a run of a coding agent: the first account of its agent whose gate is open. A session lives in the home of
 * the account that began it. It goes on there, even if it must wait a little. When its account is closed for long, a new session on
 * the next account takes over, and is told what the old one left.
 */
import { SESSION_WAIT_MS } from "../../core/limits.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { Settings } from "../../core/settings.ts";
import { AccountGate, type Refused, waitFor } from "./account-gate.ts";
import type { SessionDocument } from "./session-file.ts";

export type Entered =
  | { gate: AccountGate; session: SessionDocument }
  | { refusal: AttemptOutcome; gate?: undefined };

export interface AccountChoice {
  /** The accounts of the agent, the best first. */
  accounts: readonly string[];
  all: Settings["accounts"];
  /** The owner of the run's lease. */
  owner: string;
}

/** @param fresh a session that knows nothing yet; it gets the chosen account */
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
      // It waits without a gate: another account of its agent may be open, and this session must not go there.
      const { hold: _gate, ...later } = wait;
      return { refusal: later };
    }
    if (refused.untilMs >= soonestMs) continue;
    soonestMs = refused.untilMs;
    soonest = wait;
  }
  return { refusal: soonest ?? { kind: "released", message: "its agent has no account" } };
}

/** Whether the run waits for the session's account. A task that continues the session of another task always needs that session. */
function staysWith(session: SessionDocument, refused: Refused, nowMs: number): boolean {
  const isContinued = session.untold === true && session.continues !== undefined;
  return isContinued || ("untilMs" in refused && refused.untilMs - nowMs <= SESSION_WAIT_MS);
}
