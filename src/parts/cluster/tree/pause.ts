/** Whether a person has paused the pool of this tree, as `control.json` says. Reads only. */
import { controlOf } from "../../../core/saved-documents.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { Kept, stampOf } from "../../../view/kept.ts";
import { readJsonObject } from "../../../view/scan.ts";

/** @returns a function that looks again when the file has changed */
export function pauseOf({ controlState }: Pick<StateTree, "controlState">): () => boolean {
  const kept = new Kept<boolean>();
  return () =>
    kept.get(stampOf(controlState), () => controlOf(readJsonObject(controlState)).paused);
}
