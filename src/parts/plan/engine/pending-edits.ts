/** Edits that are not in the plan's file yet. While that file cannot be written, a document keeps them across a restart. */
import fs from "node:fs";
import { isObject } from "../../../core/json-object.ts";
import { readDocument, replaceDocument } from "../../../host/documents.ts";
import type { RoadmapEdit } from "../edit/edit.ts";

/** Edits that are made together or not at all. */
export interface EditGroup {
  edits: readonly RoadmapEdit[];
  /** The node whose end caused these edits. */
  endOf?: string;
}

export class PendingEdits {
  private readonly path: string;
  private groups: EditGroup[];
  private isSaved = true;
  private isOnDisk: boolean;

  constructor(path: string) {
    this.path = path;
    const saved = readDocument<{ groups?: unknown }>(path)?.groups;
    this.groups = Array.isArray(saved) ? saved.filter(isGroup) : [];
    this.isOnDisk = this.groups.length > 0;
  }

  get isEmpty(): boolean {
    return this.groups.length === 0;
  }

  get edits(): RoadmapEdit[] {
    return editsOf(this.groups);
  }

  add(group: EditGroup): void {
    this.groups.push(group);
    this.isSaved = false;
  }

  /** Removes all groups and returns them. */
  take(): EditGroup[] {
    const taken = this.groups;
    this.groups = [];
    this.isSaved = false;
    return taken;
  }

  /** @returns true: the edits will survive a crash. @throws a system error */
  save(): boolean {
    if (this.isSaved) return true;
    if (this.groups.length > 0) {
      replaceDocument(this.path, { groups: this.groups });
      this.isOnDisk = true;
    } else if (this.isOnDisk) {
      fs.rmSync(this.path, { force: true });
      this.isOnDisk = false;
    }
    this.isSaved = true;
    return true;
  }
}

export function editsOf(groups: readonly EditGroup[]): RoadmapEdit[] {
  return groups.flatMap((group) => group.edits);
}

/** False for a broken group, which is left out: otherwise the plan could not be loaded at all. */
function isGroup(value: unknown): value is EditGroup {
  if (!isObject(value) || !["string", "undefined"].includes(typeof value["endOf"])) return false;
  return Array.isArray(value["edits"]) && value["edits"].every(isEdit);
}

function isEdit(value: unknown): boolean {
  if (!isObject(value)) return false;
  const subject = value["kind"] === "add" ? value["node"] : value;
  return isObject(subject) && typeof subject["id"] === "string";
}
