/** Wakes the agents of a state tree for their mail while a supervisor runs. Does nothing without the setting `mail_enabled`. */
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { closedGate } from "../../core/gates.ts";
import { foldId } from "../../core/names.ts";
import { isCoding } from "../../core/settings.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { Part, PartPorts, StartLimit } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import type { MailWatch } from "./delivery/mail-watch.ts";
import { type RunNote, runNotes } from "./exits/run-notes.ts";

/** Time between two looks at the files (ms). */
const LOOK_MS = 300;

class MailPart implements Part, StartLimit {
  readonly ports: PartPorts;
  private readonly env: PartHost["env"];
  private readonly isOn: boolean;
  /** The coding agents. */
  private readonly agents: string[];
  private readonly first: readonly ClosedGate[];
  private watch: MailWatch | undefined;
  /** Tasks of agents whose exits must be reported, by folded id. */
  private readonly notes = new Map<string, RunNote>();
  private lookAtMs = 0;
  private isLooking = false;
  /** True once a first look has succeeded. */
  private hasStarted = false;
  /** True if a task was noted since the last look began. */
  private hasNewNote = false;
  /** False until the first look has ended: until then it is unknown whether there is mail. */
  private hasLooked = false;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.isOn = env.settings.mail_enabled;
    this.agents = env.settings.agents.filter(isCoding).map(({ name }) => name);
    const why = "the mail of the agents is being read";
    this.first = [closedGate("mail", why, "wait", { agents: this.agents, is_well: true })];
    const isIdle = (): boolean =>
      this.hasLooked && !this.hasNewNote && this.watch?.hasWork !== true;
    const work = { canStart: () => false, isBusy: () => this.isLooking, isIdle };
    this.ports = this.isOn ? { work, startLimit: this } : {};
  }

  /** A run writes its session and compactions into its agent's record. So it starts once the record exists, or could not be made. */
  get gates(): readonly ClosedGate[] {
    return this.watch !== undefined || this.hasLooked ? [] : this.first;
  }

  /** Notes a task before it is accepted, so that its exit is reported even after a crash. */
  noteStart({ agent }: Lane, id: string): boolean {
    if (!this.agents.includes(agent)) return false;
    if (!this.notes.has(foldId(id))) this.noteAgent(agent, id);
    return true;
  }

  private noteAgent(agent: string, id: string): void {
    const { settings, tree, alerts } = this.env;
    const note = { v: 1, task: id, agent, run: null } as const;
    this.notes.set(foldId(id), note);
    this.hasNewNote = true;
    try {
      runNotes(tree.dir, settings.durability === "power").replace(id, note);
    } catch (error) {
      alerts.report(`exits:${systemCode(error)}`, `mail: cannot note ${id}: ${messageOf(error)}`);
    }
  }

  /** The first tick opens the files and not `start`, because a dry run has no ticks and must make no files. */
  work({ nowMs }: Tick): void {
    if (!this.isOn || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    if (this.isLooking) return;
    this.isLooking = true;
    void this.look();
  }

  nextMs(): number {
    return this.isOn ? this.lookAtMs : NEVER;
  }

  /** Never rejects: the next supervisor reports the remaining exits. */
  async finish(): Promise<void> {
    try {
      await this.watch?.finish();
    } catch (error) {
      this.env.alerts.report(`mail:${systemCode(error)}`, `mail: ${messageOf(error)}`);
    }
  }

  /** Never rejects: the next look tries again. */
  private async look(): Promise<void> {
    this.hasNewNote = false;
    try {
      const { openWatch } = await import("./delivery/mail-watch.ts");
      if (this.watch === undefined) {
        this.watch = await openWatch(this.env, this.notes);
        this.env.wake();
      }
      await this.watch.look(!this.hasStarted);
      this.hasStarted = true;
    } catch (error) {
      this.env.alerts.report(`mail:${systemCode(error)}`, `mail: ${messageOf(error)}`);
    }
    this.isLooking = false;
    this.hasLooked = true;
  }
}

export const mail: MakePart = (host) => new MailPart(host);
