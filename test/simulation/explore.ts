/** How the machine is driven: every order of calls of a small case, or orders chosen by seed; and from any state to rest. */
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import type { FileFacts } from "../../src/mailbox/files/storage.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { checkRest, ledgerFingerprint } from "./checker.ts";
import { commandTaker, recoverer, sweeper, ticketFinisher, worker } from "./programs.ts";
import { supervisor } from "./supervisor.ts";
import {
  type Actor,
  addActor,
  advance,
  copyWorld,
  cutPower,
  kill,
  type Program,
  type World,
} from "./world.ts";

/**
 * Everybody who still lives dies; then fair successors, whose clocks are right, finish everything, and all must be well. What a
 * round is not enough for has to wait for the next one, as long as the longest backoff: what is left after the last one waits
 * for nothing. One supervisor lives through all rounds; the others are new in each.
 */
export async function bringToRest(world: World): Promise<void> {
  for (const actor of world.actors) if (actor.state === "live") kill(actor);
  const { disk } = world;
  const run = async (program: Program): Promise<void> => {
    await advance(world, addActor(world, program), Number.POSITIVE_INFINITY);
  };
  const isBusy = (): boolean =>
    ["/m/inbox", "/m/processing", "/c/inbox", "/c/processing"].some(
      (dir) => disk.entriesOf(dir).size > 0,
    );
  const hasOnce = disk.look("/m/.once") !== undefined;
  if (hasOnce) await run(ticketFinisher("zo", 1));
  const chief = addActor(world, { ...supervisor("zs", ROUNDS_MAX), isAtRest: true });
  for (let round = 0; isBusy(); round++) {
    if (world.faults.length > 0) return;
    if (round === ROUNDS_MAX) {
      world.faults.push(`waits for nothing, and does not come to rest: ${disk.fingerprint()}`);
      return;
    }
    disk.nowMs += ROUND_MS;
    await run(recoverer(`zr${round}`, 0, 1));
    await run(recoverer(`zc${round}`, 0, 1, "control"));
    await advance(world, chief, Number.POSITIVE_INFINITY, true);
    await run(worker(`zw${round}`, ["complete"], 2 * disk.entriesOf("/m/processing").size));
    await run(commandTaker(`zt${round}`, disk.entriesOf("/c/inbox").size + 1));
  }
  kill(chief);
  if (disk.entriesOf("/m/.tmp").size + disk.entriesOf("/c/.tmp").size > 0)
    await run(sweeper("zz", 1));
  if (world.faults.length === 0) checkRest(world);
}

const ROUNDS_MAX = 16;
const ROUND_MS = DEFAULT_SETTINGS.retry.backoff_max_ms;
/** Ways in which power may go at one state, beside each prefix and each loss of one directory. */
const CUTS_MAX = 24;

const texts = new WeakMap<object, string>();

/** The answers a process got, as text; the same for all that it could not tell apart. */
function answersText(answers: Actor["answers"]): string {
  const known = texts.get(answers);
  if (known !== undefined) return known;
  let text = "";
  for (const answer of answers) text += answerText(answer);
  texts.set(answers, text);
  return text;
}

function answerText(answer: Actor["answers"][number]): string {
  const known = texts.get(answer);
  if (known !== undefined) return known;
  const text =
    "error" in answer ? `!${(answer.error as { code?: string }).code}` : show(answer.value);
  texts.set(answer, text);
  return `,${text}`;
}

/** Numbers of inodes stand for their bytes too: those of a file change once, from none to all. */
function show(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const { facts, ino, size, mtimeMs, nlink } = value as Partial<FileFacts> & { facts?: FileFacts };
  if (facts !== undefined) return show(facts);
  return ino === undefined ? JSON.stringify(value) : `${ino}.${size}.${mtimeMs}.${nlink}`;
}

function actorText({ program, state, turn, memory, answers }: Actor): string {
  if (state !== "live") return `${program.name}${state}`;
  return `${program.name}${turn}${JSON.stringify(memory)}${answersText(answers)}`;
}

/** 53 bits of a text. */
function hashOf(text: string): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return 4294967296 * (2097151 & low) + (high >>> 0);
}

export interface Found {
  faults: string[];
  /** How to get there: names of who took each call, or what happened to them. */
  path: string[];
  /** The changes of the disk, where they were written down. */
  trail: string[];
}

export interface Explored {
  /** Different states of disk, processes and promises. */
  states: number;
  /** Ends that were followed to rest: after the death of all, or a power cut. */
  ends: number;
  /** False when the limit was met first. */
  isComplete: boolean;
  found: Found | undefined;
}

export interface ExploreOptions {
  /** How many processes may be killed alone, the others going on. */
  kills: number;
  statesMax: number;
}

interface Visit {
  world: World;
  kills: number;
  path: Path | undefined;
}

interface Path {
  step: string;
  before: Path | undefined;
}

function unroll(path: Path | undefined): string[] {
  const steps: string[] = [];
  for (let at = path; at !== undefined; at = at.before) steps.push(at.step);
  return steps.reverse();
}

/**
 * Every order in which the processes of `start` can make their calls; at every state also the death of all of them and, with
 * durability `power`, each way in which power can go.
 */
export async function exploreAll(start: World, options: ExploreOptions): Promise<Explored> {
  const seen = new Set<number>();
  const looked = new Set<number>();
  const ended = new Set<number>();
  const stack: Visit[] = [{ world: start, kills: 0, path: undefined }];
  let ends = 0;
  const result = (found?: Found): Explored => ({
    states: seen.size,
    ends,
    isComplete: stack.length === 0,
    found,
  });
  const isNew = ({ world, kills }: Visit): boolean => {
    let text = `${kills}${world.disk.fingerprint()}${ledgerFingerprint(world.ledger)}`;
    if (world.durability === "power") text += world.disk.logFingerprint();
    for (const actor of world.actors) text += actorText(actor);
    const hash = hashOf(text);
    if (seen.has(hash)) return false;
    seen.add(hash);
    return true;
  };
  const end = async (
    world: World,
    step: string,
    path: Path | undefined,
  ): Promise<Found | undefined> => {
    if (world.faults.length === 0) {
      const key = hashOf(`${world.disk.fingerprint()}${ledgerFingerprint(world.ledger)}`);
      if (ended.has(key)) return undefined;
      ended.add(key);
      ends++;
      await bringToRest(world);
    }
    return world.faults.length === 0
      ? undefined
      : { faults: world.faults, path: [...unroll(path), step], trail: world.trail };
  };
  /** The death of all, and every way in which power can go: once for each state of the disk and the promises. */
  const endAnyhow = async (world: World, path: Path | undefined): Promise<Found | undefined> => {
    const isPower = world.durability === "power";
    const key = hashOf(
      `${world.disk.fingerprint()}${ledgerFingerprint(world.ledger)}${isPower ? world.disk.logFingerprint() : ""}`,
    );
    if (looked.has(key)) return undefined;
    looked.add(key);
    let found = await end(copyWorld(world), "all die", path);
    for (const kept of isPower ? world.disk.waysToCut(CUTS_MAX) : []) {
      for (const torn of ["whole", "half", "nothing"] as const) {
        if (found !== undefined) return found;
        const cut = copyWorld(world);
        cutPower(cut, kept, torn);
        found = await end(cut, `power goes, kept: ${kept.join()}, the rest ${torn}`, path);
      }
    }
    return found;
  };
  while (stack.length > 0 && seen.size < options.statesMax) {
    const visit = stack.pop() as Visit;
    const { world, path } = visit;
    if (world.faults.length > 0)
      return result({ faults: world.faults, path: unroll(path), trail: world.trail });
    if (!isNew(visit)) continue;
    const found = await endAnyhow(world, path);
    if (found !== undefined) return result(found);
    for (const [index, actor] of world.actors.entries()) {
      if (actor.state !== "live") continue;
      const next = copyWorld(world);
      const { name } = actor.program;
      await advance(next, next.actors[index] as Actor, 1);
      stack.push({ world: next, kills: visit.kills, path: { step: name, before: path } });
      if (visit.kills < options.kills && actor.answers.length > 0) {
        const without = copyWorld(world);
        kill(without.actors[index] as Actor);
        stack.push({
          world: without,
          kills: visit.kills + 1,
          path: { step: `${name} dies`, before: path },
        });
      }
    }
  }
  return result();
}

export interface Walked {
  calls: number;
  found: Found | undefined;
}

/** Makes the world of a case; `choose` is its chance, `onState` is to be handed on. */
export type Case = (chance: ReturnType<typeof seededRandom>) => World;

/** One run of a large case, with its order, deaths and power cuts chosen by seed. */
export async function walk(makeWorld: Case, seed: number): Promise<Walked> {
  const chance = seededRandom(seed);
  const world = makeWorld(chance);
  const path: string[] = [];
  const ranks = new Map<Actor, number>();
  const hasRanks = chance.below(2) === 0;
  const killRate = chance.pick([0, 0.01, 0.04]);
  const cutAt = world.durability === "power" && chance.below(2) === 0 ? chance.below(250) : -1;
  const callsMax = chance.pick([1, 1, 3, 10]);
  let successors = 0;
  for (let step = 0; step < STEPS_MAX && world.faults.length === 0; step++) {
    const live = world.actors.filter((a) => a.state === "live");
    if (live.length === 0) break;
    if (step === cutAt) {
      const kept = world.disk.wayByChance(chance);
      const torn = chance.pick(["whole", "half", "nothing"] as const);
      path.push(`power goes, kept: ${kept.join()}, the rest ${torn}`);
      cutPower(world, kept, torn);
      break;
    }
    const actor = hasRanks ? highest(live, ranks, chance) : chance.pick(live);
    const { name } = actor.program;
    if (chance() < killRate) {
      path.push(`${name} dies`);
      kill(actor);
      const heir = chance.below(2) === 0 ? heirOf(actor, ++successors) : undefined;
      if (heir !== undefined) addActor(world, heir);
      continue;
    }
    const made = await advance(world, actor, 1 + chance.below(callsMax));
    path.push(`${name} ${made}`);
  }
  if (world.faults.length === 0) await bringToRest(world);
  return {
    calls: world.calls,
    found:
      world.faults.length === 0 ? undefined : { faults: world.faults, path, trail: world.trail },
  };
}

const STEPS_MAX = 600;

/** Highest rank goes first, and now and then loses it: finds orders that need one process to be very late. */
function highest(
  live: readonly Actor[],
  ranks: Map<Actor, number>,
  chance: ReturnType<typeof seededRandom>,
): Actor {
  for (const actor of live) if (!ranks.has(actor)) ranks.set(actor, chance());
  const first = live.reduce((a, b) => ((ranks.get(a) ?? 0) >= (ranks.get(b) ?? 0) ? a : b));
  if (chance() < 0.08) ranks.set(first, chance() - 1);
  return first;
}

/** Whoever starts a dead process anew. */
function heirOf({ program }: Actor, number: number): Program | undefined {
  const name = `${program.name}n${number}`;
  if (program.kind === "supervisor") return { ...program, name };
  if (program.kind === "worker") return worker(name, ["complete"], 6);
  if (program.kind === "recoverer") return recoverer(name, 1, 3);
  return undefined;
}
