/**
 * Tells the orchestrator once for each task of an agent how it ended, and records the status of the agents. It compares the notes of
 * tasks with the mailbox: a task that is neither in the inbox nor in `processing/` has ended. The message has the id of the run. So a
 * crash before the note is removed causes no second message.
 */

import { setImmediate as pause } from "node:timers/promises";
import type { Apart } from "../../../core/apart.ts";
import { compact } from "../../../core/compact.ts";
import { MailchuteError, messageOf } from "../../../core/errors.ts";
import { foldId, headOf } from "../../../core/names.ts";
import type { Task } from "../../../core/task.ts";
import { parseOwner } from "../../../host/identity.ts";
import { findWaiting, listLive, locate, type Place } from "../../../mailbox/find/locate.ts";
import { readSettled, type SettledRecord } from "../../../mailbox/find/settled-record.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { ordersApart } from "../../../supervisor/environment/orders-apart.ts";
import {
  type AgentChange,
  type AgentRecord,
  changeAgent,
  listAgents,
  livesElsewhere,
} from "../agents/agents.ts";
import { agentOfTask } from "../agents/name-of-run.ts";
import { readTask } from "../agents/runs-of-agent.ts";
import { formatAddress } from "../scope/scope.ts";
import { send } from "../send/send.ts";
import type { MailFolder, MailStore } from "../store/mail-folder.ts";
import { exitMessage } from "./exit-message.ts";
import { type RunNote, runNotes } from "./run-notes.ts";

/** The pid of the worker, and the task that it runs. */
type Busy = Pick<AgentRecord, "pid" | "task_id">;

export class Exits {
  /** True while a noted task goes on, or its end must still be reported. */
  hasWork = true;
  private readonly apart: Apart;
  /** The agents that were busy at the last look. */
  private busyBefore = "";

  /** @param notes the tasks that this process has noted. Only this process writes and removes their files */
  constructor(
    private readonly env: Environment,
    private readonly store: MailStore,
    private readonly folder: MailFolder,
    /** Notes by the folded id of the task. */
    private readonly notes: Map<string, RunNote>,
  ) {
    this.apart = ordersApart(env, "the exit of");
    for (const [, note] of runNotes(env.tree.dir).loadAll()) notes.set(foldId(note.task), note);
  }

  /** @throws a system error: the next call tries again */
  async look(isStart = false): Promise<void> {
    if (this.notes.size === 0 && !isStart) return;
    const places = new Map(listLive(this.env.trays).map((place) => [foldId(place.id), place]));
    const busy = new Map<string, Busy>();
    const ended = new Map<string, AgentChange>();
    const told: [key: string, note: RunNote][] = [];
    this.hasWork = false;
    const lookAt = async ([key, note]: [string, RunNote]): Promise<void> => {
      const place = places.get(key);
      if (place === undefined) {
        if (!this.hasEnded(note)) return;
        const { name, change } = this.tell(note);
        ended.set(name, change);
        told.push([key, note]);
        // With very many messages, looking for an id takes some milliseconds.
        await pause();
      } else {
        if (place.name?.stage !== "hold") this.hasWork = true;
        this.noteRun(note, place);
        if (place.name?.stage === "w")
          busy.set(nameOf(note), {
            pid: parseOwner(place.name.token)?.pid ?? null,
            task_id: place.id,
          });
      }
    };
    await this.apart.each(this.notes, ([, { task }]) => task, lookAt);
    await this.noteAgents(busy, ended, isStart);
    // The notes are removed last: after a crash all steps are repeated.
    for (const [key, note] of told) {
      runNotes(this.env.tree.dir).remove(note.task);
      this.notes.delete(key);
    }
  }

  /** @param busy by agent */
  private async noteAgents(
    busy: ReadonlyMap<string, Busy>,
    ended: ReadonlyMap<string, AgentChange>,
    isStart: boolean,
  ): Promise<void> {
    const key = JSON.stringify([...busy]);
    if (!isStart && ended.size === 0 && key === this.busyBefore) return;
    for (const agent of listAgents(this.folder)) {
      // This supervisor does not know whether an agent of another tree is busy.
      if (livesElsewhere(this.folder, agent, this.env.tree.dir)) continue;
      const { name, status } = agent;
      const now = busy.get(name);
      const rest = status === "busy" ? { status: "idle", pid: null } : undefined;
      const after = ended.get(name) ?? rest;
      const change = now === undefined ? after : { ...after, status: "busy", ...now };
      if (change !== undefined)
        await changeAgent(this.folder, name, change, this.env.trays.clock.wallMs());
    }
    this.busyBefore = key;
  }

  private noteRun(note: RunNote, { id, name, path }: Place): void {
    const owner = note.name ?? this.ownerOf(readTask(this.env.trays, path, id));
    Object.assign(note, compact({ name: owner }));
    if (name === undefined || name.stage === "ready" || name.stage === "hold") return;
    if (note.run === headOf(name)) return;
    note.run = headOf(name);
    runNotes(this.env.tree.dir, this.folder.isDurable).replace(note.task, note);
  }

  private ownerOf(task: Task | undefined): string | undefined {
    return task && agentOfTask(this.folder, task, this.env.settings.agents);
  }

  private hasEnded({ task }: RunNote): boolean {
    const { trays } = this.env;
    if (findWaiting(trays, task) !== undefined) return false;
    // `locate` looks once more, in case the task moved back in between.
    return readSettled(trays, task) !== undefined || locate(trays, task) === undefined;
  }

  /** Sends the message about an exit. @returns the agent, and the changes of its record */
  private tell(note: RunNote): { name: string; change: AgentChange } {
    const { trays, alerts } = this.env;
    const record: (SettledRecord["record"] & { task?: unknown }) | undefined = readSettled(
      trays,
      note.task,
    )?.record;
    const name = note.name ?? this.ownerOf(record?.task as Task | undefined) ?? nameOf(note);
    const exit = exitMessage(note, record);
    const wallMs = trays.clock.wallMs();
    if (exit !== undefined) {
      const { scope, orchestrator = "" } = this.folder;
      const isOwn = formatAddress({ ...scope, name }) === orchestrator;
      // The orchestrator knows how its own runs end, and must not wake itself.
      const to = isOwn || orchestrator === "" ? [] : [orchestrator];
      try {
        send(this.store, { ...exit, scope, from: name, via: "system", type: "exit", to }, wallMs);
      } catch (error) {
        // The exit was reported before, and its record was removed since. After any other error the next look tries again.
        if (!(error instanceof MailchuteError) || error.code !== "ErrInvalidMessage") throw error;
        alerts.report(`exit:${note.task}`, `mail: ${messageOf(error)}`);
      }
    }
    const over = { pid: null, task_id: note.task };
    if (record?.status === "failed") return { name, change: { ...over, status: "failed" } };
    const at = record === undefined ? {} : { completed_at: record.completed_at };
    return { name, change: { ...over, status: "idle", ...at } };
  }
}

/** The agent of a note. Until its run is known, this is the agent of the settings. */
function nameOf({ agent, name }: RunNote): string {
  return name ?? agent.toLowerCase();
}
