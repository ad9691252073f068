/**
 * Reads and replaces `roadmap.yaml`, which people may save at any moment with any program. Their text is never overwritten unread.
 *
 * A replacement moves the old file away, and then puts the new file in its place only if the name is free:
 *
 *   stage `.tmp/…next`  →  rename `roadmap.yaml` to `.tmp/…old`  →  link `…next` to `roadmap.yaml`  →  unlink `…next`
 *
 * Renaming the new file over the old one would be simpler, but would destroy a text that was saved just before. This way the old
 * file still exists: if it is not the text that the new one was made from, it is put back and the caller starts again with it.
 * The cost: for some microseconds there is no `roadmap.yaml`, and a reader must try again. An editor may also write into the old
 * file after the rename. So `…old` is kept for a short time and checked again.
 *
 * | crash after | on disk | `recoverLeftovers` |
 * |---|---|---|
 * | the staging | `…next` | removes it |
 * | the rename | no `roadmap.yaml`, `…old`, `…next` | puts the old one back |
 * | the link | the new `roadmap.yaml`, `…old` | removes `…old`, or puts it back if a person wrote into it |
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ErrIo, messageOf, systemCode } from "../../../core/errors.ts";
import { syncDir } from "../../../host/documents.ts";
import { ownerSequence, thisProcess } from "../../../host/identity.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { exactStatOf, openNew, statOf } from "../../../host/regular-file.ts";
import { writeWhole } from "../../../mailbox/files/node-storage.ts";
import {
  type FileStamp,
  hashOf,
  hashOfFile,
  keepOwner,
  keyAt,
  keyOf,
  linkWhereNothingIs,
  targetOf,
} from "./file-facts.ts";
import { type Old, ReplacedFiles, stagedPath } from "./replaced-files.ts";
import { decodeSaved, isWhole, readSaved } from "./saved-text.ts";

const POLL_MS = 10;
/** A file that is missing for this long may be in the middle of a replacement (ms). */
const ABSENT_MS_MAX = 50;

/** A text and the state of the file that it was read from. */
export interface RoadmapText {
  /** "" when there is no file. A byte order mark is part of it. */
  text: string;
  /** Undefined when there is no file. */
  stamp: FileStamp | undefined;
}

export type Replaced =
  | { kind: "replaced"; file: RoadmapText }
  /** Another writer saved in between, and its text is in the file. Read it and apply the change to it. */
  | { kind: "changed" }
  /** A person removed the file; it is not created again. */
  | { kind: "gone" };

export class RoadmapFile {
  private readonly isPower: boolean;
  private readonly nextOwner = ownerSequence(thisProcess());
  /** The old files, into which an editor may still write. */
  readonly replaced: ReplacedFiles;
  /** The file that this process published last, which is known to be complete. */
  private own: FileStamp = { key: "", hash: "" };
  /** Size of the text that this process last read or published. */
  private lastBytes = 0;

  /** @param path may be a symbolic link: then the file it leads to is read and replaced */
  constructor(
    readonly path: string,
    { durability }: { durability: "power" | "process" },
  ) {
    this.isPower = durability === "power";
    this.replaced = new ReplacedFiles(path, this.isPower);
  }

  /**
   * Reads the text, after waiting until its save is complete.
   * @throws ErrInvalidRoadmap not UTF-8, too large, not a regular file · ErrIo cannot be read
   */
  async read(): Promise<RoadmapText> {
    const startMs = performance.now();
    let seen: { key: string; sinceMs: number } | undefined;
    for (;;) {
      const nowMs = performance.now();
      const found = readSaved(this.path);
      if (found === undefined) {
        const absentMs = nowMs - startMs;
        if (absentMs > ABSENT_MS_MAX && !this.replaced.mendGap(absentMs))
          return { text: "", stamp: undefined };
      } else {
        const { key, mtimeMs, bytes } = found;
        if (key !== seen?.key) seen = { key, sinceMs: nowMs };
        const quietMs = Math.max(nowMs - seen.sinceMs, Date.now() - mtimeMs);
        const since = { quietMs, waitedMs: nowMs - startMs, lastBytes: this.lastBytes };
        if (bytes !== undefined && (key === this.own.key || isWhole(bytes, since))) {
          this.lastBytes = bytes.length;
          return { text: decodeSaved(bytes, this.path), stamp: { key, hash: hashOf(bytes) } };
        }
      }
      await wait(POLL_MS);
    }
  }

  /** True if the file has changed since it was read. Cheap: one stat call. */
  hasChanged(since: RoadmapText): boolean {
    return keyAt(this.path) !== since.stamp?.key;
  }

  /** How long ago the file was written (ms). */
  savedAgoMs(): number {
    return Date.now() - (statOf(this.path)?.mtimeMs ?? Date.now());
  }

  /**
   * Publishes `text`, if the file still holds the text that it was made from.
   * @param base what `read` or the last replacement returned
   * @throws ErrIo: then the file is unchanged
   */
  replace(base: RoadmapText, text: string): Replaced {
    if (this.replaced.check(false)) return { kind: "changed" };
    const bytes = Buffer.from(text);
    const nextHash = hashOf(bytes);
    try {
      return base.stamp === undefined
        ? this.create(bytes, nextHash)
        : this.exchange(base.stamp, text, bytes, nextHash);
    } catch (error) {
      if (error instanceof ErrIo) throw error;
      throw new ErrIo(`cannot replace the roadmap: ${messageOf(error)}`, {
        path: this.path,
        phase: "publish",
        cause: error,
        hint: "check the disk and the rights of the directory; the plan is as it was",
      });
    }
  }

  /**
   * Reads, changes and publishes the text; starts again whenever another writer saved in between.
   * @param change returns the new text, or the old one if there is nothing to change. Called once for each try. Its errors are passed on
   * @throws ErrIo also if other writers do not stop saving
   */
  async update(change: (text: string) => string | Promise<string>): Promise<RoadmapText> {
    for (let tries = 0; tries < 200; tries++) {
      const base = await this.read();
      const text = await change(base.text);
      if (text === base.text) return base;
      const outcome = this.replace(base, text);
      if (outcome.kind === "replaced") return outcome.file;
      if (outcome.kind === "gone") await wait(POLL_MS);
    }
    throw new ErrIo("the roadmap is being saved all the time", {
      path: this.path,
      phase: "publish",
      hint: "find out which program writes it, and try again",
    });
  }

  // ——— one replacement ———

  private create(bytes: Buffer, nextHash: string): Replaced {
    const target = targetOf(this.path);
    if (target === undefined) return { kind: "gone" };
    const staged = this.stage(target, bytes, ["0".repeat(16), nextHash], undefined);
    const isThere = !linkWhereNothingIs(staged.path, target);
    fs.rmSync(staged.path, { force: true });
    if (isThere) return { kind: "changed" };
    if (this.isPower) syncDir(dirname(target));
    return this.published(bytes.toString(), staged.stats, nextHash);
  }

  private exchange(base: FileStamp, text: string, bytes: Buffer, nextHash: string): Replaced {
    const target = targetOf(this.path);
    const before = target === undefined ? undefined : exactStatOf(target);
    if (target === undefined || before === undefined) return { kind: "gone" };
    if (keyOf(before) !== base.key) return { kind: "changed" };
    const staged = this.stage(target, bytes, [base.hash, nextHash], before);
    const old: Old = {
      path: staged.path.replace(/next$/, "old"),
      baseHash: base.hash,
      nextHash,
      key: base.key,
      sinceMs: performance.now(),
    };
    // The plan is missing from here to the link, so there are only three system calls in between.
    try {
      fs.renameSync(target, old.path);
    } catch (error) {
      fs.rmSync(staged.path, { force: true });
      if (systemCode(error) === "ENOENT") return { kind: "gone" };
      throw error;
    }
    let isOurs: boolean;
    try {
      // If a person saved at the last moment, that file is put back at once, so that no reader sees the new text without it.
      const isBase = keyAt(old.path) === base.key;
      isOurs = linkWhereNothingIs(isBase ? staged.path : old.path, target) && isBase;
    } catch (error) {
      linkWhereNothingIs(old.path, target);
      fs.rmSync(old.path, { force: true });
      fs.rmSync(staged.path, { force: true });
      throw error;
    }
    if (this.isPower) syncDir(dirname(target));
    fs.rmSync(staged.path, { force: true });
    if (!isOurs) {
      // The old file is back, or another writer saved a new one while the name was free. Nothing was replaced.
      fs.rmSync(old.path, { force: true });
      return { kind: "changed" };
    }
    if (hashOfFile(old.path) !== base.hash) {
      this.replaced.putBack(target, old);
      return { kind: "changed" };
    }
    this.replaced.add(old);
    return this.published(text, staged.stats, nextHash);
  }

  private published(text: string, stats: fs.BigIntStats, hash: string): Replaced {
    const key = keyOf(stats);
    this.own = { key, hash };
    this.replaced.ownHash = hash;
    this.lastBytes = Number(stats.size);
    return { kind: "replaced", file: { text, stamp: this.own } };
  }

  /** Writes the complete new file into the folder for staged files, with the rights of the old one. */
  private stage(
    target: string,
    bytes: Buffer,
    [baseHash, nextHash]: readonly [string, string],
    like: fs.BigIntStats | undefined,
  ): { path: string; stats: fs.BigIntStats } {
    const path = stagedPath(target, this.nextOwner(), baseHash, nextHash);
    makeDirs(dirname(path));
    let fd: number | undefined;
    try {
      fd = openNew(path);
      writeWhole(fd, bytes);
      if (like !== undefined) {
        fs.fchmodSync(fd, Number(like.mode) & 0o7777);
        keepOwner(fd, like);
      }
      if (this.isPower) fs.fsyncSync(fd);
      const stats = fs.fstatSync(fd, { bigint: true });
      if (stats.size !== BigInt(bytes.length))
        throw Object.assign(new Error("ENOSPC: the plan could not be written whole"), {
          code: "ENOSPC",
        });
      return { path, stats };
    } catch (error) {
      fs.rmSync(path, { force: true });
      throw error;
    } finally {
      if (fd !== undefined) fs.closeSync(fd);
    }
  }
}
