/** Answers whether an id is free. */
import { errorName, resultName, resultsName } from "../../core/names.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";
import { isRefusal } from "../../mailbox/find/settled-record.ts";
import { freeRefusedId } from "../../mailbox/settle/quarantine.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";
import type { FinishedIds } from "./finished-ids.ts";

/** Answers whether files of an id exist. */
export interface IdLooks {
  /** Whether a program that knows only the four trays has claimed it. */
  hasPlainClaim(id: string): boolean;
  hasResult(id: string): boolean;
}

export class IdProbe {
  /** Ids whose record in failed/ is about a refused file: the record moves aside when a task with the id is accepted. */
  private readonly refused = new Set<string>();
  private readonly singleLooks: IdLooks = {
    hasPlainClaim: (id) => this.isThere(this.trays.processing, `${id}.json`),
    hasResult: (id) => this.isThere(this.trays.outbox, resultName(id)),
  };

  constructor(
    private readonly trays: Trays,
    private readonly accepted: AcceptedTasks,
    private readonly finishedIds: FinishedIds,
  ) {}

  /**
   * Whether this id (ignoring case) is being worked on or has settled. "unsure": that is not known yet, ask again.
   * @param looks left out: each name is looked for
   */
  isTaken(id: string, looks: IdLooks = this.singleLooks): boolean | "unsure" {
    if (this.accepted.has(id)) return true;
    // A foreign program's claim may be there before a listing has shown it.
    if (looks.hasPlainClaim(id) || looks.hasResult(id)) return true;
    const failed = pathIn(this.trays.failed, errorName(id));
    if (this.trays.storage.look(failed) !== undefined) {
      if (!isRefusal(this.trays, failed)) return true;
      this.refused.add(id);
    }
    return this.finishedIds.has(id);
  }

  /** Call it before this id, which is not taken, leaves the inbox: a refused file may have the name of its record. */
  freeRefused(id: string): void {
    if (this.refused.delete(id)) freeRefusedId(this.trays, id);
  }

  /** Whether results of this id were left without a record: a program removed only the record. They must not count for another batch. */
  hasLeftResults(id: string): boolean {
    const { outbox, failed } = this.trays;
    return [outbox, failed].some((dir) => this.isThere(dir, resultsName(id)));
  }

  private isThere(dir: string, name: string): boolean {
    return this.trays.storage.look(pathIn(dir, name)) !== undefined;
  }
}
