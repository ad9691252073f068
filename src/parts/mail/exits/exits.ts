/**
 * Tells the orchestrator how tasks of agents ended, each once, and keeps the status of the agents. It compares the notes of tasks with
 * the mailbox: a task that is neither waiting nor in `processing/` has ended, by whatever process. The message has the id of the run, so a
 * crash between it and the removal of the note adds nothing.
 */
import { MailchuteError, messageOf } from "../../../core/errors.ts";
import { foldId, headOf } from "../../../core/names.ts";
import { parseOwner } from "../../../host/identity.ts";
import { findWaiting, listLive, locate, type Place } from "../../../mailbox/locate.ts";
import { readSettled } from "../../../mailbox/settled-record.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { type AgentChange, changeAgent, listAgents, livesElsewhere } from "../agents/agents.ts";
import { formatAddress } from "../scope/scope.ts";
import { send } from "../send/send.ts";
import type { MailFolder, MailStore } from "../store/mail-folder.ts";
import { exitMessage } from "./exit-message.ts";
import { dropNote, listNotes, type RunNote, writeNote } from "./run-notes.ts";

export class Exits {
  /** Whether a task that was noted goes on, or its end is still to be told. */
  hasWork = true;
  private readonly env: Environment;
  private readonly store: MailStore;
  private readonly folder: MailFolder;
  /** By folded id of the task. */
  private readonly notes: Map<string, RunNote>;
  /** The agents that were busy at the last look. */
  private busyBefore = "";

  /** @param notes of tasks that were noted in this process: files are written and removed by one process only */
  constructor(env: Environment, store: MailStore, folder: MailFolder, notes: Map<string, RunNote>) {
    this.env = env;
    this.store = store;
    this.folder = folder;
    this.notes = notes;
    for (const note of listNotes(env.tree.dir)) notes.set(foldId(note.task), note);
  }

  /** @throws a system error: the next call tries again */
  async look(isStart = false): Promise<void> {
    if (this.notes.size === 0 && !isStart) return;
    const places = new Map(listLive(this.env.trays).map((place) => [foldId(place.id), place]));
    const busy = new Map<string, number | null>();
    const ended = new Map<string, AgentChange>();
    const told: [key: string, note: RunNote][] = [];
    this.hasWork = false;
    for (const [key, note] of this.notes) {
      const own = note.agent.toLowerCase();
      const place = places.get(key);
      if (place === undefined) {
        if (!this.hasEnded(note)) continue;
        ended.set(own, this.tell(note));
        told.push([key, note]);
      } else {
        if (place.name?.stage !== "hold") this.hasWork = true;
        if (place.name?.stage === "w") busy.set(own, parseOwner(place.name.token)?.pid ?? null);
        this.noteRun(note, place);
      }
    }
    await this.noteAgents(busy, ended, isStart);
    // The notes go last: after a crash all of it is done again.
    for (const [key, note] of told) {
      dropNote(this.env.tree.dir, note);
      this.notes.delete(key);
    }
  }

  /** @param busy the pid of the worker, by agent */
  private async noteAgents(
    busy: ReadonlyMap<string, number | null>,
    ended: ReadonlyMap<string, AgentChange>,
    isStart: boolean,
  ): Promise<void> {
    const key = JSON.stringify([...busy]);
    if (!isStart && ended.size === 0 && key === this.busyBefore) return;
    for (const agent of listAgents(this.folder)) {
      // Of a busy agent of another tree nothing is known here.
      if (livesElsewhere(agent, this.env.tree.dir)) continue;
      const { name, status } = agent;
      const pid = busy.get(name);
      const rest = status === "busy" ? { status: "idle", pid: null } : undefined;
      const after = ended.get(name) ?? rest;
      const change = pid === undefined ? after : { ...after, status: "busy", pid };
      if (change !== undefined)
        await changeAgent(this.folder, name, change, this.env.trays.clock.wallMs());
    }
    this.busyBefore = key;
  }

  private noteRun(note: RunNote, { name }: Place): void {
    if (name === undefined || name.stage === "ready" || name.stage === "hold") return;
    if (note.run === headOf(name)) return;
    note.run = headOf(name);
    writeNote(this.env.tree.dir, note, this.folder.isDurable);
  }

  private hasEnded({ task }: RunNote): boolean {
    const { trays } = this.env;
    if (findWaiting(trays, task) !== undefined) return false;
    // A task that moved back in between is found by the second look.
    return readSettled(trays, task) !== undefined || locate(trays, task) === undefined;
  }

  /** @returns what is new about the agent */
  private tell(note: RunNote): AgentChange {
    const { trays, alerts } = this.env;
    const record = readSettled(trays, note.task)?.record;
    const exit = exitMessage(note, record);
    const wallMs = trays.clock.wallMs();
    if (exit !== undefined) {
      const from = note.agent.toLowerCase();
      const { scope, orchestrator = "" } = this.folder;
      const isOwn = formatAddress({ ...scope, name: from }) === orchestrator;
      // It knows how its own runs end, and must not wake itself.
      const to = isOwn || orchestrator === "" ? [] : [orchestrator];
      try {
        send(this.store, { ...exit, scope, from, via: "system", type: "exit", to }, wallMs);
      } catch (error) {
        // Told before, and its record was taken away since. Anything else is tried again.
        if (!(error instanceof MailchuteError) || error.code !== "ErrInvalidMessage") throw error;
        alerts.report(`exit:${note.task}`, `mail: ${messageOf(error)}`);
      }
    }
    if (record?.status === "failed") return { status: "failed", pid: null };
    const at = record === undefined ? {} : { completed_at: record.completed_at };
    return { status: "idle", pid: null, ...at };
  }
}
