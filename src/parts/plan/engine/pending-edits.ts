/**
 * Keeps edits that are not in the plan's file yet. Also notes the nodes whose edits were written into a person's text that is not
 * judged yet. A document keeps both across a restart.
 */

import fs from "node:fs";
import { isObject } from "../../../core/json-object.ts";
import { foldId } from "../../../core/names.ts";
import { goodOf, having, type Is, isText, listOf, optional, shape } from "../../../core/shape.ts";
import { readDocument } from "../../../host/documents.ts";
import { replaceDocument } from "../../../host/replace-document.ts";
import { idOf, type RoadmapEdit } from "../edit/edit.ts";

/** Edits that are made together or not at all. */
export interface EditGroup {
  edits: readonly RoadmapEdit[];
  /** The node whose end caused these edits. */
  endOf?: string;
}

const isSubject = having({ id: isText });
const isEdit = (value: unknown): value is RoadmapEdit =>
  isObject(value) && isSubject(value["kind"] === "add" ? value["node"] : value);
/** A broken group is left out: otherwise the plan could not be loaded at all. */
const isGroup: Is<EditGroup> = having({ edits: listOf(isEdit), endOf: optional(isText) });
const pending = shape({ groups: goodOf(isGroup), carried: goodOf(isText) });

export class PendingEdits {
  private groups: EditGroup[];
  /** Folded ids. See `noteCarried`. */
  private carriedIds: Set<string>;
  /** True if the document on disk agrees with the values in memory. */
  isSaved = true;
  private isOnDisk: boolean;

  constructor(private readonly path: string) {
    const saved = readDocument(path, pending);
    this.groups = saved?.groups ?? [];
    this.carriedIds = new Set(saved?.carried);
    this.isOnDisk = saved !== undefined;
  }

  get isEmpty(): boolean {
    return this.groups.length === 0;
  }

  get edits(): RoadmapEdit[] {
    return editsOf(this.groups);
  }

  /** The nodes of the edits that `noteCarried` has noted, by folded id. */
  get carried(): ReadonlySet<string> {
    return this.carriedIds;
  }

  /**
   * Notes that the edits are about to be written into a person's text that is not judged yet. Their statuses do not tell how old that
   * text is. The note is saved first, so the next supervisor knows this if this one is killed. @throws a system error
   */
  noteCarried(): void {
    for (const edit of this.edits) this.carriedIds.add(foldId(idOf(edit)));
    this.isSaved = false;
    this.save();
  }

  /** Called when a text was judged. @param since edits that were written after it was read; the next text has them */
  forgetCarried(since: readonly RoadmapEdit[]): void {
    if (this.carriedIds.size === 0) return;
    this.carriedIds = new Set(since.map((edit) => foldId(idOf(edit))));
    this.isSaved = false;
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
    if (this.groups.length > 0 || this.carriedIds.size > 0) {
      replaceDocument(this.path, { groups: this.groups, carried: [...this.carriedIds] });
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
