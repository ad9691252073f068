/** The port for readers that know ids which are not in the trays, such as the plan. Reads only. */
import type { AgentSettings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { DependencyState } from "../core/unmet.ts";

export interface IdReader {
  /** Reads what has changed. A source that cannot be read has no ids. */
  refresh(): Promise<void>;
  ids(): string[];
  /** The state of a node, for tasks that wait for it; undefined when the reader does not know the id. */
  standing(id: string): DependencyState | undefined;
  /** Reads the ids again and returns a function that says whether an id exists; undefined when the source is broken. */
  membership(): Promise<((id: string) => boolean) | undefined>;
}

export function isFailedNode(reader: IdReader, id: string): boolean {
  return reader.standing(id)?.how === "failed";
}

/** @param agents undefined when the settings cannot be read: every agent then counts as existing */
export type MakeIdReader = (
  tree: StateTree,
  agents: readonly AgentSettings[] | undefined,
) => IdReader;

/** Combines several readers. */
export class IdReaders implements IdReader {
  constructor(private readonly readers: readonly IdReader[]) {}

  async refresh(): Promise<void> {
    for (const reader of this.readers) await reader.refresh();
  }

  ids(): string[] {
    return this.readers.flatMap((reader) => reader.ids());
  }

  standing(id: string): DependencyState | undefined {
    for (const reader of this.readers) {
      const standing = reader.standing(id);
      if (standing !== undefined) return standing;
    }
    return undefined;
  }

  /** Undefined also when no reader can answer. */
  async membership(): Promise<((id: string) => boolean) | undefined> {
    const all = await Promise.all(this.readers.map((reader) => reader.membership()));
    if (all.length === 0 || all.includes(undefined)) return undefined;
    return (id) => all.some((isMember) => isMember?.(id));
  }
}
