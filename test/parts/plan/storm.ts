/**
 * A plan in layers that runs while processes of it are killed at random and a person edits the file. What is wrong in the
 * end is told by `checkFinishedRoadmap`, and by what became of the person's edits.
 */
import fs from "node:fs";
import { join } from "node:path";
import { checkFinishedRoadmap } from "../../support/check-roadmap.ts";
import type { Pool, Running } from "../../support/pool.ts";
import { readPlan } from "../../support/read-plan.ts";
import { type SeededRandom, seededRandom } from "../../support/seeded-random.ts";
import { waitFor } from "../../support/wait-for.ts";

export interface StormOptions {
  seed: number;
  nodes: number;
  layers: number;
  /** SIGKILL to one random process of the pool this often (ms); 0 = never. */
  killEveryMs: number;
  /** A person's edit this often (ms); 0 = never. */
  editEveryMs: number;
  timeoutMs: number;
  /** Called every ten seconds. */
  onProgress?: (progress: string) => void;
}

export interface StormResult {
  problems: string[];
  kills: number;
  edits: number;
  /** How often the supervisor was started. */
  starts: number;
}

/** `config.yaml` of a storm: one phase, because the phases have tests of their own. */
export const STORM_CONFIG = `
workers: 4
processes: 2
durability: process
settle_ms: 300
sweep_ms: 200
grace_ms: 500
retry: {max_attempts: 50, backoff_ms: 20, backoff_max_ms: 100}
agents:
  - {name: hand, kind: module, module: ../hand.mjs, types: [implementer], phases: [IMPLEMENT]}
`;

const HAND = `
export default async (task) => {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
  return { status: "success", summary: "done " + task.id, outputs: { "out.by": String(process.pid) } };
};
`;

export async function runStorm(pool: Pool, o: StormOptions): Promise<StormResult> {
  const random = seededRandom(o.seed);
  const roadmap = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(join(pool.dir, "hand.mjs"), HAND);
  fs.writeFileSync(roadmap, layeredPlan(o, random));
  const person = new Person(roadmap, random);
  let kills = 0;
  let starts = 0;
  let running: Running | undefined;
  let exitCode: number | null | undefined;
  const start = (): void => {
    starts++;
    const started = pool.spawn(["run", "--drain", "--no-live"]);
    running = started;
    // Not `ended`: workers that outlive it keep its output open.
    started.child.once("exit", (code, signal) => {
      // What a person added in the instant of the end is for another run; a node of the plan must not be left.
      const left = signal === null ? openItems(roadmap) : [];
      const isMore = left.length > 0 && left.every((line) => line.includes("{ id: extra-"));
      if (signal === null && !isMore) exitCode = code;
      else running = undefined;
    });
  };
  const startedMs = performance.now();
  // The first as soon as the pool stands: on a fast machine a small plan is over within a second.
  let killAtMs = 0;
  let editAtMs = o.editEveryMs;
  let tellAtMs = 10_000;
  await waitFor(
    () => {
      const elapsedMs = performance.now() - startedMs;
      if (exitCode !== undefined && exitCode !== null) return true;
      if (running === undefined) start();
      if (elapsedMs >= tellAtMs) {
        tellAtMs += 10_000;
        const { done = 0 } = pool.supervisor()?.roadmap ?? {};
        o.onProgress?.(`${done} done, ${kills} kills, ${starts} starts, ${person.count} edits`);
      }
      if (o.killEveryMs > 0 && elapsedMs >= killAtMs) {
        const pids = pool.pids();
        // On a slow machine a supervisor that is killed while it starts, again and again, would prove nothing.
        if (pids.length >= 3) {
          killAtMs = elapsedMs + o.killEveryMs;
          if (kill(random.pick(pids))) kills++;
        }
      }
      if (o.editEveryMs > 0 && elapsedMs >= editAtMs) {
        editAtMs = elapsedMs + o.editEveryMs;
        person.edit();
      }
      return false;
    },
    { timeoutMs: o.timeoutMs, what: "the end of the plan" },
  );
  const problems = checkFinishedRoadmap(pool.state);
  if (exitCode !== 0) problems.push(`the last run ended with ${String(exitCode)}`);
  problems.push(...person.missing());
  return { problems, kills, edits: person.count, starts };
}

function openItems(roadmap: string): string[] {
  const lines = readPlan(roadmap).split("\n");
  return lines.filter((line) => line.includes("status: open"));
}

/** Each node depends on two of the layer before it. */
function layeredPlan({ nodes, layers }: StormOptions, random: SeededRandom): string {
  const perLayer = Math.ceil(nodes / layers);
  const lines = ["# a plan in layers", "nodes:"];
  for (let i = 0; i < nodes; i++) {
    const layer = Math.floor(i / perLayer);
    const from = (layer - 1) * perLayer;
    const pick = (): string => `n-${from + Math.floor(random() * perLayer)}`;
    const on = layer === 0 ? "" : `, dependencies: [${[...new Set([pick(), pick()])].join(", ")}]`;
    lines.push(`  - { id: n-${i}, type: task, status: open, title: "Node ${i}"${on} }`);
  }
  return `${lines.join("\n")}\n`;
}

const EXTRAS_MAX = 20;

/** Somebody with an editor: adds comments and items, and moves lines about; saves in place or by rename. */
class Person {
  count = 0;
  private readonly path: string;
  private readonly random: SeededRandom;
  private readonly marks: string[] = [];

  constructor(path: string, random: SeededRandom) {
    this.path = path;
    this.random = random;
  }

  edit(): void {
    const lines = this.lines();
    if (lines === undefined) return;
    const items = lines.flatMap((line, i) => (line.startsWith("  - {") ? [i] : []));
    const at = items[Math.floor(this.random() * items.length)];
    if (at === undefined) throw new Error("the roadmap has no items any more");
    const n = this.count++;
    // Items that are added without end would never all be done.
    const kind = n < EXTRAS_MAX * 3 ? n % 3 : (n % 2) * 2;
    if (kind === 0) {
      lines.splice(at, 0, `  # <remark ${n}>`);
      this.marks.push(`<remark ${n}>`);
    } else if (kind === 1) {
      lines.splice(at, 0, `  - { id: extra-${n}, status: open, title: "added" }  # <item ${n}>`);
      this.marks.push(`<item ${n}>`);
    } else {
      const [line = ""] = lines.splice(at, 1);
      lines.splice(items[0] ?? at, 0, `${line}  # <moved ${n}>`);
      this.marks.push(`<moved ${n}>`);
    }
    const text = lines.join("\n");
    if (this.random() < 0.5) fs.writeFileSync(this.path, text);
    else {
      fs.writeFileSync(`${this.path}.mine`, text);
      fs.renameSync(`${this.path}.mine`, this.path);
    }
  }

  /** Undefined in the instant between the old file and the new one; after a kill there, the next start puts it back. */
  private lines(): string[] | undefined {
    try {
      return fs.readFileSync(this.path, "utf8").split("\n");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  missing(): string[] {
    const text = fs.readFileSync(this.path, "utf8");
    return this.marks
      .filter((mark) => !text.includes(mark))
      .map((mark) => `the person's edit "${mark}" is lost`);
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
