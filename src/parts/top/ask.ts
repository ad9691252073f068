/** Makes the questions that come before a loss, and the notes that refuse a key. Pure. */

import { inert } from "../../text/inert.ts";
import { clock, money } from "./cells.ts";
import type { Row } from "./rows.ts";
import type { Around, Deed, Pressed, TopState } from "./state.ts";

/** For more tasks than this the person must type their number. */
const MANY = 50;

type Asked = Pick<Around, "nowMs" | "overview">;

function say(state: TopState, note: string): Pressed {
  return { state: { ...state, note } };
}

/** A retry loses nothing, so for one task it asks no question. */
export function askRetry(state: TopState, row: Row | undefined, around: Asked): Pressed {
  if (row === undefined || row.ids.length === 0) return say(state, "no task is chosen");
  if (row.shown.kind === "running") return say(state, "it runs; c ends it");
  if (row.shown.kind === "waiting") return say(state, "these wait already; nothing to retry");
  const { ids } = row;
  const deed: Deed = { does: "retry", ids };
  if (ids.length === 1) return { state, deed };
  return askMany(state, `Retry ${ids.length} tasks?`, deed, around);
}

export function askCancel(state: TopState, row: Row | undefined, around: Asked): Pressed {
  if (row === undefined || row.ids.length === 0) return say(state, "no task is chosen");
  const { shown, ids } = row;
  const [id = ""] = ids;
  if (shown.kind === "ended") return say(state, "it has ended already");
  if (shown.kind === "failed") return say(state, "it has failed already; r retries it");
  const end: Deed = { does: "cancel", ids, isFinal: true };
  if (shown.kind === "waiting") {
    const { count } = shown.group;
    if (count?.is_exact !== true || count.count !== ids.length)
      return say(state, "not all of these are listed here: open the group and choose a task");
    return askMany(state, `End ${ids.length} waiting tasks for good?`, end, around);
  }
  if (shown.kind !== "running")
    return confirm(state, `End ${inert(id)} for good?`, around, {
      y: end,
    });
  const { attempt, age_ms: ageMs, cost_usd_micro: cost } = shown.running;
  const after = ageMs === null ? "" : ` after ${clock(ageMs)}`;
  const spent = cost === null ? "" : ` and ${money(cost)}`;
  const text = `End run ${attempt} of ${inert(id)}${after}${spent}, for good?`;
  return confirm(state, text, around, {
    y: end,
    b: { does: "cancel", ids, isFinal: false },
  });
}

export function askAnswer(state: TopState, row: Row | undefined, { overview }: Asked): Pressed {
  const questions = overview?.questions ?? [];
  const chosen = row?.shown.kind === "question" ? row.shown.question : undefined;
  const question = chosen ?? (questions.length === 1 ? questions[0] : undefined);
  if (question === undefined)
    return say(
      state,
      questions.length === 0 ? "no question waits for an answer" : "choose a question in pane 4",
    );
  const { id } = question;
  const label = `answer ${inert(id)}`;
  return {
    state: { ...state, prompt: { kind: "input", what: "answer", label, text: "", id } },
  };
}

function confirm(
  state: TopState,
  text: string,
  { nowMs }: Asked,
  deeds: Readonly<Record<string, Deed>>,
): Pressed {
  return { state: { ...state, prompt: { kind: "confirm", text, askedMs: nowMs, deeds } } };
}

function askMany(state: TopState, text: string, deed: Deed, around: Asked): Pressed {
  const count = deed.does === "retry" || deed.does === "cancel" ? deed.ids.length : 0;
  if (count <= MANY) return confirm(state, text, around, { y: deed });
  return { state: { ...state, prompt: { kind: "number", text, count, typed: "", deed } } };
}
