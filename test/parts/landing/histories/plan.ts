/** What a seed decides about one history: tasks, what their agents do, when the target moves, who is killed when. Pure. */
import type { Victim } from "../../../support/counting-git.ts";
import { type SeededRandom, seededRandom } from "../../../support/seeded-random.ts";

export interface TaskPlan {
  id: string;
  /** A program of the task itself; or an agent, which can be asked to mend its work. */
  by: "program" | "agent";
  land: "merge" | "branch";
  /** What each of its runs does, and the runs that mend its work: shell functions of `agent.sh`. */
  runs: string[][];
  mends: string[][];
  attempts: number;
  /** When it is dropped (ms after the start). */
  atMs: number;
}

export interface Kill {
  call: number;
  moment: "before" | "during" | "after";
  victim: Victim;
}

export interface HistoryPlan {
  seed: number;
  target: string;
  /** The target is there from the start. */
  isThere: boolean;
  /** A person has it checked out, and lets landings move it there. */
  isCheckedOut: boolean;
  tasks: TaskPlan[];
  kills: Kill[];
  /** SIGKILL to everything of the pool (ms after a start). */
  killAllAtMs: number[];
  /** A person commits on the target: at these checks of a landing, and at these times (ms); "": of a file of its own. */
  moves: { check: number; file: string }[];
  movesAtMs: number[];
  /** Checks that a signal ends. */
  signals: number[];
  /** The first checks of landings wait until so many other landings wait, so that the next ones are checked together; 0: they do not. */
  gather: number;
}

const SHARED = ["shared-0.txt", "shared-1.txt"] as const;
const WORST_CALL = 320;

export function planOf(seed: number): HistoryPlan {
  const random = seededRandom(seed);
  const chance = (share: number): boolean => random() < share;
  const target = random.pick(["mailchute/integration", "mailchute/integration", "release", "main"]);
  const isCheckedOut = target === "main";
  const isGathered = chance(0.5);
  const many = (chance(0.1) ? 4 : 2 + random.below(2)) + (isGathered ? 1 : 0);
  const tasks = Array.from({ length: many }, (_, index) => planTask(`t${index}`, random));
  const times = (most: number, below: number): number[] =>
    Array.from({ length: random.below(most + 1) }, () => random.below(below));
  return {
    seed,
    target,
    isThere: isCheckedOut || chance(0.7),
    isCheckedOut,
    tasks,
    kills: times(3, WORST_CALL).map((call) => planKill(1 + call, isCheckedOut, random)),
    killAllAtMs: chance(0.4) ? times(2, 1500) : [],
    moves: times(3, many + 2).map((check) => ({
      check: 1 + check,
      file: chance(0.3) ? random.pick(SHARED) : "",
    })),
    movesAtMs: times(2, 1500),
    signals: chance(0.1) ? times(1, many).map((check) => 1 + check) : [],
    gather: isGathered ? many - 1 : 0,
  };
}

function planKill(call: number, isCheckedOut: boolean, random: SeededRandom): Kill {
  // A git that is killed in a person's own tree leaves it half changed: that person has to look.
  const moments = isCheckedOut ? (["before", "after"] as const) : MOMENTS;
  return { call, moment: random.pick(moments), victim: random.pick(VICTIMS) };
}
const MOMENTS = ["before", "during", "after"] as const;
const VICTIMS = ["caller", "caller", "all", "git"] as const;

function planTask(id: string, random: SeededRandom): TaskPlan {
  const by = random.pick(["program", "agent"] as const);
  const attempts = 1 + random.below(3);
  return {
    id,
    by,
    land: random() < 0.8 ? "merge" : "branch",
    attempts,
    runs: Array.from({ length: attempts }, (_, index) =>
      planRun(id, random, index === attempts - 1 ? 0.15 : 0.4),
    ),
    mends: [planMend(id, random), planMend(id, random)],
    atMs: random() < 0.5 ? 0 : random.below(1200),
  };
}

/** @param failing how likely it ends with an error */
function planRun(id: string, random: SeededRandom, failing: number): string[] {
  const acts = Array.from({ length: random.below(7) }, () => planAct(id, random));
  if (random() < 0.6) acts.push(`edit ${id}-own.txt`);
  if (random() < 0.5) acts.push("commit");
  if (random() < 0.3) acts.push("back");
  acts.push(`finish ${random() < failing ? 3 : 0}`);
  return acts;
}

function planMend(id: string, random: SeededRandom): string[] {
  const first = random.pick(["mend", "mend", "bring_target", "back", "true"]);
  const acts = [first, "calm", ...(random() < 0.7 ? ["commit"] : [])];
  if (random() < 0.2) acts.push(planAct(id, random));
  return [...acts, `finish ${random() < 0.1 ? 3 : 0}`];
}

function planAct(id: string, random: SeededRandom): string {
  const own = `${id}-${random.below(3)}.txt`;
  const shared = random.pick(SHARED);
  return random.pick([
    `edit ${own}`,
    `edit ${own}`,
    `edit ${shared}`,
    `top ${shared}`,
    `edit clash-${id}.txt`,
    `edit '${id} with spaces.txt'`,
    `drop ${own}`,
    "commit",
    "commit",
    "commit",
    "stage",
    "commit_staged",
    "amend",
    "stash",
    "detach",
    "back",
    "branch",
    "switch",
    "bring_target",
    `stop_merge ${shared}`,
    "edit notes.log",
    `pause 0.${1 + random.below(4)}`,
  ]);
}
