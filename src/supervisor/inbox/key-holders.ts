/**
 * Decides which of the tasks with one `dedup_key` runs, when their files are read. With durability `power` a task waits until the note
 * that it is the holder is on the disk: otherwise another one could get the key after a power cut.
 */
import { holdKey, type KeyedTask, keyNotePath, keysDir } from "../../mailbox/submit/keys.ts";
import type { Environment } from "../environment/environment.ts";

type KeyEnvironment = Pick<Environment, "trays" | "facts" | "wake">;

/** `unsure`: the file is looked at again. */
export type KeyAnswer = "holds" | "taken" | "unsure";

export class KeyHolders {
  /** Holders whose notes are not on the disk yet, and their keys. */
  private readonly unsynced = new Map<string, string>();
  /** Holders whose notes are on the disk, until their files are looked at again. */
  private readonly synced = new Set<string>();
  /** Holders whose notes the disk refused, until their files are looked at again. */
  private readonly refused = new Map<string, unknown>();
  private syncing: Promise<void> | undefined;

  /** @param isOwned whether the task of this id belongs to a part */
  constructor(
    private readonly env: KeyEnvironment,
    private readonly isOwned: (id: string) => boolean,
  ) {}

  /** How many files wait for an answer, or for another look after it. */
  get unsureCount(): number {
    return this.unsynced.size + this.synced.size + this.refused.size;
  }

  /** @throws a system error: the file is then looked at again */
  judge(task: KeyedTask): KeyAnswer {
    const { trays, facts, wake } = this.env;
    // The part that owns the task handles it.
    if (this.isOwned(task.id)) return "holds";
    const of = holdKey(trays, task);
    const isSynced = this.synced.delete(task.id);
    if (of !== undefined) {
      facts.emit("task:key-taken", task.id, task.key, of);
      wake();
      return "taken";
    }
    if (isSynced || trays.durability !== "power") return "holds";
    if (this.refused.has(task.id)) {
      const refusal = this.refused.get(task.id);
      this.refused.delete(task.id);
      throw refusal;
    }
    this.unsynced.set(task.id, task.key);
    this.syncing ??= this.sync().finally(() => (this.syncing = undefined));
    return "unsure";
  }

  /** Holders with an answer that their files have not been looked at for. */
  answered(): string[] {
    return [...this.synced, ...this.refused.keys()];
  }

  /** The file of this id was looked at, or is gone: an answer that it has not asked for is void. */
  forget(id: string): void {
    this.synced.delete(id);
    this.refused.delete(id);
  }

  /** Resolves when no note is on its way to the disk. */
  async idle(): Promise<void> {
    await this.syncing;
  }

  /** One wait for the disk serves all tasks that have come in the meantime. */
  private async sync(): Promise<void> {
    const { trays, facts, wake } = this.env;
    while (this.unsynced.size > 0) {
      const group = [...this.unsynced];
      try {
        await trays.storage.syncFiles(group.map(([, key]) => keyNotePath(trays, key)));
        await trays.storage.syncDirs([keysDir(trays), trays.dir]);
        for (const [id] of group) this.synced.add(id);
      } catch (error) {
        for (const [id] of group) this.refused.set(id, error);
      }
      // Look at the files again even after a refusal: another task may have the key by now.
      for (const [id] of group) {
        this.unsynced.delete(id);
        facts.emit("inbox:written", `${id}.json`);
      }
      wake();
    }
  }
}
