/** Tells from `control.json` whether a person has paused the pool of this tree. Only reads. */
import { controlOf } from "../../../core/saved-documents.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { stampOf } from "../../../view/kept.ts";
import { readJsonObject } from "../../../view/scan.ts";

/** @returns a function that reads the file again only when it has changed */
export function pauseOf({ controlState }: Pick<StateTree, "controlState">): () => boolean {
  let isPaused = false;
  let known: string | undefined;
  return () => {
    const stamp = stampOf(controlState);
    if (stamp !== known) isPaused = controlOf(readJsonObject(controlState)).paused;
    known = stamp;
    return isPaused;
  };
}
