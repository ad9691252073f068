/** A file of many slow tests of edges: CI runs its first one and a third of the others, as the seed of the walks chooses. */
import { beforeEach, type RunnerTestFile, type RunnerTestSuite } from "vitest";
import { IS_WHOLE, LEFT_OUT, sampleOf } from "./walks.ts";

function testsIn({ tasks }: RunnerTestSuite): string[] {
  return tasks.flatMap((task) => {
    if (task.mode !== "run" && task.mode !== "queued") return [];
    return task.type === "suite" ? testsIn(task) : [task.id];
  });
}

function choose(file: RunnerTestFile): Set<string> {
  const [first = "", ...others] = testsIn(file);
  return new Set([first, ...sampleOf(others, Math.ceil(others.length / 3))]);
}

/** To be called once, at the top of the file. `npm run test:walks` runs all. */
export function takeSome(): void {
  if (IS_WHOLE) return;
  let chosen: Set<string> | undefined;
  beforeEach(({ task, skip }) => {
    chosen ??= choose(task.file);
    skip(!chosen.has(task.id), LEFT_OUT);
  });
}
