/** Finds out what is true of the nodes in flight: what a supervisor before us left, what settled unnoticed, what vanished. */
import { join } from "node:path";
import { foldId, type ProcessingName, parseName, parsePlainClaim } from "../../../core/names.ts";
import { isContainer } from "../../../core/roadmap.ts";
import { readSettled } from "../../../mailbox/settled-record.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { NodeEnds } from "./finish-nodes.ts";
import type { Launcher } from "./launch-nodes.ts";

/** Whether what stands under this name in `processing/` runs, or has run. */
function hasBegun(name: ProcessingName | undefined): boolean {
  return name === undefined || (name.stage === "ready" ? name.attempt > 1 : name.stage !== "bad");
}

export class FlightSurvey {
  private readonly p: EngineParts;
  private readonly launcher: Launcher;
  private readonly ends: NodeEnds;
  private readonly absentOnce = new Set<string>();

  constructor(parts: EngineParts, launcher: Launcher, ends: NodeEnds) {
    this.p = parts;
    this.launcher = launcher;
    this.ends = ends;
  }

  /** Nodes that are said to be in progress, and are not as far as we know: `compare` tells what is true. */
  adoptRunning(): void {
    const { store, flights } = this.p;
    for (const node of store.nodes) {
      if (node.status !== "in_progress" || isContainer(node) || flights.has(node.id)) continue;
      flights.inherit(node.id);
    }
  }

  /** @param files a listing of `processing/` */
  compare(files: readonly string[]): void {
    const { trays, flights } = this.p;
    this.launcher.forgetForeign();
    const live = new Set<string>();
    for (const file of files) {
      const name = parseName(file);
      const id = name?.id ?? parsePlainClaim(file);
      if (id !== undefined) live.add(foldId(id));
      if (id !== undefined && hasBegun(name)) flights.noteBegun(flights.idOf(foldId(id)) ?? id);
      if (name?.stage === "ready") this.adoptUnwanted(name.id);
    }
    for (const id of flights.list()) {
      const isKnown = live.has(foldId(id)) || this.launcher.isOnTheWay(id) || this.ends.has(id);
      if (isKnown || trays.storage.look(join(trays.inbox, `${id}.json`)) !== undefined)
        this.absentOnce.delete(id);
      else if (readSettled(trays, id) !== undefined) this.ends.noteSettled(id);
      // One listing may miss a name that is being renamed; two in a row hardly do.
      else if (!this.absentOnce.has(id)) this.absentOnce.add(id);
      else this.noteVanished(id);
    }
  }

  /** Blocked, or done by a person, while no supervisor looked: its task still waits, and no other service would know of it. */
  private adoptUnwanted(id: string): void {
    const { store, flights } = this.p;
    if (flights.has(id)) return;
    const node = store.find(id);
    if (node?.status !== "blocked" && node?.status !== "done") return;
    if (!isContainer(node) && this.launcher.liveTask(id) === "own") flights.inherit(id);
  }

  private noteVanished(id: string): void {
    const { store, flights } = this.p;
    this.absentOnce.delete(id);
    flights.leave(id);
    // Never launched by a supervisor that died, or taken out of the mailbox by another program.
    if (store.find(id)?.status === "in_progress") store.setStatus(id, "open");
  }
}
