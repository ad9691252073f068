/** Deliberately broken variants of the protocol. The simulation must catch every one, or it proves nothing. */
import { basename, dirname, join } from "node:path";
import type { Storage } from "../../src/mailbox/storage.ts";
import type { Variant } from "./world.ts";

const trayOf = (path: string): string => basename(dirname(path));
const isFinal = (to: string): boolean => trayOf(to) === "outbox" || trayOf(to) === "failed";
const BYTES_MAX = 1_000_000;

function change(how: (port: Storage) => Partial<Storage>): Variant {
  return (port) => ({ ...port, ...how(port) });
}

function isThere(port: Storage, path: string): boolean {
  return port.look(path) !== undefined;
}

/** Visible before it is whole. */
function copy(port: Storage, from: string, to: string): void {
  port.create(to, port.read(from, BYTES_MAX).bytes ?? Buffer.alloc(0));
}

export interface Control {
  variant: Variant;
  /** The small case it shows in, where that takes more than a glance at each. */
  shownBy?: string;
}

const WHOLE = "a task from its submit to its result, with a recoverer that suspects the living";
const POWER = "the same, with the power going at any moment";

export const CONTROLS: Readonly<Record<string, Control>> = {
  "submit publishes by rename": {
    variant: change((port) => ({
      link: (from, to) => (trayOf(to) === "inbox" ? port.rename(from, to) : port.link(from, to)),
    })),
  },
  "submit writes the task in place": {
    variant: change((port) => ({
      link: (from, to) => (trayOf(to) === "inbox" ? copy(port, from, to) : port.link(from, to)),
    })),
  },
  "a result is published by rename": {
    shownBy: WHOLE,
    variant: change((port) => ({
      link: (from, to) => (isFinal(to) ? port.rename(from, to) : port.link(from, to)),
    })),
  },
  "a result is written in place": {
    variant: change((port) => ({
      link: (from, to) => (isFinal(to) ? copy(port, from, to) : port.link(from, to)),
    })),
  },
  "the marker goes before the record is published": {
    variant: change((port) => ({
      link(from, to) {
        const marker = join(dirname(dirname(from)), "processing", basename(from));
        if (isFinal(to) && isThere(port, marker)) port.unlink(marker);
        port.link(from, to);
      },
    })),
  },
  "the commit does not mind that the claim is gone": {
    shownBy: WHOLE,
    variant: change((port) => ({
      rename(from, to) {
        const isCommit = String(from).includes("~w-") && /~(?:ok|err)-/.test(to);
        if (!isCommit || isThere(port, String(from))) port.rename(from, to);
      },
    })),
  },
  "the commit is a link that leaves the claim": {
    variant: change((port) => ({
      rename(from, to) {
        const isCommit = String(from).includes("~w-") && /~(?:ok|err)-/.test(to);
        if (isCommit) port.link(String(from), to);
        else port.rename(from, to);
      },
    })),
  },
  "putting back copies the task before it gives up the claim": {
    variant: change((port) => ({
      rename(from, to) {
        if (!String(from).includes("~w-") || !to.includes("~ready")) return port.rename(from, to);
        copy(port, String(from), to);
        port.unlink(String(from));
      },
    })),
  },
  "putting back gives up the claim before it copies the task": {
    variant: change((port) => ({
      rename(from, to) {
        if (!String(from).includes("~w-") || !to.includes("~ready")) return port.rename(from, to);
        const { bytes } = port.read(String(from), BYTES_MAX);
        port.unlink(String(from));
        port.create(to, bytes ?? Buffer.alloc(0));
      },
    })),
  },
  "a claim is a link that leaves the task ready": {
    variant: change((port) => ({
      rename(from, to) {
        if (String(from).includes("~ready") && to.includes("~w-")) port.link(String(from), to);
        else port.rename(from, to);
      },
    })),
  },
  "a heartbeat makes the claim anew when it is gone": {
    shownBy: WHOLE,
    variant: change((port) => ({
      touch(path, mtimeMs) {
        if (path.includes("~w-") && !isThere(port, path)) port.create(path, Buffer.from("{}"));
        port.touch(path, mtimeMs);
      },
    })),
  },
  "a staged task is not synced before it is published": {
    variant: change((port) => ({
      syncFiles: async (paths) => {
        await port.syncFiles(paths.filter((path) => !path.endsWith(".json.tmp")));
      },
    })),
  },
  "a staged result is not synced before the commit": {
    shownBy: POWER,
    variant: change((port) => ({
      syncFiles: async (paths) => {
        await port.syncFiles(paths.filter((path) => !/~(?:ok|err)-/.test(path)));
      },
    })),
  },
  "the outbox is not synced before a result is reported": {
    shownBy: POWER,
    variant: change((port) => ({
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => !isFinal(join(path, "x"))));
      },
    })),
  },
  "the inbox is not synced before a task is acknowledged": {
    variant: change((port) => ({
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => basename(path) !== "inbox"));
      },
    })),
  },
  "the reason of a refusal is not synced before it is filed": {
    variant: change((port) => ({
      syncFiles: async (paths) => {
        await port.syncFiles(paths.filter((path) => !path.includes("~bad-")));
      },
    })),
  },
  "the sweep takes a staged record for left over when it sees no record": {
    shownBy: "a sweeper passes while a task is settled",
    variant: change((port) => {
      let isSweeping = false;
      return {
        walk(dir) {
          isSweeping = basename(dir) === ".tmp";
          return port.walk(dir);
        },
        look(path) {
          // Marker or not: what the sweep asks for before it removes a staged file.
          const isMarker =
            isSweeping &&
            /~(?:ok|err)-/.test(String(path)) &&
            trayOf(String(path)) === "processing";
          return isMarker ? undefined : port.look(path);
        },
      };
    }),
  },
  "a retry drops the record before the task is in the inbox": {
    variant: change((port) => ({
      link(from, to) {
        if (from.endsWith(".again.tmp")) {
          const dir = join(dirname(dirname(from)), "processing");
          const marker = port.list(dir).find((name) => name.includes("~again-"));
          if (marker !== undefined) port.unlink(join(dir, marker));
        }
        port.link(from, to);
      },
    })),
  },
  "a refused file is deleted": {
    variant: change((port) => ({
      rename(from, to) {
        if (to.includes("~bad-")) port.unlink(String(from));
        else port.rename(from, to);
      },
    })),
  },
  "a recovery does not look at markers": {
    variant: change((port) => ({
      list: (dir) => port.list(dir).filter((name) => !/~(?:ok|err)-/.test(name)),
    })),
  },
};
