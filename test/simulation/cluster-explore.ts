/** Walks every order in which a task can be sent, run, told and settled over machines, with faults at each step. */
import { createHash } from "node:crypto";
import { seededRandom } from "../support/seeded-random.ts";
import { type Action, actionsOf } from "./cluster-actions.ts";
import { copy, MACHINE_CALLS, MACHINES, machineOf, type World } from "./cluster-world.ts";

export interface Explored {
  states: number;
  /** The most often that one dispatch was begun. */
  startsMax: number;
  isComplete: boolean;
  found: { fault: string; path: string[] } | undefined;
}

interface Path {
  step: string;
  before: Path | undefined;
}

interface Visit {
  world: World;
  path: Path | undefined;
}

const FAIR_STEPS_MAX = 400;

export async function explore(
  start: World,
  { statesMax, seed }: { statesMax: number; seed: number },
): Promise<Explored> {
  const chance = seededRandom(seed);
  const seen = new Set<string>();
  /** States from which all goes well. */
  const good = new Set<string>();
  const stack: Visit[] = [{ world: start, path: undefined }];
  let startsMax = 0;
  let found: Explored["found"];
  while (stack.length > 0 && found === undefined && seen.size < statesMax) {
    const visit = takeOne(stack, chance.below(stack.length));
    const { world, path } = visit;
    const key = keyOf(world);
    if (seen.has(key)) continue;
    seen.add(key);
    const starts = Object.values(world.starts);
    startsMax = Math.max(startsMax, ...starts);
    const fault = world.faults[0] ?? (await endOf(world, good, seed));
    if (fault !== undefined) {
      found = { fault, path: unroll(path) };
      break;
    }
    for (const action of actionsOf(world)) {
      const next = copy(world);
      await action.act(next);
      stack.push({
        world: next,
        path: { step: action.name, before: path },
      });
    }
  }
  const isComplete = stack.length === 0 && found === undefined;
  return { states: seen.size, startsMax, isComplete, found };
}

function takeOne(stack: Visit[], at: number): Visit {
  const visit = stack[at] as Visit;
  const last = stack.pop() as Visit;
  if (at < stack.length) stack[at] = last;
  return visit;
}

/** All goes well from here on. @returns what is wrong in the end */
async function endOf(from: World, good: Set<string>, seed: number): Promise<string | undefined> {
  const chance = seededRandom(seed);
  const world = copy(from);
  const keys: string[] = [];
  const steps: string[] = [];
  for (let step = 0; step < FAIR_STEPS_MAX; step++) {
    const key = keyOf(world);
    if (good.has(key)) break;
    keys.push(key);
    const fair: Action[] = actionsOf(world).filter(({ isFair }) => isFair);
    if (fair.length === 0) {
      const fault = world.faults[0] ?? faultAtRest(world);
      if (fault !== undefined) return `${fault}, after ${steps.join("; ")}`;
      break;
    }
    const action = chance.pick(fair);
    steps.push(action.name);
    await action.act(world);
    if (world.faults[0] !== undefined) return `${world.faults[0]}, after ${steps.join("; ")}`;
    if (step === FAIR_STEPS_MAX - 1)
      return `it does not come to rest: ${steps.slice(-30).join("; ")}`;
  }
  for (const key of keys) good.add(key);
  return undefined;
}

function faultAtRest(world: World): string | undefined {
  const { task, broker } = world;
  if (task.state !== "settled") return "the task has not settled";
  if (Object.keys(broker.jobs).length > 0) return "its job is left at the broker";
  if (Object.keys(broker.results).length > 0) return "a result is left at the broker";
  for (const name of MACHINES) {
    const machine = machineOf(world, name);
    if (machine.isLost) continue;
    if (Object.keys(machine.notes).length > 0) return `a note is left at ${name}`;
    for (const id of Object.keys(machine.tasks))
      if (MACHINE_CALLS.placeOf(machine, id) !== "settled") return `${id} is left at ${name}`;
  }
  for (const id of Object.keys(world.origin.memory)) return `the origin has not forgotten ${id}`;
  return undefined;
}

function keyOf(world: World): string {
  const { faults: _faults, ...rest } = world;
  return createHash("sha1").update(JSON.stringify(rest)).digest("base64");
}

function unroll(path: Path | undefined): string[] {
  const steps: string[] = [];
  for (let at = path; at !== undefined; at = at.before) steps.push(at.step);
  return steps.reverse();
}
