/** Records which supervisor runs this state tree: by the lock, and by `supervisor.json` with a nonce that shows which one came last. */
import os from "node:os";
import type { Clock } from "../../core/clock.ts";
import type { SupervisorDocument } from "../../core/documents.ts";
import { ErrIo, messageOf } from "../../core/errors.ts";
import { supervisorOf } from "../../core/saved-documents.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { readDocument, touchDocument } from "../../host/documents.ts";
import { savedSelf } from "../../host/identity.ts";
import { readVersion } from "../../host/package.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import { machineMs } from "../../host/system-clock.ts";
import { treeIdOf } from "../../host/tree-id.ts";
import { randomToken } from "../../mailbox/files/random.ts";
import { noteFormat } from "../../mailbox/files/tree-format.ts";
import { SupervisorLock } from "./supervisor-lock.ts";

/** The facts that change from one heartbeat to the next. */
export type OwnershipFacts = Pick<
  SupervisorDocument,
  | "status"
  | "workers"
  | "processes"
  | "watching"
  | "intake_stopped"
  | "waiting"
  | "roadmap"
  | "plan_holds"
  | "roadmap_problem"
  | "troubles"
  | "field_warnings"
  | "limits"
  | "gates"
  | "handlers"
  | "mailbox_enabled"
  | "replans"
>;

const VERSION = readVersion();

export class Ownership {
  /** ISO 8601. */
  readonly startedAt: string;
  private readonly nonce = randomToken(16);
  private lock: SupervisorLock | undefined;
  /** The id of the tree that was taken. */
  private treeId: string | null = null;
  /** Nonce of the supervisor before this one. Nonces are compared, not times, because clocks can go back. */
  private predecessor: string | undefined;
  private isReplaced = false;

  constructor(
    private readonly tree: StateTree,
    private readonly clock: Clock,
  ) {
    this.startedAt = new Date(clock.wallMs()).toISOString();
  }

  /**
   * Takes the tree over and writes its document. A supervisor that cannot write it gives up, because others could not find it,
   * stop it or take over from it.
   * @throws ErrSupervisorRunning, ErrIo
   */
  async take(facts: OwnershipFacts): Promise<void> {
    this.lock = await SupervisorLock.acquire(this.tree.dir, this.tree.supervisor);
    this.treeId = treeIdOf(this.tree.dir);
    this.predecessor = readDocument(this.tree.supervisor, supervisorOf)?.nonce;
    try {
      noteFormat(this.tree.dir);
      this.write(facts);
    } catch (error) {
      await this.lock.free();
      throw new ErrIo(`cannot write supervisor.json: ${messageOf(error)}`, {
        path: this.tree.supervisor,
        phase: "start",
        cause: error,
        hint: "check the disk and the rights, then start again; nothing was lost",
      });
    }
  }

  /** True when another supervisor believed us dead and took over: two starters may both take one stale lock. */
  get isLost(): boolean {
    return this.isReplaced || this.lock?.isCompromised === true;
  }

  /** Writes the heartbeat. Writes nothing when another supervisor owns the document by now. @throws a system error */
  write(facts: OwnershipFacts): void {
    const there = readDocument(this.tree.supervisor, supervisorOf);
    const isNewer =
      there !== undefined && there.nonce !== this.nonce && there.nonce !== this.predecessor;
    if (isNewer && there.status !== "stopped") {
      this.isReplaced = true;
      return;
    }
    const document: SupervisorDocument = {
      ...savedSelf(),
      tree: this.treeId,
      host: os.hostname(),
      nonce: this.nonce,
      version: VERSION,
      started_at: this.startedAt,
      heartbeat_at: new Date(this.clock.wallMs()).toISOString(),
      heartbeat_mono_ms: machineMs(),
      ...facts,
    };
    try {
      replaceDocument(this.tree.supervisor, document);
    } catch (error) {
      // The disk is full, say. The mtime still shows that we move.
      touchDocument(this.tree.supervisor);
      throw error;
    }
  }

  /** Leaves the tree to the next supervisor. @throws a system error */
  async leave(facts: OwnershipFacts): Promise<void> {
    this.write({ ...facts, status: "stopped" });
    await this.lock?.free();
  }
}
