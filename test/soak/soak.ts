/**
 * A pool under a steady, mixed load, and whether it comes to hold more and more: descriptors, watches, memory, files.
 * The load: tasks as functions and programs, failures that are retried by command, cancels, batches, edits of the plan,
 * pauses and other commands, journals rotated under its hands; and a consumer that takes the records away.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Liveness } from "../support/liveness.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { type SeededRandom, seededRandom } from "../support/seeded-random.ts";
import { steeredConfig } from "../support/steered.ts";
import type { OnEnd } from "../support/temp-dir.ts";
import { type Sample, takeSample } from "./figures.ts";
import { growthOf, median, type Point } from "./slope.ts";

export interface SoakOptions {
  seconds: number;
  seed: number;
  /** What probe.mjs leaks on purpose. */
  leak?: string;
  onEnd: OnEnd;
  onProgress?: (progress: string) => void;
}

export interface Figure {
  name: string;
  /** Medians of the first and of the last third of the time after the warm-up. */
  before: number;
  after: number;
  growth: number;
  /** Growth above this is a leak. */
  allowed: number;
}

export interface SoakResult {
  figures: Figure[];
  problems: string[];
  tasks: number;
  batches: number;
  commands: number;
  edits: number;
  rotations: number;
  settled: number;
  samples: number;
  /** The longest that a task could have run and did not (ms). */
  longestIdleMs: number;
}

const WAITING_MAX = 60;
const TURN_MS = 100;
const SAMPLE_MS = 500;
const WARM_UP_MS_MAX = 180_000;
const NODES = 12;
const SLOTS = 4;
const BACKOFF_MAX_MS = 100;
/** What could run for so long and does not waits for nothing (ms). */
const IDLE_MS_MAX = 10_000;
/** A node is set open again when it has been done for so long: younger ones are taken for an old copy of the file. */
const REOPEN_MS = 7000;

export async function runSoak(o: SoakOptions): Promise<SoakResult> {
  const env: Record<string, string> = {
    NODE_OPTIONS: `--import=${fileURLToPath(new URL("probe.mjs", import.meta.url))}`,
  };
  const config = steeredConfig({
    workers: SLOTS,
    processes: 2,
    retry: `{max_attempts: 2, backoff_ms: 20, backoff_max_ms: ${BACKOFF_MAX_MS}}`,
  });
  // The retention of plans is for days; here the same few nodes run again and again.
  const pool = newPool({ config: `${config}${NODE_AGENT}`, onEnd: o.onEnd, env });
  const probes = join(pool.dir, "probes");
  fs.mkdirSync(probes);
  env["MAILCHUTE_PROBE_DIR"] = probes;
  if (o.leak !== undefined) env["MAILCHUTE_PROBE_LEAK"] = o.leak;
  const load = new Load(pool, seededRandom(o.seed));
  fs.writeFileSync(join(pool.dir, "node.mjs"), NODE);
  fs.writeFileSync(load.roadmap, plan());
  const running = await pool.start(["--no-live"]);
  const liveness = new Liveness(pool, {
    slots: SLOTS,
    backoffMaxMs: BACKOFF_MAX_MS,
    limitMs: IDLE_MS_MAX,
  });
  const samples: { seconds: number; sample: Sample }[] = [];
  // Until each part of the load has been done once nothing can be flat.
  const giveUpAtMs = performance.now() + WARM_UP_MS_MAX;
  while (load.settled === 0 || load.openNodes() > 0) {
    if (performance.now() > giveUpAtMs) throw new Error("the nodes of the plan do not get done");
    load.turn(0);
    await wait(TURN_MS);
  }
  const startMs = performance.now();
  const warmUpSeconds = o.seconds / 3;
  let sampleAtMs = startMs;
  let tellAtMs = startMs;
  for (;;) {
    const nowMs = performance.now();
    const seconds = (nowMs - startMs) / 1000;
    if (seconds > o.seconds) break;
    load.turn(seconds);
    liveness.look(true);
    if (nowMs >= sampleAtMs && seconds > warmUpSeconds) {
      sampleAtMs = nowMs + Math.max(SAMPLE_MS, (o.seconds * 1000) / 2000);
      samples.push({ seconds, sample: takeSample(pool, probes) });
    }
    if (nowMs >= tellAtMs) {
      tellAtMs = nowMs + 10_000;
      o.onProgress?.(`${Math.round(seconds)} s, ${load.tasks} tasks, ${load.settled} settled`);
    }
    await wait(TURN_MS);
  }
  const problems = [...liveness.problems];
  if (running.child.exitCode !== null) problems.push(`the supervisor ended: ${running.stderr()}`);
  const figures = judge(samples, o.seconds);
  for (const { name, growth, allowed } of figures)
    if (growth > allowed) problems.push(`${name} grew by ${growth.toFixed(1)}`);
  if (load.settled < load.tasks / 2)
    problems.push(`only ${load.settled} of ${load.tasks} tasks settled: it cannot keep up`);
  const { tasks, batches, commands, edits, rotations, settled } = load;
  return {
    figures,
    problems,
    tasks,
    batches,
    commands,
    edits,
    rotations,
    settled,
    samples: samples.length,
    longestIdleMs: liveness.longestMs,
  };
}

/** How much a figure may seem to grow: noise of a short look, not a trend. */
function allowedFor(name: string, level: number, isShort: boolean): number {
  // Code is compiled and caches fill in the first minutes.
  if (name.endsWith("heap (MB)")) return (isShort ? 15 : 4) + level * 0.1;
  if (name.endsWith("resident (MB)")) return (isShort ? 30 : 15) + level * 0.15;
  if (name.endsWith("watches")) return 2;
  // The inbox is the producers' side: its length says how busy the machine is.
  if (name.endsWith("mailbox/inbox")) return WAITING_MAX;
  // As many as run at once.
  return 6 + level * 0.1;
}

/** A look shorter than this (s) allows for more noise. */
const SHORT_SECONDS = 120;

export function judge(
  samples: readonly { seconds: number; sample: Sample }[],
  lengthSeconds: number,
): Figure[] {
  const names = new Set(samples.flatMap(({ sample }) => [...sample.keys()]));
  return [...names].map((name) => {
    const points = samples.flatMap(({ seconds, sample }): Point[] => {
      const value = sample.get(name);
      return value === undefined ? [] : [{ seconds, value }];
    });
    const third = Math.max(1, Math.floor(points.length / 3));
    const values = points.map(({ value }) => value);
    const before = median(values.slice(0, third));
    const after = median(values.slice(-third));
    const allowed = allowedFor(name, before, lengthSeconds < SHORT_SECONDS);
    return { name, before, after, growth: growthOf(points), allowed };
  });
}

const NODE_AGENT =
  "  - {name: node, kind: module, module: ../node.mjs, types: [implementer], phases: [IMPLEMENT]}\n";
const NODE = `
export default async (task) => ({ status: "success", summary: "did " + task.id, outputs: { "out.n": "1" } });
`;

function plan(): string {
  const lines = Array.from({ length: NODES }, (_, n) => {
    return `  - { id: node-${n}, type: task, status: open, title: "Node ${n}" }`;
  });
  return `nodes:\n${lines.join("\n")}\n`;
}

class Load {
  tasks = 0;
  batches = 0;
  commands = 0;
  edits = 0;
  rotations = 0;
  settled = 0;
  readonly roadmap: string;
  private readonly pool: Pool;
  private readonly random: SeededRandom;
  private readonly doneAtMs = new Map<string, number>();
  private turns = 0;

  constructor(pool: Pool, random: SeededRandom) {
    this.pool = pool;
    this.random = random;
    this.roadmap = join(pool.state, "roadmap.yaml");
  }

  turn(seconds: number): void {
    this.turns += 1;
    // On a busy machine less comes in: a backlog that grows is no leak.
    const waiting = fs.readdirSync(this.pool.inbox).length;
    for (let n = 0; n < 3 && waiting < WAITING_MAX; n++) this.drop();
    if (this.turns % 20 === 0) this.dropBatch();
    if (this.turns % 7 === 0) this.command();
    if (this.turns % 10 === 0) this.edit();
    if (this.turns % 10 === 5) this.consume();
    if (this.turns % 40 === 0) this.rotate(seconds);
  }

  private drop(): void {
    const id = `t-${this.tasks++}`;
    const kind = this.random.below(20);
    const call = (payload: object): object => ({ payload });
    if (kind === 0) this.pool.drop(id, { exec: ["sh", "-c", "exit 65"] });
    else if (kind < 3) this.pool.drop(id, { exec: ["sh", "-c", "echo out; sleep 0.05"] });
    else if (kind === 3)
      this.pool.drop(id, { exec: ["sh", "-c", "setsid sleep 5 & sleep 5"], timeout_ms: 200 });
    else if (kind === 4) this.pool.drop(id, call({ does: "refuse" }));
    else if (kind === 5) this.pool.drop(id, call({ does: "work", ms: 400 }));
    else this.pool.drop(id, call({ does: "work", ms: this.random.below(10) }));
  }

  private dropBatch(): void {
    const lines = Array.from({ length: 20 }, (_, n) =>
      JSON.stringify({ payload: { does: n % 9 === 0 ? "refuse" : "nothing" } }),
    );
    const staged = join(this.pool.dir, "batch");
    fs.writeFileSync(staged, `${lines.join("\n")}\n`);
    fs.renameSync(staged, join(this.pool.inbox, `b-${this.batches++}.ndjson`));
  }

  private command(): void {
    const recent = `t-${this.tasks - 1 - this.random.below(8)}`;
    const body = this.random.pick([
      { command: "pause" },
      { command: "set-workers", args: { workers: 3 + this.random.below(3) } },
      { command: "cancel", args: { node: recent } },
      { command: "cancel", args: { node: recent, final: true } },
      { command: "retry", args: { node: recent } },
    ]);
    this.give(body);
    if (body.command === "pause") this.give({ command: "resume" });
  }

  private give(body: object): void {
    const id = `c-${String(this.commands++).padStart(7, "0")}`;
    const staged = join(this.pool.dir, "command");
    fs.writeFileSync(staged, JSON.stringify(body));
    fs.renameSync(staged, join(this.pool.state, "control", "inbox", `${id}.json`));
  }

  /** Undefined in the instant in which the file is taken away to be replaced. */
  private readPlan(): string | undefined {
    try {
      return fs.readFileSync(this.roadmap, "utf8");
    } catch {
      return undefined;
    }
  }

  openNodes(): number {
    return NODES - (this.readPlan()?.match(/status: done/g) ?? []).length;
  }

  /** Sets one node that has been done for a while open again, as a person would. */
  private edit(): void {
    const text = this.readPlan();
    if (text === undefined) return;
    const nowMs = performance.now();
    const done = [...text.matchAll(/id: (node-\d+), type: task, status: (\w+)/g)];
    for (const [, id = "", status] of done) {
      if (status !== "done") this.doneAtMs.delete(id);
      else if (!this.doneAtMs.has(id)) this.doneAtMs.set(id, nowMs);
    }
    const old = [...this.doneAtMs].filter(([, atMs]) => nowMs - atMs > REOPEN_MS);
    const [id] = old[0] ?? [];
    if (id === undefined) return;
    const changed = text.replace(
      `id: ${id}, type: task, status: done`,
      `id: ${id}, type: task, status: open`,
    );
    fs.writeFileSync(`${this.roadmap}.mine`, changed);
    fs.renameSync(`${this.roadmap}.mine`, this.roadmap);
    this.doneAtMs.delete(id);
    this.edits += 1;
  }

  /** Takes the records away, but for those of the plan, which its next run archives. */
  private consume(): void {
    for (const dir of [this.pool.outbox, this.pool.failed]) {
      for (const file of fs.readdirSync(dir)) {
        if (file.startsWith("node-")) continue;
        if (/^t-.*_(?:result|error)\.json$/.test(file)) this.settled += 1;
        fs.rmSync(join(dir, file), { force: true });
      }
    }
  }

  /** As logrotate would. */
  private rotate(seconds: number): void {
    const stamp = new Date(seconds * 1000).toISOString().replace(/[:.]/g, "-");
    for (const name of ["supervisor_leases", "analytics/supervisor_lifecycle"]) {
      const path = join(this.pool.state, `${name}.jsonl`);
      if (fs.existsSync(path)) fs.renameSync(path, path.replace(/jsonl$/, `${stamp}.jsonl`));
    }
    this.rotations += 1;
  }
}
