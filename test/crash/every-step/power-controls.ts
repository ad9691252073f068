/** Variants that forget to wait for the disk. The machine that cuts the power must catch every one. */
import { basename, dirname } from "node:path";
import { nodeStorage } from "../../../src/mailbox/files/node-storage.ts";
import type { Storage } from "../../../src/mailbox/files/storage.ts";
import type { Durability } from "./place.ts";

export interface PowerControl {
  name: string;
  /** The operation on which it shows. */
  operation: string;
  durability?: Durability;
  storage: Storage;
}

/** Their names become durable, their contents are left to the kernel. */
const withoutFiles: Storage = {
  ...nodeStorage,
  syncFiles: (paths) => nodeStorage.syncDirs(paths.map((path) => dirname(path))),
};

/** Names in this directory that are left to the kernel. */
const withoutDir = (tray: string): Storage => ({
  ...nodeStorage,
  syncDirs: (paths) => nodeStorage.syncDirs(paths.filter((path) => basename(path) !== tray)),
});

export const POWER_CONTROLS: readonly PowerControl[] = [
  { name: "a task is not synced", operation: "submit", storage: withoutFiles },
  { name: "the name of a task is not synced", operation: "submit", storage: withoutDir("inbox") },
  { name: "a result is not synced", operation: "complete", storage: withoutFiles },
  {
    name: "the name of a result is not synced",
    operation: "complete",
    storage: withoutDir("outbox"),
  },
  { name: "an error record is not synced", operation: "fail", storage: withoutFiles },
  {
    name: "the name of an error record is not synced",
    operation: "fail",
    storage: withoutDir("failed"),
  },
  {
    name: "a retried task is not synced",
    operation: "retry-dead-letter",
    storage: withoutFiles,
  },
  {
    name: "a retry with durability process",
    operation: "retry-dead-letter",
    durability: "process",
    storage: nodeStorage,
  },
  { name: "the reason of a refusal is not synced", operation: "quarantine", storage: withoutFiles },
  {
    name: "what recovery settles is not synced",
    operation: "recover",
    storage: withoutFiles,
  },
  {
    name: "tasks with durability process",
    operation: "submit",
    durability: "process",
    storage: nodeStorage,
  },
  {
    name: "results with durability process",
    operation: "complete",
    durability: "process",
    storage: nodeStorage,
  },
  {
    name: "a batch with durability process",
    operation: "batch-submit",
    durability: "process",
    storage: nodeStorage,
  },
  {
    name: "a plan with durability process",
    operation: "roadmap-set-status",
    durability: "process",
    storage: nodeStorage,
  },
];
