/** Reads a line of the journal of events. Of most lines it reads only the event's name, because parsing takes ten times as long. Pure. */
import { parseObject } from "../core/json-object.ts";

/** Our records begin with their event. */
const EVENT_FIRST = /^\{"event":"([a-z_]+)",/;
/** Events whose whole record is parsed. */
const PARSED: ReadonlySet<string> = new Set(["completed", "duplicate"]);

export interface EventLine {
  /** Undefined: the line is no record. */
  event: string | undefined;
  /** Undefined when only the name was read. */
  record: Readonly<Record<string, unknown>> | undefined;
}

export function readEventLine(line: string): EventLine {
  const first = line.endsWith("}") ? EVENT_FIRST.exec(line)?.[1] : undefined;
  if (first !== undefined && !PARSED.has(first)) return { event: first, record: undefined };
  const record = parseObject(line);
  const event = record?.["event"];
  return { event: typeof event === "string" ? event : undefined, record };
}
