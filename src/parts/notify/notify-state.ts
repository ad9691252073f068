/**
 * What notifications remember across restarts: how far the journals were read, what happened since the last message to each target, and
 * the message that is being sent. All of it is one document that is replaced as a whole. So a crash neither loses nor repeats news.
 */
import { having, isNumber, oneOf, recordOf, type Shape, shape } from "../../core/shape.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { Documents } from "../../host/document-store.ts";
import { statOf } from "../../host/regular-file.ts";
import type { Gathered, Message } from "./gathered.ts";

/** A place in a journal. */
export interface Place {
  ino: number;
  offset: number;
}

/** How far the journals were read. */
export interface Places {
  events: Place;
  alerts: Place;
}

export interface TargetState {
  /** The number of the last message. */
  n: number;
  gathered?: Gathered;
  /** The message that the receiver has not confirmed yet. */
  pending?: Message;
  /** How often `pending` was tried, the time of the next try (epoch ms), and the last error. */
  tries: number;
  next_at_ms: number;
  error?: string;
  /** When the last message was made, and when the receiver last confirmed one (epoch ms); 0 = never. */
  made_at_ms: number;
  sent_at_ms: number;
  /** The local date of the last morning report. */
  morning?: string;
}

export interface NotifyState extends Places {
  v: 1;
  /** True if tasks have ended since the last message about `drained`. */
  is_busy: boolean;
  /** By name of the target. */
  targets: Record<string, TargetState>;
}

/** The ends of the journals. A journal that does not exist yet will be read from its beginning. */
export function placesNow({ events, alerts }: Pick<StateTree, "events" | "alerts">): Places {
  return { events: endOf(events), alerts: endOf(alerts) };
}

function endOf(path: string): Place {
  const { ino = 0, size: offset = 0 } = statOf(path) ?? {};
  return { ino, offset };
}

const isPlace = having({ ino: isNumber, offset: isNumber });
const notifyState = shape({
  v: oneOf(1),
  events: isPlace,
  alerts: isPlace,
  targets: recordOf(having({ n: isNumber, tries: isNumber })),
}) as Shape<NotifyState>;
/** Its one document. When reading throws, the state is unknown. */
export const notifyStates = (stateDir: string, isDurable = false): Documents<NotifyState> =>
  new Documents(stateDir, "notify", notifyState, { isDurable });
export const STATE = "state";

export function newTarget(): TargetState {
  return { n: 0, tries: 0, next_at_ms: 0, made_at_ms: 0, sent_at_ms: 0 };
}
