/** Finds out what happened in a scope since the last look: messages, exits, wake-ups, and changes of its agents. Reads only. */
import { isoTime } from "../../../core/iso-time.ts";
import { type AgentRecord, listAgents } from "../agents/agents.ts";
import { HUMAN } from "../scope/scope.ts";
import { readCursor } from "../store/cursors.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { MessageReader, type Numbered } from "../store/read-messages.ts";
import { readWakes, type WakeRecord } from "../store/wake-log.ts";

/** Each item has its time (ISO 8601), and the agent that it is about. */
export type News = { t: string; agent: string } & (
  | { event: "message" | "exit"; message: Numbered }
  /** `woken`: a task was made to wake the agent. `told`: it got mail while it was at work. */
  | { event: "woken" | "told"; wake: WakeRecord }
  /** The agent has provably read its mail up to this number. */
  | { event: "read"; upto: number }
  | { event: "new" | "status" | "archived"; record: AgentRecord }
);

interface Known {
  record: AgentRecord | undefined;
  /** How far the agent has read, and when this was noted (unix seconds). */
  cursor: { upto: number; at: number };
  /** The last reported wake-up, as JSON; undefined: none. */
  wake: string | undefined;
}

export class ScopeNews {
  private readonly reader: MessageReader;
  private known: Map<string, Known>;
  /** Unix seconds. */
  private readonly startedAt = Math.floor(Date.now() / 1000);

  /** Events before this call are no news. */
  constructor(private readonly folder: MailFolder) {
    this.reader = MessageReader.atEnd(folder);
    this.known = this.readAll();
  }

  /** Sorted in a possible order of events: effects of a message come after it. */
  next(): News[] {
    const messages: News[] = [...this.reader.next()].map((message) => ({
      t: message.t,
      agent: message.from_agent,
      event: message.type === "exit" ? "exit" : "message",
      message,
    }));
    const before = this.known;
    this.known = this.readAll();
    const changes = [...this.known].flatMap(([agent, now]) =>
      changesOf(agent, before.get(agent), now, this.startedAt),
    );
    const wakes = [...this.known].flatMap(([agent, now]) =>
      wakesSince(this.folder, agent, before.get(agent)?.wake, now.wake),
    );
    return [...messages, ...wakes, ...changes];
  }

  private readAll(): Map<string, Known> {
    const { folder } = this;
    const read = (name: string, record: AgentRecord | undefined): [string, Known] => {
      const last = readWakes(folder, name).at(-1);
      const wake = last && JSON.stringify(last);
      return [name, { record, cursor: readCursor(folder, name), wake }];
    };
    return new Map([
      read(HUMAN, undefined),
      ...listAgents(folder, true).map((record) => read(record.name, record)),
    ]);
  }
}

function changesOf(
  agent: string,
  before: Known | undefined,
  now: Known,
  startedAt: number,
): News[] {
  const t = isoTime(Date.now());
  const news: News[] = [];
  const { record } = now;
  const old = before?.record;
  if (record !== undefined) {
    const isNew = old === undefined || old.inc !== record.inc;
    if (isNew) news.push({ t, agent, event: "new", record });
    else if (record.archived_at !== null && old.archived_at === null)
      news.push({ t, agent, event: "archived", record });
    else if (record.status !== old.status || record.task_id !== old.task_id)
      news.push({ t, agent, event: "status", record });
  }
  const { upto, at } = now.cursor;
  // A cursor may be older than the record of its agent, which is made when a supervisor starts.
  const isNews = before === undefined ? at >= startedAt : upto > before.cursor.upto;
  if (isNews) news.push({ t, agent, event: "read", upto });
  return news;
}

/** @param last the last reported wake-up @param newest the newest wake-up when the agents were read */
function wakesSince(
  folder: MailFolder,
  agent: string,
  last: string | undefined,
  newest: string | undefined,
): News[] {
  if (newest === undefined || newest === last) return [];
  const all = readWakes(folder, agent).map((wake) => ({ wake, text: JSON.stringify(wake) }));
  const textsOf = all.map(({ text }) => text);
  // Later wake-ups are reported at the next look.
  const end = textsOf.lastIndexOf(newest) + 1;
  const from = last === undefined ? 0 : textsOf.lastIndexOf(last) + 1;
  return all.slice(from, end).map(({ wake }) => ({
    t: isoTime(wake.at * 1000),
    agent,
    event: wake.is_wake ? "woken" : "told",
    wake,
  }));
}
