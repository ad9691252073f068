/** The files of a machine that works for other trees: its mailbox, and one note for each dispatch that it has taken. */
import fs from "node:fs";
import { join } from "node:path";
import { ErrInvalidTransition, ErrTaskExists, ErrTaskNotFound } from "../../../core/errors.ts";
import { isObject } from "../../../core/json-object.ts";
import { isId, parseName } from "../../../core/names.ts";
import { landingFileOf, landingsDir, stateTree } from "../../../core/state-tree.ts";
import { loadDocument, removeDocument } from "../../../host/documents.ts";
import { listDir } from "../../../host/list-dir.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { replaceDocument } from "../../../host/replace-document.ts";
import { enqueueCommand } from "../../../mailbox/commands/command-queue.ts";
import { createAnew, unlinkIfThere } from "../../../mailbox/files/steps.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { findRecord, findWaiting, isInFlight, locate } from "../../../mailbox/find/locate.ts";
import { readSettled } from "../../../mailbox/find/settled-record.ts";
import { retry } from "../../../mailbox/retry/retry.ts";
import { type Submission, type SubmitOutcome, submitAll } from "../../../mailbox/submit/submit.ts";
import { type LandingView, lookForLanding } from "../../../view/landing.ts";
import { loadOrder } from "../../../worker/landing-files.ts";
import type { End, Job, RunNews } from "../protocol/messages.ts";
import type { MachineTree, Note, Place } from "../protocol/ports.ts";
import { type Accept, acceptJob } from "../protocol/sent-task.ts";
import { clusterDir } from "./cluster-dir.ts";
import { endOfRecord } from "./ends.ts";
import { Gathered } from "./gathered.ts";
import type { LocalRuns } from "./local-runs.ts";
import { RecentListings } from "./recent-listings.ts";

/** A note on disk. It also has the id of the command that cancels its task, if one was sent. */
interface KeptNote extends Note {
  cancel?: string;
}

export interface MachinePlace {
  stateDir: string;
  trays: Trays;
  /** The mailbox of commands. */
  control: Trays;
  accept: Accept;
  /** Progress and costs of its runs; left out when none shall be told. */
  runs?: LocalRuns;
}

export class MachineFiles implements MachineTree {
  private readonly deps: MachinePlace;
  private readonly dir: string;
  /** Staged files of a dead process are swept in this folder. Beside the notes they would stay. */
  private readonly stagingDir: string;
  private readonly kept = new Map<string, KeptNote>();
  private readonly listings: RecentListings;
  private readonly submitting: Gathered<Submission, SubmitOutcome[]>;

  /** Reads the notes of an earlier process. @throws a system error */
  constructor(place: MachinePlace) {
    this.deps = place;
    this.listings = new RecentListings(place.trays);
    this.submitting = new Gathered((tasks) => submitAll(place.trays, tasks));
    // The sweep reads this folder, too, and keeps tasks that have a note here.
    this.dir = stateTree(place.stateDir).jobs;
    this.stagingDir = join(clusterDir(place.stateDir), ".tmp");
    makeDirs(this.dir, 2);
    for (const file of listDir(this.dir)) {
      const id = file.endsWith(".json") ? file.slice(0, -5) : "";
      if (!isId(id)) continue;
      const note = loadDocument<KeptNote>(this.pathOf(id));
      // Nothing was done for a note that was not written whole: see `write`.
      if (note === undefined) removeDocument(this.pathOf(id));
      else if (isObject(note.dispatch)) this.kept.set(id, note);
    }
  }

  ids(): string[] {
    return [...this.kept.keys()];
  }

  note(id: string): Note | undefined {
    return this.kept.get(id);
  }

  saveNote(id: string, note: Note): void {
    const { cancel } = this.kept.get(id) ?? {};
    this.write(id, { ...note, ...(cancel === undefined ? {} : { cancel }) });
  }

  removeNote(id: string): void {
    unlinkIfThere(this.deps.trays, this.pathOf(id));
    this.kept.delete(id);
    this.deps.runs?.forget(id);
  }

  /** After this the next `placeOf` sees the current state. */
  listAnew(): void {
    this.listings.forget();
  }

  placeOf(id: string): Place {
    const { trays, control } = this.deps;
    const cancel = this.kept.get(id)?.cancel;
    if (cancel !== undefined && isInFlight(control, cancel)) return "unsettled";
    if (findWaiting(trays, id) !== undefined) return "unsettled";
    // A name that was there a moment ago is enough. A missing name proves nothing, because the task may just have been claimed.
    const isLive = this.listings.of(id).some((file) => parseName(file)?.stage !== "bad");
    if (isLive) return "unsettled";
    if (findRecord(trays, id) !== undefined) return this.settledPlace(id);
    const place = locate(trays, id);
    if (place === undefined) return "none";
    const isSettled = place.tray === "outbox" || place.tray === "failed";
    return isSettled ? this.settledPlace(id) : "unsettled";
  }

  /** A task whose work is still landing is not settled, nor is one of which this is not known. */
  private settledPlace(id: string): Place {
    try {
      return this.landingOf(id)?.state === "open" ? "unsettled" : "settled";
    } catch {
      return "unsettled";
    }
  }

  /** @throws a system error when the landings cannot be read */
  private landingOf(id: string): LandingView | undefined {
    const { stateDir, trays } = this.deps;
    // Most tasks have no landing, and these checks cost two calls.
    const isThere = fs.existsSync(landingFileOf(stateDir, id, "order"));
    if (!isThere && fs.existsSync(`${landingsDir(stateDir)}/.`)) return undefined;
    if (loadOrder(stateDir, id) === undefined) return undefined;
    return lookForLanding(stateTree(stateDir, trays.dir), id);
  }

  whyRefused(job: Job): string | undefined {
    const made = acceptJob(job, this.deps.accept);
    return "refused" in made ? made.refused : undefined;
  }

  async submit(id: string, job: Job): Promise<void> {
    const made = acceptJob(job, this.deps.accept);
    if ("refused" in made) throw new Error(made.refused);
    const bytes = Buffer.from(`${made.text}\n`, "utf8");
    const outcomes = await this.submitting.add({ id, bytes });
    const mine = outcomes.find((one) => one.id === id);
    if (mine?.outcome === "refused" && !(mine.error instanceof ErrTaskExists)) throw mine.error;
  }

  endOf(id: string): End | undefined {
    const settled = readSettled(this.deps.trays, id);
    if (settled === undefined) return undefined;
    const costs = this.deps.runs?.costsOf(id, new Set(this.kept.keys())) ?? [];
    return endOfRecord(settled.record, costs, this.landingOf(id));
  }

  /** The progress of the tasks whose results must be told. @throws a system error */
  news(): ReadonlyMap<string, RunNews> {
    const taken = [...this.kept].flatMap(([id, { state }]) => (state === "taken" ? [id] : []));
    return this.deps.runs?.news(new Set(taken)) ?? new Map();
  }

  async cancel(id: string): Promise<void> {
    const note = this.kept.get(id);
    const { control } = this.deps;
    // The run has ended, and its landing is under way. That is not cancelled.
    if (note === undefined || this.landingOf(id)?.state === "open") return;
    if (note.cancel !== undefined && isInFlight(control, note.cancel)) return;
    const args = { node: id, final: true };
    const { id: cancel } = await enqueueCommand(control, { command: "cancel", args });
    this.write(id, { ...note, cancel });
  }

  async runAgain(id: string): Promise<void> {
    try {
      await retry(this.deps.trays, id);
    } catch (error) {
      // Another process has put it back already.
      const isDone =
        error instanceof ErrTaskExists ||
        error instanceof ErrTaskNotFound ||
        error instanceof ErrInvalidTransition;
      if (!isDone) throw error;
    }
  }

  private write(id: string, note: KeptNote): void {
    const { stagingDir, isDurable } = this;
    const path = this.pathOf(id);
    // A new note replaces nothing, and nothing is done for it before it is whole. So it needs no replacement with two renames.
    if (this.kept.has(id) || isDurable) replaceDocument(path, note, { stagingDir, isDurable });
    else createAnew(this.deps.trays, path, Buffer.from(`${JSON.stringify(note)}\n`));
    this.kept.set(id, note);
  }

  private get isDurable(): boolean {
    return this.deps.trays.durability === "power";
  }

  private pathOf(id: string): string {
    return join(this.dir, `${id}.json`);
  }
}
