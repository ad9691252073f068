/**
 * Says whether there is room for a new worktree: for the usual size of those of its repository, beside what others that are being made
 * will take. The usual size is learned from runs that have ended. The worker and the supervisor ask the same files, in `.room/`.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { bytesText } from "../../core/bytes-text.ts";
import { lackOf } from "../../core/free-space.ts";
import { STAGED_MAX_AGE_MS } from "../../core/retention.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { spaceOf } from "../../host/disk-room.ts";
import { touchDocument } from "../../host/documents.ts";
import { underLock } from "../../host/file-lock.ts";
import { listDir } from "../../host/list-dir.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { statOf, tryReadText, writeRegularText } from "../../host/regular-file.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { isInUse } from "./in-use.ts";
import { worktreesDir } from "./names.ts";

/** The gate at which tasks wait for room. */
export const ROOM_GATE = "disk-worktrees";
/** Worktrees that have stayed are looked at again so often while tasks wait (ms). */
const TIDY_MS = 60_000;

/** The task waits at the gate. */
export class NoRoom extends Error {}

export class DiskRoom {
  private readonly worktreesDir: string;
  private readonly dir: string;

  constructor(
    private readonly tree: StateTree,
    private readonly settings: Settings,
    private readonly trays: Trays,
  ) {
    this.worktreesDir = worktreesDir(tree.dir, settings);
    this.dir = join(this.worktreesDir, ".room");
  }

  /**
   * Call `release` when the worktree is made.
   * @param tidy removes ended worktrees
   * @throws NoRoom
   */
  async take(id: string, commonDir: string, tidy: () => Promise<void>): Promise<void> {
    const need = this.usualOf(commonDir);
    if (need === 0 || this.settings.free_bytes_min === 0) return;
    makeDirs(dirname(this.file("making", id)), 3);
    let why = await this.tryTake(id, need);
    if (why !== undefined && this.isTimeToTidy()) {
      const ended = this.ids().filter((one) => !isInUse(this.tree, this.trays, one));
      const tidied = this.file("tidied");
      writeRegularText(tidied, ended.join("\n"));
      touchDocument(tidied);
      await tidy();
      why = await this.tryTake(id, need);
    }
    if (why === undefined) return;
    writeRegularText(this.file("wanted"), String(need));
    throw new NoRoom(why);
  }

  release(id: string): void {
    fs.rmSync(this.file("making", id), { force: true });
  }

  /** @param bytes what a worktree of this repository takes after a run */
  learn(commonDir: string, bytes: number): void {
    const usual = this.usualOf(commonDir);
    const next = bytes > usual ? bytes : Math.round(usual + (bytes - usual) / 8);
    makeDirs(dirname(this.sizeFile(commonDir)), 3);
    if (next !== usual) writeRegularText(this.sizeFile(commonDir), String(next));
  }

  /** Why the tasks at the gate wait; undefined when none does, when there is room now, or when one of them is to tidy again. */
  waiting(): string | undefined {
    const wanted = this.file("wanted");
    const need = Number(tryReadText(wanted) ?? 0);
    const why = need > 0 && !this.isTimeToTidy() ? this.whyNot(need) : undefined;
    if (need > 0 && why === undefined) fs.rmSync(wanted, { force: true });
    return why;
  }

  private async tryTake(id: string, need: number): Promise<string | undefined> {
    return underLock(this.file("lock"), () => {
      this.release(id);
      const why = this.whyNot(need);
      if (why === undefined) writeRegularText(this.file("making", id), String(need));
      return why;
    });
  }

  /** Whether a task has ended whose worktree was not looked at since, or the last look is long ago. */
  private isTimeToTidy(): boolean {
    const tidied = this.file("tidied");
    if (Date.now() - (statOf(tidied)?.mtimeMs ?? 0) >= TIDY_MS) return true;
    const looked = new Set((tryReadText(tidied) ?? "").split("\n"));
    return this.ids().some((id) => !looked.has(id) && !isInUse(this.tree, this.trays, id));
  }

  private ids(): string[] {
    return listDir(this.worktreesDir).filter((name) => !name.startsWith("."));
  }

  private whyNot(need: number): string | undefined {
    const space = spaceOf(this.worktreesDir);
    if (space === undefined) return undefined;
    const making = listDir(this.file("making")).map((id) => this.bytesIn(this.file("making", id)));
    const others = making.reduce((sum, bytes) => sum + bytes, 0);
    const free = space.free - others - need;
    if (lackOf({ ...space, free }, this.settings.free_bytes_min, false) === undefined)
      return undefined;
    const more = others === 0 ? "" : `, and ${bytesText(others)} of that are for others`;
    return `a worktree usually takes ${bytesText(need)}; ${this.worktreesDir} has ${bytesText(space.free)} free${more} (free_bytes_min)`;
  }

  /** A process that was killed leaves its file. */
  private bytesIn(path: string): number {
    const ageMs = Date.now() - (statOf(path)?.mtimeMs ?? 0);
    if (ageMs > STAGED_MAX_AGE_MS) fs.rmSync(path, { force: true });
    return ageMs > STAGED_MAX_AGE_MS ? 0 : Number(tryReadText(path) ?? 0);
  }

  private usualOf(commonDir: string): number {
    return Number(tryReadText(this.sizeFile(commonDir)) ?? 0);
  }

  private sizeFile(commonDir: string): string {
    return this.file("sizes", createHash("sha256").update(commonDir).digest("hex").slice(0, 16));
  }

  private file(...names: string[]): string {
    return join(this.dir, ...names);
  }
}
