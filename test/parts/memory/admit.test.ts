/** How many runs start by the memory that is free, on a machine whose figures the test makes up. */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { formatName, leaseOf, type ProcessingName, parseName } from "../../../src/core/names.ts";
import { type AgentSettings, DEFAULT_SETTINGS, type Settings } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { laneOf, readLane } from "../../../src/core/waiting-task.ts";
import { type MemoryLook, type RunMemory, runsToPutBack } from "../../../src/parts/memory/admit.ts";
import { MemoryPart } from "../../../src/parts/memory/part.ts";
import { openEnvironment } from "../../../src/supervisor/environment/environment.ts";
import type { Facts } from "../../../src/supervisor/environment/facts.ts";
import { tempDir } from "../../support/temp-dir.ts";

const GIB = 2 ** 30;
const AGENTS: AgentSettings[] = [
  { name: "claude", kind: "claude", usual_memory_bytes: GIB },
  { name: "big", kind: "exec", program: "big", usual_memory_bytes: 6 * GIB },
  { name: "small", kind: "exec", program: "small", usual_memory_bytes: GIB },
  { name: "light", kind: "exec", program: "light" },
];

const claimOf = (id: string): ProcessingName =>
  parseName(`${id}@abcdefgh261128.1~w-${"0".repeat(12)}-zzzzz-1-1.json`) as ProcessingName;

/** A machine of 8 GiB. Each run takes what it needs a second after its start. */
class Machine {
  nowMs = 0;
  pressure = 0;
  allBytes = 8 * GIB;
  /** Of programs that are not ours. */
  otherBytes = GIB;
  readonly facts: Facts = new EventEmitter();
  /** Leases of the runs that were told to stop. */
  readonly stopped: string[] = [];
  readonly part: MemoryPart;
  private readonly processing: string;
  private readonly alertsPath: string;
  private readonly runs = new Map<string, { bytes: number; fromMs: number }>();

  constructor(settings: Partial<Settings> = {}, journal = "") {
    const tree = stateTree(tempDir());
    this.processing = join(tree.mailbox, "processing");
    this.alertsPath = tree.alerts;
    for (const dir of [dirname(tree.events), this.processing])
      fs.mkdirSync(dir, { recursive: true });
    fs.writeFileSync(tree.events, journal);
    const all = { ...DEFAULT_SETTINGS, agents: AGENTS, free_memory_min: GIB / 2, ...settings };
    const opened = openEnvironment({ tree, settings: all }, () => {});
    const clock = { ...opened.trays.clock, monotonicMs: () => this.nowMs };
    const env = { ...opened, facts: this.facts, trays: { ...opened.trays, clock } };
    const workers = {
      tellAll: ({ leases }: { leases: string[] }) => void this.stopped.push(...leases),
    };
    this.part = new MemoryPart({ env, queue: { pool: { workers } } } as never, () => this.look());
  }

  /** Begins a run if it may start. */
  start(agent: string, id: string, bytes = GIB): boolean {
    const lane = readLane(laneOf({ agentId: agent }));
    if (this.part.closed(lane) !== undefined) return false;
    this.part.noteStart(lane, id);
    this.runs.set(id, { bytes, fromMs: this.nowMs });
    return true;
  }

  alerts(): string[] {
    const lines = fs.readFileSync(this.alertsPath, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line).message);
  }

  /** Puts its claim into `processing/`. */
  claim(id: string): void {
    fs.writeFileSync(join(this.processing, formatName(claimOf(id))), "{}");
    this.facts.emit("processing:listed", fs.readdirSync(this.processing));
  }

  /** Begins as many as may start at once. */
  startMany(agent: string, count: number, bytes = GIB): number {
    return Array.from({ length: count }, (_, n) => this.start(agent, `${agent}${n}`, bytes)).filter(
      Boolean,
    ).length;
  }

  end(id: string): void {
    this.runs.delete(id);
    this.facts.emit("task:settled", id, true, undefined);
  }

  wait(ms: number): void {
    this.nowMs += ms;
    this.part.work({ nowMs: this.nowMs, dueMs: this.nowMs });
  }

  get used(): number {
    return this.inMemory().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  private inMemory(): RunMemory[] {
    return [...this.runs]
      .filter(([, { fromMs }]) => this.nowMs - fromMs >= 1000)
      .map(([id, { bytes, fromMs }]) => ({ id, lease: leaseOf(claimOf(id)), bytes, born: fromMs }));
  }

  private look(): MemoryLook {
    const { pressure, otherBytes, used } = this;
    return {
      freeBytes: 8 * GIB - otherBytes - used,
      allBytes: this.allBytes,
      runs: this.inMemory(),
      pressure,
    };
  }
}

describe("runs start as far as memory reaches", () => {
  it("counts what those that have just begun will take", () => {
    const machine = new Machine();
    expect(machine.startMany("claude", 20)).toBe(6);
    machine.wait(2000);
    expect(machine.start("claude", "more")).toBe(false);
    expect(machine.used).toBe(6 * GIB);
    machine.end("claude0");
    machine.wait(1000);
    expect(machine.start("claude", "more")).toBe(true);
    expect(machine.start("claude", "another")).toBe(false);
  });

  it("learns from the journal what the runs of an agent need, up at once and down slowly", async () => {
    const line = (peak: number): string =>
      `{"event":"completed","task_id":"a","agent_id":"claude","peak_memory_bytes":${peak}}\n`;
    const small = new Machine({}, line(GIB / 4));
    await small.part.start();
    expect(small.startMany("claude", 40, GIB / 4)).toBe(26);
    const large = new Machine({}, line(GIB / 4) + line(3 * GIB));
    await large.part.start();
    expect(large.startMany("claude", 40)).toBe(2);
    for (const id of ["claude0", "claude1"]) large.end(id);
    for (let n = 0; n < 40; n++) large.facts.emit("journal:line", line(GIB), "completed", {});
    large.wait(1000);
    expect(large.startMany("claude", 40)).toBe(6);
  });

  it("does not count light runs, and looks at nothing with free_memory_min 0", () => {
    const machine = new Machine();
    expect(machine.startMany("light", 500)).toBe(500);
    expect(new Machine({ free_memory_min: 0 }).startMany("big", 100)).toBe(100);
  });

  it("starts a run that fits nowhere when nothing else runs, and no second one", () => {
    const machine = new Machine();
    machine.otherBytes = 7.9 * GIB;
    expect(machine.start("big", "a")).toBe(true);
    expect(machine.start("big", "b")).toBe(false);
    machine.end("a");
    machine.wait(1000);
    expect(machine.start("big", "b")).toBe(true);
  });

  it("waits while the kernel says that processes wait for memory", () => {
    const machine = new Machine();
    machine.start("small", "a");
    machine.pressure = 40;
    expect(machine.start("small", "b")).toBe(false);
    machine.wait(100);
    expect(machine.part.gates[0]?.why).toMatch(/agent small: memory is short: .* 40 % of the last/);
    machine.pressure = 0;
    machine.wait(1000);
    expect(machine.start("small", "b")).toBe(true);
    machine.wait(100);
    expect(machine.part.gates).toEqual([]);
  });

  it("lets a large run start though small ones come without end", () => {
    const machine = new Machine();
    const running: string[] = [];
    let begun: number | undefined;
    for (let n = 0; n < 200 && begun === undefined; n++) {
      if (machine.start("big", "big", 6 * GIB)) begun = n;
      if (machine.start("small", `s${n}`)) running.push(`s${n}`);
      machine.wait(1000);
      if (n % 3 === 0) machine.end(running.shift() ?? "");
    }
    expect(begun).toBeDefined();
    expect(machine.used).toBeLessThanOrEqual(7 * GIB);
  });

  it("goes on when the run that comes first is held back by something else", () => {
    const machine = new Machine();
    machine.start("small", "a");
    machine.start("big", "big");
    for (let n = 0; n < 31; n++) {
      machine.wait(1000);
      expect(machine.start("big", "big")).toBe(false);
    }
    expect(machine.start("small", "b")).toBe(false);
    machine.end("a");
    expect(machine.start("small", "b")).toBe(false);
    machine.wait(1500);
    expect(machine.start("small", "b")).toBe(true);
  });

  it("puts the youngest runs back when something else takes the memory", () => {
    const machine = new Machine();
    for (const id of ["a", "b", "c"]) {
      machine.start("claude", id);
      machine.claim(id);
      machine.wait(1500);
    }
    machine.otherBytes = 6.8 * GIB;
    machine.wait(1000);
    expect(machine.stopped).toEqual(["c", "b"].map((id) => leaseOf(claimOf(id))));
    expect(machine.alerts()).toEqual([
      expect.stringMatching(/^c: it was put back with its 1.0 GiB: only .* are free/),
      expect.stringMatching(/^b: it was put back/),
    ]);
    machine.wait(1000);
    expect(machine.stopped).toHaveLength(2);
    expect(machine.start("claude", "d")).toBe(false);
  });

  it("keeps less free on a small machine", () => {
    const machine = new Machine({ free_memory_min: 4 * GIB });
    machine.allBytes = GIB;
    machine.otherBytes = 7.9 * GIB;
    for (const id of ["a", "b"]) {
      machine.start("small", id, 0.01 * GIB);
      machine.claim(id);
    }
    machine.wait(3000);
    expect(machine.stopped).toEqual([]);
  });

  it("forgets a run whose file has left processing/", () => {
    const machine = new Machine();
    machine.start("big", "a");
    machine.wait(6000);
    machine.facts.emit("processing:listed", []);
    expect(machine.start("big", "b")).toBe(true);
  });
});

describe("the runs that make room", () => {
  const run = (id: string, born: number, mib = 500): RunMemory => ({
    id,
    lease: id,
    bytes: mib * 2 ** 20,
    born,
  });
  const RUNS = [run("old", 1), run("new", 3), run("session", 2), run("light", 4, 10)];
  const idsOf = (mib: number, runs = RUNS): string[] =>
    runsToPutBack(runs, mib * 2 ** 20, ({ id }) => id === "session").map(({ id }) => id);

  it("are the youngest, first those that go on in their session", () => {
    expect(idsOf(100)).toEqual(["session"]);
    expect(idsOf(600)).toEqual(["session", "new"]);
  });

  it("are never all of them", () => {
    expect(idsOf(10_000)).toEqual(["session", "new"]);
    expect(idsOf(100, [run("old", 1), run("light", 4, 10)])).toEqual([]);
  });
});
