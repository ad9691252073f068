/** Compares the nodes in flight with the mailbox. Finds nodes of an earlier supervisor, and tasks that settled unnoticed or vanished. */
import { join } from "node:path";
import {
  foldId,
  isUnclaimed,
  type ProcessingName,
  parseName,
  parsePlainClaim,
} from "../../../core/names.ts";
import { isContainer } from "../../../core/roadmap.ts";
import { readSettled } from "../../../mailbox/find/settled-record.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { NodeFinisher } from "./finish-nodes.ts";
import type { NodeLauncher } from "./launch-nodes.ts";

/** True if the task of this name in `processing/` runs or has run. */
function hasBegun(name: ProcessingName | undefined): boolean {
  return name === undefined || (name.stage === "ready" ? name.attempt > 1 : name.stage !== "bad");
}

export class Reconciler {
  private readonly absentOnce = new Set<string>();
  /** Nodes whose tasks must be removed from the mailbox. */
  private unwanted = new Set<string>();

  constructor(
    private readonly deps: EngineParts,
    private readonly launcher: NodeLauncher,
    private readonly finisher: NodeFinisher,
  ) {}

  /** Takes over nodes that are in progress in the plan but not known here. `compare` finds out their real state. */
  adoptRunning(): void {
    const { store, active } = this.deps;
    for (const node of store.nodes) {
      if (node.status !== "in_progress" || isContainer(node) || active.has(node.id)) continue;
      active.inherit(node.id);
    }
  }

  /** Finds tasks that settled unnoticed or vanished. @param files a listing of `processing/` */
  compare(files: readonly string[]): void {
    const { active } = this.deps;
    const { trays } = this.deps.env;
    this.launcher.forgetForeign();
    const live = new Set<string>();
    for (const file of files) {
      const name = parseName(file);
      const id = name?.id ?? parsePlainClaim(file);
      if (id !== undefined) live.add(foldId(id));
      if (id !== undefined && hasBegun(name)) active.noteBegun(id);
      if (name !== undefined && isUnclaimed(name)) this.adoptUnwanted(name.id);
    }
    for (const id of active.list()) {
      const isKnown = live.has(foldId(id)) || this.launcher.isOnTheWay(id) || this.finisher.has(id);
      if (isKnown || trays.storage.look(join(trays.inbox, `${id}.json`)) !== undefined)
        this.absentOnce.delete(id);
      else if (readSettled(trays, id) !== undefined) this.finisher.noteSettled(id);
      // One listing may miss a name that is being renamed; two in a row almost never do.
      else if (!this.absentOnce.has(id)) this.absentOnce.add(id);
      else this.noteVanished(id);
    }
    this.findUnwanted();
  }

  /**
   * A node that a person marked blocked or done does not run again, not even for a retry. A run that has begun goes on to its end.
   * While the pool is paused, a node begins only if `launched` of control.json names it. Any other node that has not begun is opened again.
   */
  findUnwanted(): void {
    const { active, control, store } = this.deps;
    const { paused, launched } = control.current;
    const unbegun = new Set(paused ? active.listUnbegun() : []);
    for (const id of active.list()) {
      const status = store.find(id)?.status;
      const isHeldUp = unbegun.has(id) && !launched.includes(id);
      if (status !== "blocked" && status !== "done" && !isHeldUp) continue;
      if (!this.launcher.isOnTheWay(id) && !this.finisher.has(id)) this.unwanted.add(id);
    }
  }

  /** Returns the nodes whose tasks must be removed from the mailbox. Each comparison finds the remaining ones again. */
  takeUnwanted(): ReadonlySet<string> {
    const taken = this.unwanted;
    this.unwanted = new Set();
    return taken;
  }

  /** Takes over a node that a person marked blocked or done while no supervisor ran. Its task still waits, and no service knows it. */
  private adoptUnwanted(id: string): void {
    const { store, active } = this.deps;
    if (active.has(id)) return;
    const node = store.find(id);
    if (node?.status !== "blocked" && node?.status !== "done") return;
    if (!isContainer(node) && this.launcher.liveTask(id) === "own") active.inherit(id);
  }

  private noteVanished(id: string): void {
    const { store, active } = this.deps;
    this.absentOnce.delete(id);
    active.leave(id);
    // A supervisor died before it launched the node, or another program removed the task from the mailbox.
    if (store.find(id)?.status === "in_progress") store.setStatus(id, "open");
  }
}
