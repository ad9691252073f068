/** Runs recovery rounds over one mailbox: it finds due steps by name and runs each once. Slow steps do not delay others. */
import { systemCode } from "../../core/errors.ts";
import { findRecoverable } from "../../mailbox/recover/find-recoverable.ts";
import { recoverStep } from "../../mailbox/recover/recover.ts";
import type { Recoverer, RecoverStep } from "../../mailbox/recover/recoverer.ts";

export class TaskRecovery {
  private readonly busy = new Set<string>();
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    private readonly recoverer: Recoverer,
    private readonly leaseTtlMs: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** The names in `processing/`; an empty list when the tray is missing. Undefined when it cannot be listed. */
  list(): string[] | undefined {
    try {
      return this.recoverer.trays.storage.list(this.recoverer.trays.processing);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return [];
      this.onError(error);
      return undefined;
    }
  }

  /** Begins the steps that are due for these names, if the names are known. Resolves when this round's steps are done. */
  async round(files: readonly string[] | undefined, isStart = false): Promise<void> {
    if (files === undefined) return;
    let steps: RecoverStep[];
    try {
      steps = findRecoverable(this.recoverer, files, this.leaseTtlMs, isStart);
    } catch (error) {
      // The next round looks again.
      this.onError(error);
      return;
    }
    await Promise.all(steps.map((step) => this.take(step)));
  }

  /** Resolves when no step is running. */
  async idle(): Promise<void> {
    await Promise.all(this.underWay);
  }

  private take(step: RecoverStep): Promise<void> {
    const key =
      step.kind === "foreign"
        ? step.id
        : step.kind === "finish"
          ? `${step.name.id}~${step.name.token}`
          : step.claim.file;
    if (this.busy.has(key)) return Promise.resolve();
    this.busy.add(key);
    const work = recoverStep(this.recoverer, step)
      .catch((error: unknown) => this.onError(error))
      .finally(() => {
        this.busy.delete(key);
        this.underWay.delete(work);
      });
    this.underWay.add(work);
    return work;
  }
}
