/**
 * A scope with the agent `ann`, its tasks and a supervisor, as plain data: a disk in memory, the supervisor's head, and what truly
 * happened. Copies are independent.
 */
import { EventEmitter } from "node:events";
import { type AgentSettings, DEFAULT_SETTINGS, type Settings } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { createAgent } from "../../src/parts/mail/agents/agents.ts";
import { WokenAgents } from "../../src/parts/mail/agents/woken-agents.ts";
import { Delivery } from "../../src/parts/mail/delivery/delivery.ts";
import { MailWatch } from "../../src/parts/mail/delivery/mail-watch.ts";
import { PendingMail } from "../../src/parts/mail/delivery/pending-mail.ts";
import { Exits } from "../../src/parts/mail/exits/exits.ts";
import type { RunNote } from "../../src/parts/mail/exits/run-notes.ts";
import { OUTSIDE } from "../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../src/parts/mail/store/mail-folder.ts";
import type { Environment } from "../../src/supervisor/environment/environment.ts";
import { mailStorage, onCalls, useDisk } from "./mail-disk.ts";
import { MemoryDisk } from "./memory-storage.ts";
import { useTokens } from "./tokens.ts";

/** After this long, each wait between wake-ups is over (ms). */
export const LATE_MS = 26 * 60_000;
const START_MS = 1_700_000_000_000;
export const ANN = "ann";
export const STATE = "/t";

/** A run that is on. */
export interface Run {
  /** Numbers in the task's messages that its program was given, and the model has not provably read. */
  given: readonly number[];
  hasAnswered: boolean;
}

export interface World {
  disk: MemoryDisk;
  nowMs: number;
  supervisor: Watch | undefined;
  /** By task. A claimed task without one has not begun. */
  runs: ReadonlyMap<string, Run>;
  truth: Truth;
  /** What may still happen. */
  left: Left;
  /** How often a task runs before it has failed. */
  attemptsMax: number;
}

/** What truly happened, whatever the files say. */
export interface Truth {
  /** The highest number of a message that a person has read for ann. */
  acked: number;
  /** Ids of messages that a model has read, with proof. */
  seen: ReadonlySet<string>;
  /** Wake-ups by id: how often each was accepted. */
  wakes: ReadonlyMap<string, number>;
  /** Wake-ups that have ended without proof that their mail was read. */
  failed: ReadonlySet<string>;
  /** Tasks whose agent ran. */
  ran: ReadonlySet<string>;
  faults: readonly string[];
}

export interface Left {
  sends: number;
  acks: number;
  crashes: number;
  failures: number;
  /** Tasks of people for ann. */
  tasks: number;
}

export interface Watch {
  watch: MailWatch;
  notes: Map<string, RunNote>;
}

let nowMs = START_MS;
let tokens = 0;
useTokens((length) => (++tokens).toString(32).padStart(length, "0"));
/** For what asks the system for the time. */
export const wallMs = (): number => nowMs;

const clock = { wallMs, monotonicMs: wallMs, random: () => 0 };
export const store = { dataDir: STATE, isDurable: false, orchestrator: "june" };
export const folder = new MailFolder(store, OUTSIDE);
export const settings: Settings = {
  ...DEFAULT_SETTINGS,
  durability: "process",
  data: ".",
  agents: [{ name: ANN, kind: "claude" } as AgentSettings],
};

let trays: Trays | undefined;
export function traysNow(): Trays {
  if (trays === undefined) throw new Error("there is no world");
  return trays;
}

const quiet = { alert: () => {}, report: () => {}, raise: () => {} };
let env: Environment | undefined;

export async function newWorld(left: Left, attemptsMax: number): Promise<World> {
  const disk = new MemoryDisk();
  nowMs = START_MS;
  disk.nowMs = START_MS;
  disk.makeDir(STATE);
  useDisk(disk);
  onCalls();
  const tree = stateTree(STATE);
  trays = openTrays(tree.mailbox, { durability: "process", storage: mailStorage(), clock });
  env = { tree, settings, trays, alerts: quiet, facts: new EventEmitter() } as never;
  await createAgent(folder, { name: ANN, type: "claude", home: STATE, isOfSettings: true }, nowMs);
  disk.syncAll();
  const none = new Set<string>();
  return {
    disk,
    nowMs,
    supervisor: undefined,
    runs: new Map(),
    truth: { acked: 0, seen: none, wakes: new Map(), failed: none, ran: none, faults: [] },
    left,
    attemptsMax,
  };
}

/** Its calls go to this world from here on. */
export function enter(world: World): World {
  useDisk(world.disk);
  nowMs = world.nowMs;
  world.disk.nowMs = nowMs;
  return world;
}

export function copyWorld(world: World): World {
  return { ...world, disk: world.disk.copy(), supervisor: copyDeep(world.supervisor) };
}

/** A supervisor as `openWatch` makes it, without a post. */
export function openSupervisor(): Watch {
  const own = env as Environment;
  const notes = new Map<string, RunNote>();
  const agents = new WokenAgents(folder, STATE, settings.agents);
  const pending = new PendingMail(folder);
  const exits = new Exits(own, store, folder, notes);
  const delivery = new Delivery(own, folder, pending, agents);
  const post = { take: async () => {}, hasWaiting: false };
  const nothing = (): void => {};
  const parts = {
    post: post as never,
    exits,
    answers: nothing,
    pending,
    delivery,
    sweep: nothing,
    agents,
    index: async () => {},
    archive: async () => {},
    // By `this`, because a copy of the world has its own ones.
    async look(this: { agents: WokenAgents; pending: PendingMail }) {
      this.agents.look();
      await this.pending.look([...this.agents.names.keys()], nowMs);
    },
  };
  return { watch: new MailWatch(own, parts), notes };
}

const isShared = (value: unknown): boolean =>
  value === env || value === folder || value === store || value instanceof Uint8Array;

/** What no supervisor changes is shared. */
function copyDeep<T>(value: T, done = new Map<unknown, unknown>()): T {
  if (typeof value !== "object" || value === null) return value;
  if (isShared(value)) return value;
  const known = done.get(value);
  if (known !== undefined) return known as T;
  const note = <C>(copy: C): C => {
    done.set(value, copy);
    return copy;
  };
  if (value instanceof Map) {
    const copy = note(new Map());
    for (const [key, one] of value) copy.set(key, copyDeep(one, done));
    return copy as T;
  }
  if (value instanceof Set) return note(new Set(value)) as T;
  if (Array.isArray(value)) {
    const copy = note([] as unknown[]);
    for (const one of value) copy.push(copyDeep(one, done));
    return copy as T;
  }
  const copy = note(Object.create(Object.getPrototypeOf(value)) as Record<string, unknown>);
  for (const [key, one] of Object.entries(value)) copy[key] = copyDeep(one, done);
  return copy as T;
}

/** All that matters for what may happen next. Times only tell whether the waits since then are over. */
export function keyOf(world: World, isWithLeft: boolean): string {
  const { disk, runs, supervisor, truth, left } = world;
  const age = (ms: number): string => (world.nowMs - ms >= LATE_MS ? "old" : "new");
  const withoutTimes = (text: string): string =>
    text
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "t")
      .replace(/"nonce":"\w+"/g, "")
      .replace(/\b1[67]\d{11}\b/g, (ms) => age(Number(ms)))
      .replace(/\b1[67]\d{8}\b/g, (s) => age(Number(s) * 1000));
  const files: string[] = [];
  const walk = (dir: string): void => {
    for (const [name, ino] of disk.entriesOf(dir)) {
      const path = `${dir}/${name}`;
      const facts = disk.lookAt(ino);
      if (name === ".tmp") continue;
      if (facts.kind === "directory") walk(path);
      else if (dir.endsWith("/.once")) files.push(`${name.replace(/~\w+/, "~")}${facts.nlink}`);
      else files.push(`${path} ${withoutTimes(disk.bytesOf(ino).toString("utf8"))}`);
    }
  };
  walk(STATE);
  const plain = (key: string, value: unknown): unknown => {
    // The listing of a look that is over.
    if (key === "sweepAtMs" || key === "archiveAtMs" || key === "listed" || key === "buffer")
      return 0;
    if (isShared(value)) return 0;
    if (value instanceof Map) return [...value];
    if (value instanceof Set) return [...value];
    return value;
  };
  const head = supervisor === undefined ? "" : JSON.stringify(supervisor, plain);
  return [
    ...files.sort(),
    withoutTimes(head),
    JSON.stringify([runs, truth, isWithLeft ? left : 0], plain),
  ].join("\n");
}
