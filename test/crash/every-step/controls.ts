/** Deliberately broken variants of the protocol. The machine must catch every one, or it proves nothing. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { nodeStorage } from "../../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../../src/mailbox/files/storage.ts";
import { POWER_CONTROLS } from "./power-controls.ts";

export interface Control {
  name: string;
  /** The operation on which it shows. */
  operation: string;
  /** What brings it to light: kills (also within a write), a pause while another takes over, or a plain run. */
  by: "kill" | "zombie" | "nothing";
  /** True: the recovery is broken, not the victim. */
  isRecovery?: boolean;
  storage: Storage;
}

const trayOf = (path: string): string => basename(dirname(path));
const isPublishing = (to: string): boolean => trayOf(to) === "outbox" || trayOf(to) === "failed";

function variant(change: Partial<Storage>): Storage {
  return { ...nodeStorage, ...change };
}

function renameInstead(
  when: (from: string, to: string) => boolean,
  move: (from: string, to: string) => void,
): Storage {
  return variant({
    rename: (from, to) => {
      if (typeof from === "string" && when(from, to)) move(from, to);
      else nodeStorage.rename(from, to);
    },
  });
}

function linkInstead(
  when: (from: string, to: string) => boolean,
  publish: (from: string, to: string) => void,
): Storage {
  return variant({
    link: (from, to) => {
      if (when(from, to)) publish(from, to);
      else nodeStorage.link(from, to);
    },
  });
}

const linkOnly = (from: string, to: string): void => nodeStorage.link(from, to);
const renameOver = (from: string, to: string): void => nodeStorage.rename(from, to);

/** A copy is not a move: for a moment there are two. */
function copyThenUnlink(from: string, to: string): void {
  nodeStorage.create(to, fs.readFileSync(from));
  nodeStorage.unlink(from);
}

/** And this way round there is none. */
function unlinkThenCreate(from: string, to: string): void {
  const bytes = fs.readFileSync(from);
  nodeStorage.unlink(from);
  nodeStorage.create(to, bytes);
}

/** Visible before it is whole. */
function writeInPlace(from: string, to: string): void {
  nodeStorage.create(to, fs.readFileSync(from));
}

const processingBeside = (path: string): string => join(dirname(dirname(path)), "processing");

export const CONTROLS: readonly Control[] = [
  {
    name: "submit publishes by rename",
    operation: "clash",
    by: "nothing",
    storage: linkInstead((_from, to) => trayOf(to) === "inbox", renameOver),
  },
  {
    name: "submit writes the task in place",
    operation: "submit",
    by: "kill",
    storage: linkInstead((_from, to) => trayOf(to) === "inbox", writeInPlace),
  },
  {
    name: "a result is published by rename",
    operation: "conflict",
    by: "nothing",
    storage: linkInstead((_from, to) => isPublishing(to), renameOver),
  },
  {
    name: "a result is written in place",
    operation: "complete",
    by: "kill",
    storage: linkInstead((_from, to) => isPublishing(to), writeInPlace),
  },
  {
    name: "the marker goes before the record is published",
    operation: "complete",
    by: "kill",
    storage: linkInstead(
      (_from, to) => isPublishing(to),
      (from, to) => {
        fs.rmSync(join(processingBeside(to), basename(from)), { force: true });
        nodeStorage.link(from, to);
      },
    ),
  },
  {
    name: "the commit does not give up the claim",
    operation: "complete",
    by: "kill",
    storage: renameInstead((from, to) => from.includes("~w-") && to.includes("~ok-"), linkOnly),
  },
  {
    name: "the commit does not mind that the claim is gone",
    operation: "fail",
    by: "zombie",
    storage: renameInstead(
      (from, to) => from.includes("~w-") && to.includes("~err-"),
      (from, to) => {
        if (fs.existsSync(from)) nodeStorage.rename(from, to);
      },
    ),
  },
  {
    name: "a claim is a copy",
    operation: "claim",
    by: "kill",
    storage: renameInstead((_from, to) => to.includes("~w-"), copyThenUnlink),
  },
  {
    name: "accepting is an unlink and a new file",
    operation: "accept",
    by: "kill",
    storage: renameInstead((from) => trayOf(from) === "inbox", unlinkThenCreate),
  },
  {
    name: "putting back is a link that leaves the claim",
    operation: "retry",
    by: "kill",
    storage: renameInstead((from, to) => from.includes("~w-") && to.includes("~ready"), linkOnly),
  },
  {
    name: "a dead letter is retried by copying",
    operation: "retry-dead-letter",
    by: "kill",
    storage: renameInstead((_from, to) => to.includes("~again-"), unlinkThenCreate),
  },
  {
    name: "a retry drops the record before the task is in the inbox",
    operation: "retry-dead-letter",
    by: "kill",
    storage: linkInstead(
      (from) => from.endsWith(".again.tmp"),
      (from, to) => {
        const processing = processingBeside(to);
        for (const file of fs.readdirSync(processing))
          if (file.includes("~again-")) fs.rmSync(join(processing, file));
        nodeStorage.link(from, to);
      },
    ),
  },
  {
    name: "a quarantine deletes the file",
    operation: "quarantine",
    by: "nothing",
    storage: renameInstead(
      (_from, to) => to.includes("~bad-"),
      (from) => nodeStorage.unlink(from),
    ),
  },
  {
    name: "a recovery does not look at markers",
    operation: "complete",
    by: "kill",
    isRecovery: true,
    storage: variant({
      list: (dir) => nodeStorage.list(dir).filter((name) => !/~(?:ok|err)-/.test(name)),
    }),
  },
  {
    name: "a recovery runs a committed task again",
    operation: "complete",
    by: "kill",
    isRecovery: true,
    storage: variant({
      list: (dir) => {
        const names = nodeStorage.list(dir);
        return names.map((name) => {
          if (trayOf(join(dir, "x")) !== "processing" || !name.includes("~ok-")) return name;
          // As another submission: under its own it is known as settled by its record.
          const claim = name.replace("~ok-", "~w-").replace(/@[a-z0-9]+\./, "@anew.");
          nodeStorage.rename(join(dir, name), join(dir, claim));
          return claim;
        });
      },
    }),
  },
];

export function brokenStorage(name: string | undefined): Storage {
  if (name === undefined) return nodeStorage;
  const control = [...CONTROLS, ...POWER_CONTROLS].find((c) => c.name === name);
  if (control === undefined) throw new Error(`no control ${name}`);
  return control.storage;
}
