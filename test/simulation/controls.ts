/** Deliberately broken variants of the protocol. The simulation must catch every one, or it proves nothing. */
import { basename, dirname, join } from "node:path";
import type { Broken } from "./cases.ts";
import type { Port } from "./descriptors.ts";
import type { Variant } from "./world.ts";

const trayOf = (path: string): string => basename(dirname(path));
const isFinal = (to: string): boolean => trayOf(to) === "outbox" || trayOf(to) === "failed";
const BYTES_MAX = 1_000_000;

function change(how: (port: Port) => Partial<Port>): Variant {
  return (port) => ({ ...port, ...how(port) });
}

function isThere(port: Port, path: string): boolean {
  return port.look(path) !== undefined;
}

/** Visible before it is whole. */
function copy(port: Port, from: string, to: string): void {
  port.create(to, port.read(from, BYTES_MAX).bytes ?? Buffer.alloc(0));
}

export interface Control extends Broken {
  /** The small case it shows in, where that takes more than a glance at each. */
  shownBy?: string;
}

const WHOLE = "a task from its submit to its result, with a recoverer that suspects the living";
const POWER = "the same, with the power going at any moment";

const BATCH_POWER = "a batch is settled while the power may go";
const BATCH_RETRY = "a settled batch is retried while the power may go";
const ONCE = "two submit a task once, and its record is taken away before one of them asks again";
const ONCE_OPEN = "the sender of a task that is submitted once died before it closed the ticket";
const ONCE_POWER = "a task that is submitted once, with the power going at any moment";
const SKIPS = "two tasks are skipped, while the one that failed is retried";
const SKIP = "a task is skipped, and recovered";
const CALLS = "a task that calls another one, with a recoverer that suspects the living";
const CALLS_POWER = "a task that calls another one, with the power going at any moment";
const KEYS = "two tasks with one key, seen by two supervisors";
const KEY_GIVEN_ON = "a key is given on by two supervisors";
const KEYS_POWER = "two tasks with one key while the power may go";
const CLOCKS = "a retry that a worker puts off whose clock is a day ahead";

export const CONTROLS: Readonly<Record<string, Control>> = {
  "a supervisor does not mind that another task has got the key just before": {
    shownBy: KEYS,
    variant: change((port) => ({
      link(from, to) {
        if (trayOf(to) !== ".keys" || !isThere(port, to)) port.link(from, to);
      },
    })),
  },
  "a supervisor frees a key although another task has got it since": {
    shownBy: KEY_GIVEN_ON,
    variant: (port) => {
      const judged = new Map<string, Buffer | undefined>();
      return {
        ...port,
        read(path, bytesMax) {
          const found = port.read(path, bytesMax);
          if (trayOf(path) !== ".keys") return found;
          const note = path.replace(/~$/, "");
          if (note === path) judged.set(note, found.bytes);
          return note === path ? found : { ...found, bytes: judged.get(note) };
        },
      };
    },
  },
  "a task runs before the note of its key is on the disk": {
    shownBy: KEYS_POWER,
    variant: change((port) => ({
      syncFiles: async (paths) => {
        await port.syncFiles(paths.filter((path) => trayOf(path) !== ".keys"));
      },
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => basename(path) !== ".keys"));
      },
    })),
  },
  "a supervisor believes that a task which had failed has failed still": {
    shownBy: SKIPS,
    variant: (port, program) => {
      const seen = new Map<string, ReturnType<Port["look"]>>();
      return {
        ...port,
        look(given) {
          const path = String(given);
          const facts =
            port.look(path) ?? (program.kind === "supervisor" ? seen.get(path) : undefined);
          if (facts !== undefined && path.endsWith("_error.json")) seen.set(path, facts);
          return facts;
        },
      };
    },
  },
  "what a dead supervisor was about to skip runs": {
    shownBy: SKIP,
    variant: change((port) => ({
      link(from, to) {
        if (!/~w-[^-]*-[^-]*-K/.test(from) || trayOf(to) !== "inbox") return port.link(from, to);
        port.rename(from, from.replace(/~w-.*$/, "~ready.json"));
      },
    })),
  },
  "a backoff goes by the time of the file alone": {
    shownBy: CLOCKS,
    backoffMaxMs: Number.POSITIVE_INFINITY,
  },
  "a time that no backoff can have set is left as it is": {
    shownBy: CLOCKS,
    variant: change((port) => ({
      touch(path, mtimeMs) {
        if (!path.includes("~ready")) port.touch(path, mtimeMs);
      },
    })),
  },
  "a supervisor forgets a task that it has chosen": {
    forgets: "a",
  },
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
  "recovery runs what has a record of the same submission": {
    shownBy: POWER,
    variant: (port, program) => ({
      ...port,
      read(path, bytesMax) {
        const isBlind = program.kind === "recoverer" && isFinal(path);
        return port.read(isBlind ? `${path}.none` : path, bytesMax);
      },
    }),
  },
  "the claim goes before the task is in the inbox for good": {
    shownBy: "a task is cancelled while the power may go",
    variant: change(() => ({ syncDirNow: () => {} })),
  },
  "a resend goes before the one that takes its place is in the inbox for good": {
    shownBy: "one task is sent twice while the power may go",
    variant: change(() => ({ syncDirNow: () => {} })),
  },
  "a file is filed before it is out of the inbox for good": {
    shownBy: "a bad file is refused while the power may go",
    variant: change((port) => ({
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => path !== "/m/processing"));
      },
    })),
  },
  "a retried task is in the inbox before its record is out of failed for good": {
    shownBy: "a dead letter is retried while the power may go",
    variant: change((port) => ({
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => path !== "/m/failed"));
      },
    })),
  },
  "a record is archived while its claim may come back": {
    shownBy: "a record is archived while the power may go",
    variant: change((port) => ({
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => path !== "/m/processing"));
      },
    })),
  },
  "a command is acknowledged while it may come back to the inbox": {
    shownBy: "a command is given and taken while the power may go",
    variant: change((port) => ({
      syncDirs: async (paths) => {
        await port.syncDirs(paths.filter((path) => path !== "/c/processing"));
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
  "a run again takes the result away before its marker is there": {
    shownBy: "a completed task is run again twice at once, and recovered",
    variant: change((port) => ({
      rename(from, to) {
        const isRerun = trayOf(String(from)) === "outbox" && to.includes("~again-");
        if (!isRerun) return port.rename(from, to);
        const { bytes } = port.read(String(from), BYTES_MAX);
        port.unlink(String(from));
        port.create(to, bytes ?? Buffer.alloc(0));
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
  "a batch is kept only after its record is": {
    shownBy: BATCH_POWER,
    variant: change((port) => ({
      link(from, to) {
        const hasRecord = ["_result.json", "_error.json"].some((end) =>
          isThere(port, to.replace(/~[^~]+_batch\.ndjson$/, end)),
        );
        if (!to.endsWith("_batch.ndjson") || hasRecord) port.link(from, to);
      },
    })),
  },
  "the results of a batch are not synced before the commit": {
    shownBy: BATCH_POWER,
    variant: change((port) => ({
      syncFiles: async (paths) => {
        await port.syncFiles(paths.filter((path) => !path.endsWith("_results.ndjson")));
      },
      syncData: async () => {},
    })),
  },
  "recovery runs a batch that has a record of the same submission": {
    shownBy: BATCH_POWER,
    variant: (port, program) => ({
      ...port,
      read(path, bytesMax) {
        const isBlind = program.kind === "recoverer" && isFinal(path);
        return port.read(isBlind ? `${path}.none` : path, bytesMax);
      },
    }),
  },
  "a batch that comes twice is compared with the settled one only": {
    shownBy: "a batch is dropped again while the first one waits for a worker",
    variant: (port, program) => ({
      ...port,
      openToRead(path) {
        const isBlind = program.kind === "supervisor" && /\/processing\/.*~(?!bad-)/.test(path);
        return port.openToRead(isBlind ? `${path}.none` : path);
      },
    }),
  },
  "what completed of a batch is not synced before its old results go": {
    shownBy: BATCH_RETRY,
    variant: change(() => ({ syncData: async () => {} })),
  },
  "a worker takes over nothing of what earlier runs of a batch have left": {
    shownBy: BATCH_RETRY,
    variant: (port, program) => ({
      ...port,
      list: (dir) =>
        program.kind === "worker" && basename(dir) === ".tmp"
          ? port.list(dir).filter((name) => !name.endsWith("_results.ndjson"))
          : port.list(dir),
    }),
  },
  "a retry of a batch does not mind that it is being settled": {
    shownBy: "a batch is retried before its settler has taken its marker away",
    variant: (port, program) => ({
      ...port,
      list: (dir) =>
        program.kind === "operator"
          ? port.list(dir).filter((name) => !/~(?:ok|err)-/.test(name))
          : port.list(dir),
    }),
  },
  "a task that is submitted once is accepted and run while its ticket is open": {
    shownBy: ONCE_OPEN,
    variant: (port, program) => ({
      ...port,
      read(path, bytesMax) {
        const found = port.read(path, bytesMax);
        const isBlind = program.kind === "supervisor" || program.kind === "worker";
        return isBlind ? { ...found, facts: { ...found.facts, nlink: 1 } } : found;
      },
    }),
  },
  "the note of a task that is submitted once is replaced": {
    shownBy: ONCE,
    variant: change((port) => ({
      link(from, to) {
        if (to.endsWith(".note")) port.rename(from, to);
        else port.link(from, to);
      },
    })),
  },
  "the ticket is closed before it is in the inbox": {
    shownBy: ONCE,
    variant: change((port) => ({
      link(from, to) {
        if (trayOf(from) !== ".once" || isThere(port, to)) return port.link(from, to);
        const { bytes } = port.read(from, BYTES_MAX);
        port.unlink(from);
        port.create(to, bytes ?? Buffer.alloc(0));
      },
    })),
  },
  "the ticket is closed before its name in the inbox is synced": {
    shownBy: ONCE_POWER,
    variant: change((port) => ({
      syncDirs: (paths) =>
        port.syncDirs(paths.filter((path) => !/\/(?:inbox|processing)$/.test(path))),
      syncDirNow: () => {},
    })),
  },
  "no note is left of a task that is submitted once": {
    shownBy: ONCE,
    variant: change((port) => ({
      unlink(path) {
        port.unlink(path);
        const note = path.replace(/~[^~]+\.json$/, ".note");
        if (trayOf(path) === ".once" && isThere(port, note)) port.unlink(note);
      },
    })),
  },
  "the marker goes before what it calls is submitted": {
    shownBy: CALLS,
    variant: change((port) => ({
      create(path, bytes) {
        if (/\.on_settled-[^/]+\.json\.tmp$/.test(path))
          for (const name of port.list("/m/processing"))
            if (name.includes("~ok-")) port.unlink(`/m/processing/${name}`);
        port.create(path, bytes);
      },
    })),
  },
  "the record of a task that calls another one is published before its marker is synced": {
    shownBy: CALLS_POWER,
    variant: change((port) => ({
      syncDirs: (paths) =>
        paths.length === 1 && paths[0] === "/m/processing"
          ? Promise.resolve()
          : port.syncDirs(paths),
    })),
  },
  "a recovery does not look at markers": {
    variant: change((port) => ({
      list: (dir) => port.list(dir).filter((name) => !/~(?:ok|err)-/.test(name)),
    })),
  },
};
