/** Walks every order in which the mail of an agent can be sent, offered, read, told and lost sight of, with deaths at each call. */
import { createHash } from "node:crypto";
import { type SeededRandom, seededRandom } from "../support/seeded-random.ts";
import { ACTIONS, type Action, inWorld } from "./mail-actions.ts";
import { faultsOf, faultsOfEnd, isAtRest } from "./mail-checker.ts";
import { onCalls } from "./mail-disk.ts";
import { copyWorld, enter, keyOf, LATE_MS, openSupervisor, type World } from "./mail-world.ts";

export interface Explored {
  states: number;
  /** Steps that were tried. */
  steps: number;
  deaths: number;
  isComplete: boolean;
  found: { faults: string[]; path: string[] } | undefined;
}

export interface Options {
  statesMax: number;
  /** Which states are looked at first. */
  seed: number;
  /** True: others act before each call of a look; else only before those that change something. */
  isFine?: boolean;
}

interface Visit {
  world: World;
  path: Path | undefined;
}

/** What a look does, and who else may act in it. */
interface Look {
  calls: number;
  changes: number;
  others: Set<string>;
}

interface Other {
  action: Action;
  target: string;
}

interface Path {
  step: string;
  before: Path | undefined;
}

const CUT = new Error("cut");
const FAIR_STEPS_MAX = 60;

export async function explore(start: World, options: Options): Promise<Explored> {
  const walk = new Walk(options);
  return await walk.all(start);
}

class Walk {
  private readonly options: Options;
  private readonly chance: SeededRandom;
  private readonly seen = new Set<string>();
  /** States from which all goes well. */
  private readonly good = new Set<string>();
  private readonly stack: Visit[] = [];
  private steps = 0;
  private deaths = 0;
  private found: Explored["found"];

  constructor(options: Options) {
    this.options = options;
    this.chance = seededRandom(options.seed);
  }

  async all(start: World): Promise<Explored> {
    this.stack.push({ world: start, path: undefined });
    while (this.stack.length > 0 && this.found === undefined) {
      if (this.seen.size >= this.options.statesMax) break;
      const visit = this.take();
      const key = digest(keyOf(visit.world, true));
      if (this.seen.has(key)) continue;
      this.seen.add(key);
      this.check(go(visit.world), visit.path);
      if (this.found === undefined) await this.end(visit);
      if (this.found === undefined) await this.goOn(visit);
    }
    const { seen, steps, deaths, found } = this;
    const isComplete = this.stack.length === 0 && found === undefined;
    return { states: seen.size, steps, deaths, isComplete, found };
  }

  private take(): Visit {
    const at = this.chance.below(this.stack.length);
    const visit = this.stack[at] as Visit;
    const last = this.stack.pop() as Visit;
    if (at < this.stack.length) this.stack[at] = last;
    return visit;
  }

  private check(world: World, path: Path | undefined): void {
    const faults = [...world.truth.faults, ...faultsOf(world)];
    if (faults.length > 0) this.found ??= { faults, path: unroll(path) };
  }

  /** All goes well from here on: then all mail is read, and every exit told. */
  private async end({ world, path }: Visit): Promise<void> {
    const keys: string[] = [];
    const fair = copyWorld(world);
    let isGood = false;
    for (let step = 0; step < FAIR_STEPS_MAX && !isGood; step++) {
      const key = digest(keyOf(fair, false));
      isGood = this.good.has(key) || isAtRest(go(fair));
      keys.push(key);
      if (!isGood) await goWell(fair);
    }
    if (isGood) for (const key of keys) this.good.add(key);
    else
      this.found ??= {
        faults: [...faultsOfEnd(go(fair)), "however long it goes well"],
        path: unroll(path),
      };
  }

  private async goOn(visit: Visit): Promise<void> {
    const { world } = visit;
    for (const action of ACTIONS)
      for (const target of action.targets(go(world))) await this.tryAction(visit, action, target);
    if (world.supervisor === undefined) {
      await this.step(visit, "a supervisor starts", start);
      return;
    }
    await this.step(visit, "time passes", pass);
    const { calls, changes, others } = await this.tryLook(visit);
    if (world.left.crashes > 0)
      for (let at = 0; at <= changes; at++)
        await this.step(visit, `the supervisor dies after call ${at} of its look`, (next) =>
          dieIn(next, at, lookOnce),
        );
    const last = this.options.isFine === true ? calls : changes;
    for (let at = 1; at <= last; at++)
      for (const key of others) await this.interleave(visit, at, otherOf(key));
  }

  private async tryAction(visit: Visit, action: Action, target: string): Promise<void> {
    const act = async (next: World): Promise<void> => {
      await action.act(next, target);
    };
    await this.step(visit, `${target} ${action.name}`, act);
    if (action.isOfSupervisor !== true || visit.world.left.crashes === 0) return;
    let changes = 0;
    const counted = go(copyWorld(visit.world));
    await counting(
      (isChange) => isChange && changes++,
      () => act(counted),
    );
    for (let at = 0; at < changes; at++)
      await this.step(
        visit,
        `the supervisor dies after call ${at}: ${target} ${action.name}`,
        (n) => dieIn(n, at, act),
      );
  }

  private async tryLook(visit: Visit): Promise<Look> {
    const look: Look = { calls: 0, changes: 0, others: targetsOf(go(visit.world)) };
    await this.step(visit, "the supervisor looks", async (next) => {
      await counting(
        (isChange) => {
          look.calls++;
          if (isChange) look.changes++;
        },
        () => lookOnce(next),
      );
      look.others = new Set([...look.others, ...targetsOf(next)]);
    });
    return look;
  }

  /** Another one acts right before this call of a look. */
  private async interleave(visit: Visit, at: number, { action, target }: Other): Promise<void> {
    const isFine = this.options.isFine === true;
    const name = `${target} ${action.name}, before call ${at} of a look`;
    await this.step(visit, name, async (next) => {
      let calls = 0;
      let hasActed = false;
      const act = (isChange: boolean): void => {
        if ((!isFine && !isChange) || ++calls !== at) return;
        asAnother(() => {
          // It may have become possible, or impossible, in this look.
          if (!action.targets(next).includes(target)) return;
          hasActed = true;
          void action.act(next, target);
        });
      };
      await counting(act, () => lookOnce(next));
      return hasActed;
    });
  }

  /** @param act false: nothing happened, and there is no such step */
  private async step(
    { world, path }: Visit,
    step: string,
    act: (next: World) => Promise<unknown>,
  ): Promise<void> {
    const next = go(copyWorld(world));
    this.steps++;
    const isStep = await act(next);
    if (isStep === false) return;
    if (step.includes("dies")) this.deaths++;
    this.stack.push({ world: next, path: { step, before: path } });
  }
}

function go(world: World): World {
  return inWorld(enter(world));
}

async function counting(onCall: (isChange: boolean) => unknown, act: () => unknown): Promise<void> {
  const before = onCalls((isChange) => void onCall(isChange));
  try {
    await act();
  } finally {
    onCalls(before);
  }
}

/** As another process, whose staged files have its own pid in their names. Its calls are not counted. */
function asAnother(act: () => void): void {
  const before = onCalls();
  const { pid } = process;
  setPid(pid + 1);
  try {
    act();
  } finally {
    setPid(pid);
    onCalls(before);
  }
}

function setPid(pid: number): void {
  Object.defineProperty(process, "pid", { value: pid, configurable: true, enumerable: true });
}

/** Who may act in the middle of a look: the name of the action, and its target. */
function targetsOf(world: World): Set<string> {
  const actions = ACTIONS.filter((one) => one.isSlow !== true && one.isOfSupervisor !== true);
  const keys = actions.flatMap(({ name, targets }) =>
    targets(world).map((one) => `${one} ${name}`),
  );
  return new Set(keys);
}

function otherOf(key: string): Other {
  const target = key.slice(0, key.indexOf(" "));
  const action = ACTIONS.find(({ name }) => key === `${target} ${name}`);
  if (action === undefined) throw new Error(`no action ${key}`);
  return { action, target };
}

async function lookOnce({ supervisor }: World): Promise<void> {
  await supervisor?.watch.look();
}

async function start(world: World): Promise<void> {
  world.supervisor = openSupervisor();
  await world.supervisor.watch.look(true);
}

async function pass(world: World): Promise<void> {
  world.nowMs += LATE_MS + 1000;
}

/** The supervisor dies once it has made so many changing calls. */
async function dieIn(world: World, at: number, act: (world: World) => unknown): Promise<void> {
  let changes = 0;
  let isDead = false;
  try {
    await counting(
      (isChange) => {
        isDead ||= isChange && changes++ === at;
        if (isDead) throw CUT;
      },
      () => act(world),
    );
  } catch (error) {
    if (!isDead) throw error;
  }
  world.supervisor = undefined;
  world.left = { ...world.left, crashes: world.left.crashes - 1 };
}

/** One round in which all goes well. */
async function goWell(world: World): Promise<void> {
  go(world);
  if (world.supervisor === undefined) await start(world);
  await pass(world);
  go(world);
  await lookOnce(world);
  for (const action of ACTIONS.filter(({ isFair }) => isFair))
    for (const target of action.targets(world)) await action.act(world, target);
}

function unroll(path: Path | undefined): string[] {
  const steps: string[] = [];
  for (let at = path; at !== undefined; at = at.before) steps.push(at.step);
  return steps.reverse();
}

function digest(text: string): string {
  return createHash("sha1").update(text).digest("base64");
}
