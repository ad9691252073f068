/**
 * `roadmap.yaml` on disk, which people change at any moment by any means: nothing that they save is ever overwritten unseen.
 *
 * A replacement takes the old file away before it puts the new one in its place, and only there where nothing is:
 *
 *   stage `.tmp/…next`  →  rename `roadmap.yaml` to `.tmp/…old`  →  link `…next` to `roadmap.yaml`  →  unlink `…next`
 *
 * A rename over the name would be simpler, and would destroy what was saved in the instant before it. This way, whatever
 * was there is in our hands: if it is not what the new text was made from, it is put back and the caller starts again
 * from it. Cost: for some microseconds there is no `roadmap.yaml`; who reads then looks again. An editor that wrote into
 * the old file meanwhile is found out too: `…old` is kept for a while and looked at again.
 *
 * | dies after | on disk | `recoverLeftovers` |
 * |---|---|---|
 * | the staging | `…next` | removes it |
 * | the rename | no `roadmap.yaml`, `…old`, `…next` | puts the old one back |
 * | the link | the new `roadmap.yaml`, `…old` | removes `…old`, or, if a person wrote into it, puts that back |
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidRoadmap, ErrIo, messageOf, systemCode } from "../core/errors.ts";
import { judgeOwner, ownerSequence, thisProcess } from "../host/identity.ts";

/** A plan above this is refused unread (bytes). */
const ROADMAP_BYTES_MAX = 16 * 1024 * 1024;
/** A text that was the same for so long is whole: who saves in place empties the file first (ms). */
const SETTLED_MS = 30;
/**
 * A file that has become much shorter, or empty, is rather one that is about to be filled by somebody who was held up (ms):
 * half a plan reads like a whole one.
 */
const SHORTER_SETTLED_MS = 1000;
const MUCH_SHORTER = 0.9;
const POLL_MS = 10;
/** Who saves all the time must not keep us from reading: after this a text is taken as it is (ms). */
const UNSETTLED_MS_MAX = 2000;
/** For so long a missing file may be one that is being replaced (ms). */
const ABSENT_MS_MAX = 50;
/** A process that was stopped in the middle of a replacement has had time enough (ms). */
const GAP_MS_MAX = 1000;
/** An editor that opened the old file before it was replaced has written into it by then (ms). */
const OLD_KEPT_MS = 1000;
const LEFTOVER =
  /^(.+)\.([0-9a-f]{12}-[0-9a-z]+-[0-9a-z]+-[0-9a-z]+)\.([0-9a-f]{16})\.([0-9a-f]{16})\.(next|old)$/;
/** What file systems without hard links answer. */
const NO_LINKS: ReadonlySet<string> = new Set([
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
]);

/** A text and the state of the file that it was read from. */
export interface RoadmapText {
  /** "" when there is no file. A byte order mark is part of it. */
  text: string;
  /** Undefined when there is no file. */
  stamp: FileStamp | undefined;
}

interface FileStamp {
  /** Changes with each save that can be told from another: device, inode, size, mtime. */
  key: string;
  hash: string;
}

export type Replaced =
  | { kind: "replaced"; file: RoadmapText }
  /** Somebody saved in between: their text is what is there. Read it and apply the change to it. */
  | { kind: "changed" }
  /** Somebody took the file away: it stays away. */
  | { kind: "gone" };

/** What was found of a process that died, or of an editor that was slow. */
export interface Settled {
  /** True: the file now holds a text of somebody else; read it again. */
  hasChanged: boolean;
  /** Texts of people that lost against a later save, kept beside the plan under these paths. */
  conflicts: string[];
}

interface Old {
  path: string;
  /** Of the text that it must still hold. */
  baseHash: string;
  /** Of the text that was put in its place. */
  nextHash: string;
  /** Of the file, once it was found to hold that text. */
  key: string;
  /** Monotonic (ms). */
  sinceMs: number;
}

export class RoadmapFile {
  readonly path: string;
  private readonly isPower: boolean;
  private readonly nextOwner = ownerSequence(thisProcess());
  private olds: Old[] = [];
  /** Not yet told to anybody. */
  private conflicts: string[] = [];
  /** What we published last: known to be whole. */
  private own: FileStamp = { key: "", hash: "" };
  /** Size of the last text that we read or published. */
  private lastBytes = 0;

  /** @param path may be a symbolic link: then what it leads to is read and replaced */
  constructor(path: string, { durability }: { durability: "power" | "process" }) {
    this.path = path;
    this.isPower = durability === "power";
  }

  /**
   * The text, once nobody is in the middle of saving it.
   * @throws ErrInvalidRoadmap not UTF-8, too large, no regular file · ErrIo cannot be read
   */
  async read(): Promise<RoadmapText> {
    const startMs = performance.now();
    let seen: { key: string; sinceMs: number } | undefined;
    for (;;) {
      const nowMs = performance.now();
      const found = this.look();
      if (found === undefined) {
        const absentMs = nowMs - startMs;
        if (absentMs > ABSENT_MS_MAX && !this.mendGap(absentMs))
          return { text: "", stamp: undefined };
      } else {
        const { key, mtimeMs, bytes } = found;
        if (key !== seen?.key) seen = { key, sinceMs: nowMs };
        const quietMs = Math.max(nowMs - seen.sinceMs, Date.now() - mtimeMs);
        const isShorter =
          bytes?.length === 0 || (bytes?.length ?? 0) < MUCH_SHORTER * this.lastBytes;
        const isSettled =
          key === this.own.key || quietMs >= (isShorter ? SHORTER_SETTLED_MS : SETTLED_MS);
        if (bytes !== undefined && (isSettled || nowMs - startMs > UNSETTLED_MS_MAX)) {
          this.lastBytes = bytes.length;
          return { text: this.decode(bytes), stamp: { key, hash: hashOf(bytes) } };
        }
      }
      await wait(POLL_MS);
    }
  }

  /** True when the file is another than the one that was read. Cheap: one look at its facts. */
  hasChanged(since: RoadmapText): boolean {
    return keyAt(this.path) !== since.stamp?.key;
  }

  /**
   * Publishes `text`, if the file still holds what it was made from.
   * @param base as it was read, or as it was returned by the last replacement
   * @throws ErrIo: then the file is as it was
   */
  replace(base: RoadmapText, text: string): Replaced {
    if (this.checkOlds(false)) return { kind: "changed" };
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
   * Reads, changes and publishes, again from the start whenever somebody saved in between.
   * @param change the new text; the old one when nothing is to be done. Called once for each try. What it throws is passed on
   * @throws ErrIo also when there was no end of others' saving
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

  /** Looks again at what was replaced, where an editor may have been slow. Cheap; for every tick. */
  lookAgain(): Settled {
    const hasChanged = this.checkOlds(false);
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** Before the end of a process: looks at all that was replaced, once editors had some time. */
  async settle(): Promise<Settled> {
    const youngest = Math.max(0, ...this.olds.map((old) => old.sinceMs));
    const restMs = youngest + SETTLED_MS - performance.now();
    if (this.olds.length > 0 && restMs > 0) await wait(restMs);
    const hasChanged = this.checkOlds(true);
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** What processes left that died in the middle of a replacement. To be called before the first read. */
  recoverLeftovers(): Settled {
    let hasChanged = false;
    const target = this.target();
    if (target === undefined) return { hasChanged, conflicts: [] };
    const dir = tempDirOf(target);
    const names = listNames(dir);
    const found = names.flatMap((name) => {
      const [, file, owner, baseHash, nextHash, kind] = LEFTOVER.exec(name) ?? [];
      if (file !== basename(target) || owner === undefined || baseHash === undefined) return [];
      if (nextHash === undefined || judgeOwner(owner) !== "dead") return [];
      const path = join(dir, name);
      return [{ path, kind, baseHash, nextHash, ctimeMs: fs.lstatSync(path).ctimeMs }];
    });
    const olds = found.filter((one) => one.kind === "old").sort((a, b) => b.ctimeMs - a.ctimeMs);
    for (const old of olds) {
      const isHalfWay = names.includes(basename(old.path).replace(/old$/, "next"));
      if (fs.existsSync(`${old.path}.aside`)) {
        this.finishPutBack(target, old);
        hasChanged = true;
      } else if (isHalfWay && linkWhereNothingIs(old.path, target)) {
        hasChanged = true;
        fs.rmSync(old.path, { force: true });
      } else if (this.checkOld(target, old)) hasChanged = true;
    }
    for (const one of found) if (one.kind === "next") fs.rmSync(one.path, { force: true });
    return { hasChanged, conflicts: this.conflicts.splice(0) };
  }

  /** Whether a missing plan is one that somebody is replacing; who does not go on is helped. */
  private mendGap(absentMs: number): boolean {
    const target = this.target();
    if (target === undefined) return false;
    const dir = tempDirOf(target);
    const names = listNames(dir).filter((name) => LEFTOVER.exec(name)?.[1] === basename(target));
    const old = names.find(
      (name) => names.includes(name.replace(/old$/, "next")) && name.endsWith("old"),
    );
    if (old === undefined) return false;
    const owner = LEFTOVER.exec(old)?.[2] ?? "";
    // If it wakes up it finds the name taken, as if a person had saved, and starts again.
    if (absentMs > GAP_MS_MAX || judgeOwner(owner) === "dead")
      linkWhereNothingIs(join(dir, old), target);
    return true;
  }

  // ——— one replacement ———

  private create(bytes: Buffer, nextHash: string): Replaced {
    const target = this.target();
    if (target === undefined) return { kind: "gone" };
    const staged = this.stage(target, bytes, `${"0".repeat(16)}.${nextHash}`, undefined);
    const isThere = !linkWhereNothingIs(staged.path, target);
    fs.rmSync(staged.path, { force: true });
    if (isThere) return { kind: "changed" };
    this.sync(dirname(target));
    return this.published(bytes.toString(), staged.stats, nextHash);
  }

  private exchange(base: FileStamp, text: string, bytes: Buffer, nextHash: string): Replaced {
    const target = this.target();
    const before =
      target === undefined
        ? undefined
        : fs.statSync(target, { bigint: true, throwIfNoEntry: false });
    if (target === undefined || before === undefined) return { kind: "gone" };
    if (keyOf(before) !== base.key) return { kind: "changed" };
    const staged = this.stage(target, bytes, `${base.hash}.${nextHash}`, before);
    const old: Old = {
      path: staged.path.replace(/next$/, "old"),
      baseHash: base.hash,
      nextHash,
      key: base.key,
      sinceMs: performance.now(),
    };
    // From here to the link only these three calls: this long the plan is not there.
    try {
      fs.renameSync(target, old.path);
    } catch (error) {
      fs.rmSync(staged.path, { force: true });
      if (systemCode(error) === "ENOENT") return { kind: "gone" };
      throw error;
    }
    let isOurs: boolean;
    try {
      // Saved in the last instant: put back at once, so that nobody ever sees our text without it.
      const isBase = keyAt(old.path) === base.key;
      isOurs = linkWhereNothingIs(isBase ? staged.path : old.path, target) && isBase;
    } catch (error) {
      linkWhereNothingIs(old.path, target);
      fs.rmSync(old.path, { force: true });
      fs.rmSync(staged.path, { force: true });
      throw error;
    }
    this.sync(dirname(target));
    fs.rmSync(staged.path, { force: true });
    if (!isOurs) {
      // The file is back, or somebody saved into the gap, over whatever was there before: as if we had never been here.
      fs.rmSync(old.path, { force: true });
      return { kind: "changed" };
    }
    if (hashOfFile(old.path) !== base.hash) {
      this.putBack(target, old);
      return { kind: "changed" };
    }
    this.olds.push(old);
    return this.published(text, staged.stats, nextHash);
  }

  private published(text: string, stats: fs.BigIntStats, hash: string): Replaced {
    const key = keyOf(stats);
    this.own = { key, hash };
    this.lastBytes = Number(stats.size);
    return { kind: "replaced", file: { text, stamp: this.own } };
  }

  /** A whole file beside the target, with its rights. */
  private stage(
    target: string,
    bytes: Buffer,
    hashes: string,
    like: fs.BigIntStats | undefined,
  ): { path: string; stats: fs.BigIntStats } {
    const dir = tempDirOf(target);
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    const path = join(dir, `${basename(target)}.${this.nextOwner()}.${hashes}.next`);
    let fd: number | undefined;
    try {
      fd = fs.openSync(path, "wx", 0o600);
      fs.writeFileSync(fd, bytes);
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

  // ——— what was replaced ———

  /** Looks at old files again, and lets go of those that nobody can still be writing into. True: the plan is another now. */
  private checkOlds(isLast: boolean): boolean {
    const nowMs = performance.now();
    const target = this.olds.length === 0 ? undefined : this.target();
    if (target === undefined) return false;
    let hasChanged = false;
    const kept: Old[] = [];
    for (const old of this.olds) {
      const isYoung = !isLast && nowMs - old.sinceMs < OLD_KEPT_MS;
      if (isYoung && keyAt(old.path) === old.key) kept.push(old);
      else if (this.checkOld(target, old)) hasChanged = true;
    }
    this.olds = kept;
    return hasChanged;
  }

  /** Removes an old file that is what we took it for; else a person's text is in it, which comes into force: true. */
  private checkOld(target: string, old: Pick<Old, "path" | "baseHash" | "nextHash">): boolean {
    const hash = hashOfFile(old.path);
    if (hash === undefined) return false;
    if (hash !== old.baseHash) {
      this.putBack(target, old);
      return true;
    }
    fs.rmSync(old.path, { force: true });
    return false;
  }

  /**
   * The text in `old` was saved by somebody into a file that we had replaced: it takes the place of ours. If a person saved
   * over ours too, that is later and stays, and the older one is kept beside it.
   */
  private putBack(target: string, old: Pick<Old, "path" | "nextHash">): void {
    const aside = `${old.path}.aside`;
    try {
      fs.renameSync(target, aside);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
    this.finishPutBack(target, old);
  }

  private finishPutBack(target: string, old: Pick<Old, "path" | "nextHash">): void {
    const aside = `${old.path}.aside`;
    const hash = hashOfFile(aside);
    const isOurs = hash === undefined || hash === old.nextHash || this.isKnown(target, hash);
    // What was saved into the gap is later than both, and stays.
    const isPlaced = linkWhereNothingIs(isOurs ? old.path : aside, target);
    this.sync(dirname(target));
    const lost = isOurs ? (isPlaced ? [] : [old.path]) : isPlaced ? [old.path] : [old.path, aside];
    for (const path of lost) {
      if (!fs.existsSync(path) || isSameFile(path, target)) continue;
      const conflict = `${target}.conflict-${hashOfFile(path)?.slice(0, 8)}`;
      fs.renameSync(path, conflict);
      this.conflicts.push(conflict);
    }
    fs.rmSync(aside, { force: true });
    fs.rmSync(old.path, { force: true });
  }

  /** True for texts that we, or another process of ours, published just now: nobody else's are in them. */
  private isKnown(target: string, hash: string): boolean {
    return (
      hash === this.own.hash ||
      listNames(tempDirOf(target)).some((name) => LEFTOVER.exec(name)?.[4] === hash)
    );
  }

  // ——— the file system ———

  private look(): { key: string; mtimeMs: number; bytes: Buffer | undefined } | undefined {
    let fd: number | undefined;
    try {
      fd = fs.openSync(this.path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
      const before = fs.fstatSync(fd, { bigint: true });
      if (!before.isFile())
        throw new ErrInvalidRoadmap("the roadmap is no regular file", {
          path: this.path,
          phase: "read",
        });
      if (before.size > BigInt(ROADMAP_BYTES_MAX))
        throw new ErrInvalidRoadmap(
          `the roadmap has ${before.size} bytes, more than the limit of ${ROADMAP_BYTES_MAX}`,
          { path: this.path, phase: "read" },
        );
      const bytes = fs.readFileSync(fd);
      const key = keyOf(before);
      const isStill = keyOf(fs.fstatSync(fd, { bigint: true })) === key;
      return { key, mtimeMs: Number(before.mtimeMs), bytes: isStill ? bytes : undefined };
    } catch (error) {
      if (error instanceof ErrInvalidRoadmap) throw error;
      if (systemCode(error) === "ENOENT") return undefined;
      throw new ErrIo(`cannot read the roadmap: ${messageOf(error)}`, {
        path: this.path,
        phase: "read",
        cause: error,
        hint: "check its rights",
      });
    } finally {
      if (fd !== undefined) fs.closeSync(fd);
    }
  }

  private decode(bytes: Buffer): string {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (error) {
      throw new ErrInvalidRoadmap("the roadmap is not UTF-8", {
        path: this.path,
        phase: "read",
        cause: error,
        hint: "save it as UTF-8",
      });
    }
  }

  /** The file behind the path; the path itself when there is nothing; undefined for a link that leads nowhere. */
  private target(): string | undefined {
    try {
      return fs.realpathSync(this.path);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      const isLink = fs.lstatSync(this.path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
      return isLink ? undefined : join(fs.realpathSync(dirname(this.path)), basename(this.path));
    }
  }

  private sync(dir: string): void {
    if (!this.isPower) return;
    const fd = fs.openSync(dir, "r");
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  }
}

/** False when something is there already. */
function linkWhereNothingIs(from: string, to: string): boolean {
  try {
    fs.linkSync(from, to);
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === "EEXIST") return false;
    if (!NO_LINKS.has(code)) throw error;
    // Without hard links the check and the rename are two steps.
    if (fs.existsSync(to)) return false;
    fs.renameSync(from, to);
    return true;
  }
}

function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => fs.statSync(path, { throwIfNoEntry: false }));
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

function keyOf(stats: fs.BigIntStats): string {
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`;
}

function keyAt(path: string): string | undefined {
  const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : keyOf(stats);
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha1").update(bytes).digest("hex").slice(0, 16);
}

function hashOfFile(path: string): string | undefined {
  try {
    return hashOf(fs.readFileSync(path));
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function tempDirOf(target: string): string {
  return join(dirname(target), ".tmp");
}

function listNames(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Where we may: the file stays its owner's. */
function keepOwner(fd: number, like: fs.BigIntStats): void {
  const own = fs.fstatSync(fd, { bigint: true });
  if (own.uid === like.uid && own.gid === like.gid) return;
  try {
    fs.fchownSync(fd, Number(like.uid), Number(like.gid));
  } catch (error) {
    if (systemCode(error) !== "EPERM") throw error;
  }
}
