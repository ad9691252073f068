/**
 * Preloaded beside clock-shift.mjs: deliberately broken variants of the protocol (MAILCHUTE_CHAOS_BROKEN), slow enough for
 * a fault to find them. The chaos must catch every one, or it proves nothing.
 */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";

const SLOW_MS = 100;
const { renameSync, linkSync, lstatSync, readdirSync } = fs;
const cell = new Int32Array(new SharedArrayBuffer(4));
const dawdle = () => Atomics.wait(cell, 0, 0, SLOW_MS);

const isCommit = (from, to) => String(from).includes("~w-") && /~(?:ok|err)-/.test(to);
const isClaim = (from, to) => String(from).includes("~ready") && String(to).includes("~w-");
const trayOf = (path) => basename(dirname(String(path)));
const isPublishing = (to) =>
  /^(?:outbox|failed)$/.test(trayOf(to)) && String(to).includes("mailbox");

const VARIANTS = {
  /** Whoever lost its lease neither sees that nor minds, and settles over what others settled. */
  "no-fence": () => {
    fs.renameSync = (from, to) => {
      try {
        renameSync(from, to);
      } catch (error) {
        if (error.code !== "ENOENT" || !isCommit(from, to)) throw error;
      }
    };
    fs.lstatSync = (path, options) => {
      const stats = lstatSync(path, options);
      return stats === undefined && String(path).includes("~w-") ? lstatSync(dirname(path)) : stats;
    };
    fs.linkSync = (from, to) => (isPublishing(to) ? renameSync : linkSync)(from, to);
  },
  /** A claim is a copy and an unlink: for a moment there are two. */
  "claim-by-copy": () => {
    fs.renameSync = (from, to) => {
      if (!isClaim(from, to)) return renameSync(from, to);
      fs.writeFileSync(to, fs.readFileSync(from));
      dawdle();
      fs.rmSync(from, { force: true });
    };
  },
  /** The marker goes before the record is there. */
  "marker-first": () => {
    fs.linkSync = (from, to) => {
      if (isPublishing(to)) {
        fs.rmSync(join(dirname(dirname(to)), "processing", basename(from)), { force: true });
        dawdle();
      }
      linkSync(from, to);
    };
  },
  /** What is ready waits until its file's time has come, whatever clock has set that. */
  "backoff-by-mtime": () => {
    const isPutOff = (dir, name) =>
      String(name).includes("~ready") &&
      (lstatSync(join(dir, name), { throwIfNoEntry: false })?.mtimeMs ?? 0) > Date.now();
    fs.readdirSync = (dir, options) => {
      const names = readdirSync(dir, options);
      return basename(String(dir)) === "processing" && options === undefined
        ? names.filter((name) => !isPutOff(dir, name))
        : names;
    };
  },
  /** A record is visible before it is whole. */
  "result-in-place": () => {
    fs.linkSync = (from, to) => {
      if (!isPublishing(to)) return linkSync(from, to);
      const bytes = fs.readFileSync(from);
      const fd = fs.openSync(to, "wx");
      fs.writeSync(fd, bytes.subarray(0, bytes.length / 2));
      dawdle();
      fs.writeSync(fd, bytes.subarray(bytes.length / 2));
      fs.closeSync(fd);
    };
  },
};

VARIANTS[process.env.MAILCHUTE_CHAOS_BROKEN]();
