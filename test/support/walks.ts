/**
 * Walks over all cases of something, a kill at each call, say. CI takes a sample, chosen by a seed that stands at the end of the output:
 * `MAILCHUTE_WALKS_SEED=n` takes the same one again. `npm run test:walks` takes all, and names of files after `--` only theirs.
 */
import { seededRandom } from "./seeded-random.ts";

/** Whether all cases are wanted. */
export const IS_WHOLE = process.env["MAILCHUTE_WALKS"] === "all";
/** Set by vitest.config.ts where it is not given. */
export const WALKS_SEED = Number(process.env["MAILCHUTE_WALKS_SEED"]);

/** Why a test did not run that another sample runs. */
export const LEFT_OUT = "in another sample";

/** So many of them, in their order, or all. The same ones whatever was taken before. */
export function sampleOf<T>(all: readonly T[], count: number): T[] {
  if (IS_WHOLE) return [...all];
  const random = seededRandom(WALKS_SEED);
  const left = all.map((_, index) => index);
  const chosen = Array.from({ length: Math.min(count, all.length) }, () => {
    const [index = 0] = left.splice(random.below(left.length), 1);
    return index;
  });
  return chosen.sort((a, b) => a - b).map((index) => all[index] as T);
}

/** The numbers of some of so many calls, or of all. */
export function sampleOfCalls(calls: number, count: number): number[] {
  return sampleOf(
    Array.from({ length: calls }, (_, index) => index + 1),
    count,
  );
}
