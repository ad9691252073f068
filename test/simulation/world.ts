/**
 * A whole machine as plain data: one disk, and processes that run the production functions. The functions are synchronous
 * between two storage calls and cannot be paused, so a process is kept as the answers its calls got so far: to go one call on, the
 * function is run anew from its start, the old answers are played back to it, and after one new call it is cut off.
 */
import type { Clock } from "../../src/core/clock.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { callbacks } from "../../src/parts/callbacks/follow.ts";
import { type Ledger, newLedger, observe } from "./checker.ts";
import { type Port, usePort } from "./descriptors.ts";
import { type MemoryDisk, memoryStorage, type TornData, walkNames } from "./memory-storage.ts";
import { useTokens } from "./tokens.ts";

/** What a process keeps in its head between two turns: plain data, never changed in place. */
export interface Memory {
  readonly isDone?: boolean;
  /** Turns without anything to do. */
  readonly idle?: number;
  /** The name of a held lease, and its task's text. */
  readonly held?: { readonly file: string; readonly text: string | undefined };
  readonly inFlight?: readonly string[];
  readonly absentOnce?: readonly string[];
  /** False suspicions that are left. */
  readonly suspicions?: number;
}

export interface Program {
  /** Unique; letters only. */
  readonly name: string;
  readonly kind: "producer" | "supervisor" | "worker" | "recoverer" | "operator";
  readonly start: Memory;
  readonly isSweeper?: boolean;
  /** One turn. Deterministic but for what `api` gives. Ends by itself once `isDone`, or after `turnsMax`. */
  run(api: Api, memory: Memory): Memory | Promise<Memory>;
  readonly turnsMax: number;
  /** It lives, and has nothing in hand whenever others go on. */
  readonly isAtRest?: boolean;
  /** How far its wall clock is ahead of the true one (ms); negative when it is behind. */
  readonly clockAheadMs?: number;
}

/** What a program may use. */
export interface Api {
  readonly trays: Trays;
  readonly control: Trays;
  readonly turn: number;
  /** The longest backoff there is (ms). */
  readonly backoffMaxMs: number;
  /** The id that a broken supervisor forgets. */
  readonly forgets: string | undefined;
  /** A fresh owner string of this process. */
  readonly newOwner: () => string;
  /** Asks or tells the world something that no call does; runs once, and is played back afterwards. */
  readonly ask: <T>(question: (world: World) => T) => T;
  /** The end of a tick: others may go on as long as they like. A process may have many in one turn. */
  readonly rest: () => Promise<void>;
  /** A whole file that appears under a name that was free; false when it was not. */
  readonly appear: (path: string, bytes: Buffer) => boolean;
}

type Answer = { readonly nowMs: number } & (
  | { readonly value: unknown }
  | { readonly error: unknown }
);

export interface Actor {
  readonly program: Program;
  readonly number: number;
  memory: Memory;
  answers: readonly Answer[];
  turn: number;
  /** How many calls the whole world had made when this turn began. */
  turnBegan: number;
  inodesMade: number;
  state: "live" | "dead" | "done";
}

/** Changes the storage that every process sees: how broken variants are made. */
export type Variant = (port: Port, program: Program) => Port;

export interface World {
  disk: MemoryDisk;
  ledger: Ledger;
  actors: Actor[];
  readonly base: Bases;
  readonly durability: "power" | "process";
  readonly variant: Variant | undefined;
  readonly backoffMaxMs: number;
  readonly forgets: string | undefined;
  /** What broke the promises, as sentences. */
  faults: string[];
  calls: number;
  /** Every change of the disk, as a line each. */
  trail: string[];
}

interface Bases {
  trays: Trays;
  control: Trays;
}

const INODES_PER_ACTOR = 100_000;
const START_MS = 1_700_000_000_000;

export interface WorldOptions {
  durability: "power" | "process";
  variant?: Variant;
  /** For broken variants: by default the one of the settings. */
  backoffMaxMs?: number;
  /** For broken variants: the id that supervisors forget. */
  forgets?: string | undefined;
}

export function newWorld(disk: MemoryDisk, options: WorldOptions): World {
  disk.nowMs = START_MS;
  const storage = memoryStorage(disk);
  const clock: Clock = {
    wallMs: () => START_MS,
    monotonicMs: () => START_MS,
    random: () => 0,
  };
  const open = (dir: string): Trays =>
    openTrays(dir, { storage, clock, durability: options.durability });
  const base = { trays: open("/m"), control: open("/c") };
  disk.makeDir("/e");
  disk.syncAll();
  return {
    disk,
    ledger: newLedger(),
    actors: [],
    base,
    durability: options.durability,
    variant: options.variant,
    backoffMaxMs: options.backoffMaxMs ?? DEFAULT_SETTINGS.retry.backoff_max_ms,
    forgets: options.forgets,
    faults: [],
    calls: 0,
    trail: [],
  };
}

export function copyWorld(world: World): World {
  return {
    ...world,
    disk: world.disk.copy(),
    ledger: { ...world.ledger },
    actors: world.actors.map((actor) => ({ ...actor })),
    faults: [...world.faults],
    trail: [],
  };
}

export function addActor(world: World, program: Program): Actor {
  const actor: Actor = {
    program,
    number: world.actors.length + 1,
    memory: program.start,
    answers: [],
    turn: 0,
    turnBegan: 0,
    inodesMade: 0,
    state: "live",
  };
  world.actors.push(actor);
  return actor;
}

export function isAnyLive(world: World, kinds: readonly Program["kind"][]): boolean {
  return world.actors.some(
    (a) => a.state === "live" && a.program.isAtRest !== true && kinds.includes(a.program.kind),
  );
}

/** Dies where it is: nothing of what its last call answered is ever acted upon. */
export function kill(actor: Actor): void {
  actor.state = "dead";
  actor.answers = [];
}

/** All processes die, and what nobody synced is lost as the arguments say. */
export function cutPower(world: World, kept: readonly number[], torn: TornData): void {
  world.disk.cutPower(kept, () => torn);
  for (const actor of world.actors) if (actor.state === "live") kill(actor);
  observe(world, undefined, { what: "power" });
}

const CUT = new Error("cut");

/**
 * Lets one process do up to `calls` further storage calls, and all it does after the last one until it would make the next.
 * @param isToRest it stops where it rests, too
 * @returns how many it made
 */
export async function advance(
  world: World,
  actor: Actor,
  calls: number,
  isToRest = false,
): Promise<number> {
  let total = 0;
  while (total < calls && actor.state === "live" && world.faults.length === 0) {
    const { made, hasRested } = await runTurn(world, actor, calls - total);
    total += made;
    if (isToRest && hasRested) break;
  }
  return total;
}

async function runTurn(
  world: World,
  actor: Actor,
  callsMax: number,
): Promise<{ made: number; hasRested: boolean }> {
  const { program } = actor;
  const answers = [...actor.answers];
  if (answers.length === 0) actor.turnBegan = world.calls;
  let at = 0;
  let made = 0;
  let isCut = false;
  let hasRested = false;
  let hang: () => void = () => {};
  const hung = new Promise<void>((resolve) => {
    hang = resolve;
  });
  let nowMs = answers[0]?.nowMs ?? world.disk.nowMs;

  const answer = <T>(isCall: boolean, step: () => T): T => {
    if (isCut) throw CUT;
    const old = answers[at];
    if (old !== undefined) {
      at++;
      nowMs = old.nowMs;
      if ("error" in old) throw old.error;
      return old.value as T;
    }
    if (isCall && made === callsMax) {
      isCut = true;
      throw CUT;
    }
    if (isCall) made++;
    nowMs = world.disk.nowMs;
    try {
      const value = step();
      answers.push({ nowMs, value });
      at++;
      return value;
    } catch (error) {
      answers.push({ nowMs, error });
      at++;
      throw error;
    }
  };
  const call = <T>(step: () => T): T =>
    answer(true, () => {
      world.calls++;
      world.disk.nextIno = actor.number * INODES_PER_ACTOR + actor.inodesMade;
      try {
        return step();
      } finally {
        actor.inodesMade = world.disk.nextIno - actor.number * INODES_PER_ACTOR;
      }
    });
  /** Beyond the cut a promise of the storage is never kept: the function stays where it is. */
  const callLater = (step: () => void): Promise<void> => {
    try {
      call(step);
      return Promise.resolve();
    } catch (error) {
      if (!isCut) return Promise.reject(error);
      hang();
      return new Promise(() => {});
    }
  };

  /** The first time it is the end of what is run now; played back, it is over at once. */
  const rest = (): Promise<void> => {
    if (!isCut && at < answers.length) {
      answer(false, () => {});
      return Promise.resolve();
    }
    if (!isCut) {
      answers.push({ nowMs: world.disk.nowMs, value: undefined });
      hasRested = true;
      isCut = true;
    }
    hang();
    return new Promise(() => {});
  };

  const port = portOf(world, actor, call, callLater);
  const storage = world.variant === undefined ? port : world.variant(port, program);
  usePort(storage);
  let owners = 0;
  let tokens = 0;
  useTokens((length) => {
    tokens++;
    return `${program.name}${actor.turn.toString(36)}x${tokens.toString(36)}`.padEnd(length, "0");
  });
  const aheadMs = program.clockAheadMs ?? 0;
  const clock: Clock = {
    wallMs: () => nowMs + aheadMs,
    monotonicMs: () => nowMs,
    random: () => 0.5,
  };
  const trays: Trays = { ...world.base.trays, storage, clock };
  const tell = (message: string): void => void world.faults.push(message);
  trays.follow = callbacks({ trays, runs: "/r", settings: DEFAULT_SETTINGS, tell });
  const api: Api = {
    trays,
    control: { ...world.base.control, storage, clock },
    turn: actor.turn,
    backoffMaxMs: world.backoffMaxMs,
    forgets: world.forgets,
    rest,
    newOwner: () => `${program.name}-${actor.turn.toString(36)}-${(++owners).toString(36)}`,
    ask: (question) => answer(false, () => question(world)),
    appear: (path, bytes) =>
      call(() => {
        if (world.disk.look(path) !== undefined) return false;
        world.disk.fill(world.disk.createEmpty(path), bytes);
        observe(world, actor, { what: "appear", to: path });
        return true;
      }),
  };

  let outcome: Memory | undefined;
  const run = async (): Promise<void> => {
    try {
      outcome = await program.run(api, actor.memory);
    } catch (error) {
      if (isCut) return;
      // A refusal of the disk ends the turn, as it would end a tick; anything else is a bug.
      if (typeof (error as { code?: unknown }).code !== "string")
        world.faults.push(
          `${program.name} threw ${error instanceof Error ? error.stack : String(error)}`,
        );
      outcome = actor.memory;
    }
  };
  const running = run();
  await Promise.race([running, hung]);
  if (isCut) {
    actor.answers = answers;
  } else if (outcome !== undefined) {
    actor.memory = outcome;
    actor.answers = [];
    actor.turn++;
    if (outcome.isDone === true || actor.turn >= program.turnsMax) actor.state = "done";
  }
  return { made, hasRested };
}

function portOf(
  world: World,
  actor: Actor,
  call: <T>(step: () => T) => T,
  callLater: (step: () => void) => Promise<void>,
): Port {
  const { disk } = world;
  const sync = (paths: readonly string[]): Promise<void> =>
    paths.length === 0
      ? Promise.resolve()
      : callLater(() => {
          for (const path of paths) disk.sync(path);
        });
  const openNew = (path: string): number =>
    call(() => {
      const made = disk.createEmpty(path);
      observe(world, actor, { what: "create", to: path });
      return made;
    });
  return {
    list: (dir) => call(() => disk.list(dir)),
    walk: (dir) => walkNames(call(() => disk.list(dir))),
    rawName: (dir, shown) =>
      call(() => (disk.list(dir).includes(shown) ? Buffer.from(shown) : undefined)),
    look: (path) => call(() => disk.look(String(path))),
    read: (path, bytesMax) => call(() => disk.read(path, bytesMax)),
    // Two calls: others may meet the file while it is empty, and a kill may leave it so.
    create(path, bytes) {
      const ino = openNew(path);
      call(() => {
        disk.fill(ino, bytes);
        observe(world, actor, { what: "fill" });
      });
    },
    link: (from, to) =>
      call(() => {
        disk.link(from, to);
        observe(world, actor, { what: "link", from, to });
      }),
    rename: (source, to) =>
      call(() => {
        const from = String(source);
        const replaced = disk.look(to);
        const moved = disk.look(from);
        disk.rename(from, to);
        observe(world, actor, {
          what: "rename",
          from,
          to,
          ...(replaced !== undefined && replaced.ino !== moved?.ino ? { replaced } : {}),
        });
      }),
    unlink: (path) =>
      call(() => {
        disk.unlink(path);
        observe(world, actor, { what: "unlink", from: path });
      }),
    touch: (path, mtimeMs) =>
      call(() => {
        disk.touch(path, mtimeMs);
        observe(world, actor, { what: "touch", from: path });
      }),
    makeDir: (path, missingMax) => call(() => disk.makeDir(path, missingMax)),
    syncFiles: sync,
    syncDirs: sync,
    syncDirNow: (path) => call(() => disk.sync(path)),
    openNew,
    openToRead: (path) =>
      call(() => {
        const { facts, bytes } = disk.read(path, Number.MAX_SAFE_INTEGER);
        return { facts, bytes: bytes ?? Buffer.alloc(0) };
      }),
    append: (ino, bytes) =>
      call(() => {
        disk.append(ino, bytes);
        observe(world, actor, { what: "fill" });
      }),
    lookAt: (ino) => call(() => disk.lookAt(ino)),
    syncData: (ino) => callLater(() => disk.syncData(ino)),
  };
}
