/** Reads what other machines report about their runs of this tree's tasks. Reads nothing when no task is at another machine. */

import { CLUSTER_GATE, leaseOf } from "../core/names.ts";
import { type RemoteRun, remoteRunsOf } from "../core/saved-documents.ts";
import type { StateTree } from "../core/state-tree.ts";
import { readDocument } from "../host/documents.ts";
import { judgeOwner } from "../host/identity.ts";
import { statOf } from "../host/regular-file.ts";
import type { TaskPlace } from "./find-task.ts";

/** The document is written every few seconds. When it is older than this (ms), its writer is gone or hangs. */
const STALE_MS = 15_000;

/** Whether the task waits for its result from another machine. */
export function isAway({ name }: Pick<TaskPlace, "name">): boolean {
  return name?.stage === "hold" && name.token.startsWith(CLUSTER_GATE);
}

/** @param places the tasks to look for @returns their runs at other machines, by lease */
export function readRemoteRuns(
  { remoteRuns: path }: Pick<StateTree, "remoteRuns">,
  places: readonly Pick<TaskPlace, "name">[],
  nowMs: number,
): ReadonlyMap<string, RemoteRun> {
  const away = places.filter(isAway);
  if (away.length === 0) return new Map();
  const written = statOf(path);
  if (written === undefined || Math.abs(nowMs - written.mtimeMs) > STALE_MS) return new Map();
  const { owner = "", runs = [] } = readDocument(path, remoteRunsOf) ?? {};
  if (runs.length === 0 || judgeOwner(owner) === "dead") return new Map();
  const known = new Map(runs.map((run) => [run.lease, run]));
  return new Map(
    away.flatMap(({ name }) => {
      const run = name && known.get(leaseOf(name));
      return run === undefined ? [] : [[run.lease, run]];
    }),
  );
}
