/**
 * Worker processes that are not our children and not known to be dead. An earlier supervisor left them, and we adopt them where we
 * can, or a person started them by hand. Their documents in `workers/` describe them.
 */
import { join } from "node:path";
import type { WorkerDocument } from "../../core/documents.ts";
import { RECOVER_MS } from "../../core/limits.ts";
import { workerOf } from "../../core/saved-documents.ts";
import { readDocument, removeDocument } from "../../host/documents.ts";
import { thisPlace } from "../../host/identity.ts";
import { tryListDir } from "../../host/list-dir.ts";
import { statOf } from "../../host/regular-file.ts";
import { judgeIn } from "../../host/tree-id.ts";
import { LeaseObserver } from "../../mailbox/recover/lease-observer.ts";
import type { WorkerInfo, WorkerTie } from "./worker-info.ts";

export interface ExternalWorkersOptions {
  workersDir: string;
  stateDir: string;
  /** A worker on another host or container that shows no sign of life for this long counts as gone (ms). */
  silenceMaxMs: number;
  /** The digest of our settings. A worker with another digest gets no more tasks, and ends. */
  digest: string;
  /** Called for a worker whose settings differ from ours, or that a supervisor elsewhere has left. */
  onUnlike: (worker: WorkerInfo) => void;
}

export class ExternalWorkers {
  private readonly options: ExternalWorkersOptions;
  private found = new Map<string, WorkerInfo>();
  private readonly silence = new LeaseObserver(RECOVER_MS);

  constructor(options: ExternalWorkersOptions) {
    this.options = options;
  }

  get list(): WorkerInfo[] {
    return [...this.found.values()];
  }

  get count(): number {
    return this.found.size;
  }

  get slots(): number {
    let slots = 0;
    for (const worker of this.found.values()) slots += worker.slots;
    return slots;
  }

  /** Workers that an earlier supervisor has started. */
  get inherited(): WorkerInfo[] {
    return this.list.filter(({ tie }) => tie !== "by hand");
  }

  /** Inherited workers that we use like our own. */
  get adopted(): WorkerInfo[] {
    return this.list.filter(({ tie }) => tie === "adopted");
  }

  /** Checks which workers exist. @param own ids of our children @returns whether anything has changed */
  survey(own: ReadonlySet<string>): boolean {
    const { workersDir } = this.options;
    const names = tryListDir(workersDir);
    // Without a listing, the known workers count as still there.
    if (names === undefined) return false;
    const found = new Map<string, WorkerInfo>();
    this.silence.beginRound(performance.now(), new Set(names));
    for (const name of names) {
      if (!name.endsWith(".json") || own.has(name.slice(0, -5))) continue;
      const path = join(workersDir, name);
      const doc = readDocument(path, workerOf);
      if (doc === undefined || `${doc.id}.json` !== name) continue;
      if (this.isGone(doc, name, path)) {
        removeDocument(path);
        continue;
      }
      found.set(doc.id, this.found.get(doc.id) ?? this.meet(doc));
    }
    const isChanged =
      found.size !== this.found.size || [...found.keys()].some((id) => !this.found.has(id));
    this.found = found;
    return isChanged;
  }

  private isGone(doc: WorkerDocument, name: string, path: string): boolean {
    const verdict = judgeIn(this.options.stateDir, doc);
    if (verdict !== "unknown") return verdict === "dead";
    const mtimeMs = statOf(path)?.mtimeMs ?? 0;
    return this.silence.silenceMs(name, mtimeMs, performance.now()) >= this.options.silenceMaxMs;
  }

  private meet(doc: WorkerDocument): WorkerInfo {
    const hasOtherSettings = doc.settings !== this.options.digest;
    const tie = tieOf(doc, hasOtherSettings);
    const { id, pid, slots } = doc;
    const getsNothing = tie === "outdated" || tie === "elsewhere";
    const isHere = doc.place === thisPlace();
    const worker = { id, pid, tie, isHere, slots: getsNothing ? 0 : slots, slotsPeak: slots };
    if (getsNothing || hasOtherSettings) this.options.onUnlike(worker);
    return worker;
  }
}

function tieOf(doc: WorkerDocument, hasOtherSettings: boolean): WorkerTie {
  if (doc.supervisor_pid === null) return "by hand";
  if (doc.place !== thisPlace()) return "elsewhere";
  return hasOtherSettings ? "outdated" : "adopted";
}
