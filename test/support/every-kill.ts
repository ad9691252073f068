/** Walks over all calls of git of a step, with a kill at each: between two calls, and within those that change something. */

import { canCountSteps, type GitCallMade, type GitKill, stepsThatMatter } from "./counting-git.ts";
import { seededRandom } from "./seeded-random.ts";
import { sampleOf, WALKS_SEED } from "./walks.ts";

/** Of six moments and victims. */
const SAMPLE = 2;
/** How many walks go on at once. */
const AT_ONCE = 3;

/** @param kill undefined: it only counts, with the steps of each call if it can. @returns the calls that it made */
export type Walk = (kill: GitKill | "count" | "steps") => Promise<GitCallMade[]>;

/** A call with more steps is killed within only when it is the first one of its kind: a rebase, say, of the second round of a landing is not. */
const STEPS_MAX = 30;

/**
 * Each kill of a step that makes these calls. A call that changes nothing is killed once: what it says is lost either way. A kill names
 * its call by its words, because processes run side by side and a busy machine makes some more calls.
 */
export function killsAt(calls: readonly GitCallMade[]): GitKill[] {
  const areStepsKnown = calls.some(({ steps }) => steps.length > 0);
  const kinds = new Set<string>();
  return calls.flatMap((call, index) => {
    const at = call.words;
    const nth = calls
      .slice(0, index + 1)
      .filter(({ words }) => ` ${words} `.includes(` ${at} `)).length;
    const all = stepsThatMatter(call);
    const isReader = areStepsKnown && all.length === 0;
    const steps = all.length > STEPS_MAX && kinds.has(at) ? [] : all;
    kinds.add(at);
    return (["git", "caller"] as const).flatMap((victim): GitKill[] => [
      { at, nth, moment: "before", victim },
      ...steps.map((step): GitKill => ({ at, nth, moment: "within", victim, step })),
      ...(isReader ? [] : [{ at, nth, moment: "after", victim } as const]),
    ]);
  });
}

/**
 * Walks with each kill. The calls need not be the same ones each time, because processes run side by side; but nearly all kills must happen.
 * @returns how many there were. @throws with the kills that went wrong
 */
export async function walkAll(walk: Walk): Promise<{ kills: number; calls: number }> {
  const calls = await walk(canCountSteps() ? "steps" : "count");
  const kills = killsAt(calls);
  const left = [...kills];
  const faults: string[] = [];
  let missed = 0;
  const next = async (): Promise<void> => {
    for (let kill = left.shift(); kill !== undefined; kill = left.shift()) {
      const what = JSON.stringify(kill);
      try {
        if ((await walk(kill)).some(({ isKilled }) => isKilled)) continue;
        missed++;
        process.stderr.write(`${what}: did not happen\n`);
      } catch (error) {
        faults.push(`${what}: ${(error as Error).message}`);
        process.stderr.write(`${faults.at(-1)}\n`);
      }
      if (left.length % 50 === 0) process.stderr.write(`${left.length} kills are left\n`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  if (faults.length > 0)
    throw new Error(`${faults.length} of ${kills.length} kills:\n${faults.join("\n")}`);
  if (missed > kills.length / 10) throw new Error(`${missed} of ${kills.length} did not happen`);
  return { kills: kills.length - missed, calls: calls.length };
}

/** One kill of some moments and victims, at calls that the seed chooses; in a whole walk of each moment and victim. */
export async function sampleKills(walk: Walk): Promise<void> {
  const random = seededRandom(WALKS_SEED);
  const kills = killsAt(await walk(canCountSteps() ? "steps" : "count"));
  const kinds = ["before", "within", "after"].flatMap((moment) =>
    ["git", "caller"].map((victim) =>
      kills.filter((kill) => kill.moment === moment && kill.victim === victim),
    ),
  );
  const there = kinds.filter((fitting) => fitting.length > 0);
  for (const fitting of sampleOf(there, SAMPLE)) {
    const kill = random.pick(fitting);
    await walk(kill).catch((error: unknown) => {
      throw new Error(JSON.stringify(kill), { cause: error });
    });
  }
}
