/** The tasks and commands of a pool under chaos, and what each may come to. Pure: all of it follows from the seed. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type SeededRandom, seededRandom } from "../../support/seeded-random.ts";

export type End = "completed" | "failed";

export interface Work {
  id: string;
  /** Name of the file in the inbox. */
  file: string;
  text: string;
  kind: string;
  /** What it may settle as; a cancel adds to it. */
  ends: readonly End[];
  /** Lines of a batch, by number from 1, with what each may come to. */
  lines?: readonly End[];
  /** Runs that it needs when nothing strikes; of a batch, those of its lines. */
  runs: number;
}

const PROGRAM = fileURLToPath(new URL("program.sh", import.meta.url));
export const HANDLER = fileURLToPath(new URL("handler.mjs", import.meta.url));

type Kind = (make: Maker) => Omit<Work, "id" | "file" | "kind" | "text"> & { body: unknown };

/** Makes one kind of task after the other. */
class Maker {
  readonly random: SeededRandom;
  readonly trace: string;
  /** Tasks that complete, for others to depend on. */
  readonly good: string[] = [];

  constructor(random: SeededRandom, trace: string) {
    this.random = random;
    this.trace = trace;
  }

  call(does: string, ms: number): object {
    return { payload: { does, ms, trace: this.trace } };
  }

  run(does: string, seconds: number): object {
    return { exec: ["sh", PROGRAM, this.trace, does, String(seconds)] };
  }
}

const completes = { ends: ["completed"], runs: 1 } as const;
const fails = { ends: ["failed"], runs: 1 } as const;

/** Kinds with their shares of a hundred tasks. */
const KINDS: Readonly<Record<string, [number, Kind]>> = {
  function: [43, (m) => ({ ...completes, body: m.call("ok", m.random.below(60)) })],
  program: [14, (m) => ({ ...completes, body: m.run("ok", 0) })],
  "program with a family": [4, (m) => ({ ...completes, body: m.run("family", 0.1) })],
  "function, third run": [5, (m) => ({ ...completes, runs: 3, body: m.call("third", 0) })],
  "program, third run": [4, (m) => ({ ...completes, runs: 3, body: m.run("third", 0) })],
  "function that fails": [4, (m) => ({ ...fails, body: m.call("fail", 0) })],
  "program that fails": [4, (m) => ({ ...fails, body: m.run("fail", 0) })],
  "slow function": [11, (m) => ({ ...completes, body: m.call("ok", 200 + m.random.below(1300)) })],
  "slow program": [3, (m) => ({ ...completes, body: m.run("ok", 0.3 + m.random.below(6) / 10) })],
  "program past its time": [
    2,
    (m) => ({
      // Whoever kills what it waits for lets it end well.
      ends: ["completed", "failed"],
      runs: 2,
      body: { ...m.run("family", 60), timeout_ms: 150, max_attempts: 2 },
    }),
  ],
  dependent: [
    3,
    (m) => ({
      ...completes,
      body: {
        ...m.call("ok", 0),
        metadata: { dependencies: m.good.length > 0 ? [m.random.pick(m.good)] : [] },
      },
    }),
  ],
  batch: [3, makeBatch],
};

function makeBatch(m: Maker): ReturnType<Kind> {
  const lines = Array.from({ length: 3 + m.random.below(20) }, (): End => {
    return m.random() < 0.15 ? "failed" : "completed";
  });
  const body = lines.map((end) => m.call(end === "failed" ? "fail" : "ok", m.random.below(30)));
  return { ends: ["completed"], lines, runs: lines.length, body };
}

/** All tasks, in the order in which they are dropped. @param trace path of the file to which each run adds its lines */
export function makeWork(seed: number, count: number, trace: string): Work[] {
  const make = new Maker(seededRandom(seed ^ 0x5eed), trace);
  const shares = Object.entries(KINDS).flatMap(([kind, [share]]) =>
    Array<string>(share).fill(kind),
  );
  return Array.from({ length: count }, (_, n) => {
    const kind = make.random.pick(shares);
    const id = `${kind.replace(/[ ,]+/g, "-")}-${String(n).padStart(5, "0")}`;
    const { body, ...work } = (KINDS[kind] as [number, Kind])[1](make);
    if (kind === "function" || kind === "program") make.good.push(id);
    const isBatch = work.lines !== undefined;
    const text = isBatch
      ? (body as object[]).map((line) => `${JSON.stringify(line)}\n`).join("")
      : JSON.stringify(body);
    return { id, file: `${id}.${isBatch ? "ndjson" : "json"}`, text, kind, ...work };
  });
}

export interface Steering {
  /** Time since the command before it (ms). */
  afterMs: number;
  body: { command: string; args?: Record<string, unknown> };
  /** Of a cancel or retry: which of the tasks dropped, counted from the newest, in [0, 1). */
  subject?: number;
}

/** Commands without end. A pause is followed by its end. */
export function* commandsOf(seed: number): Generator<Steering> {
  const random = seededRandom(seed ^ 0xc0de);
  for (;;) {
    const kind = random.pick(["pause", "set-workers", "cancel", "requeue", "requeue", "retry"]);
    const afterMs = 100 + random.below(700);
    if (kind === "pause") {
      yield { afterMs, body: { command: "pause" } };
      yield { afterMs: 100 + random.below(300), body: { command: "resume" } };
    } else if (kind === "set-workers") {
      yield { afterMs, body: { command: "set-workers", args: { workers: 3 + random.below(7) } } };
    } else if (kind === "retry") {
      yield { afterMs, body: { command: "retry" }, subject: random() };
    } else {
      const args = kind === "cancel" ? { final: true } : {};
      yield { afterMs, body: { command: "cancel", args }, subject: random() };
    }
  }
}

export function traceIn(dir: string): string {
  return join(dir, "trace");
}
