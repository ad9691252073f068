/** Tasks of the steered handler (`test/fixtures/programs/steered-handler.mjs`), and what it wrote down of its runs. */
import fs from "node:fs";
import { join } from "node:path";
import { newPool, type Pool } from "./pool.ts";
import { programPath } from "./programs.ts";
import { type SmallDisk, smallDisk } from "./small-disk.ts";

/** A `config.yaml` whose default agent is the steered handler. @param lines settings that win over those of the tests */
export function steeredConfig(lines: Record<string, string | number> = {}): string {
  const settings = {
    durability: "process",
    workers: 4,
    settle_ms: 300,
    sweep_ms: 200,
    grace_ms: 300,
    retry: "{max_attempts: 3, backoff_ms: 20, backoff_max_ms: 100}",
    ...lines,
  };
  const text = Object.entries(settings).map(([name, value]) => `${name}: ${value}`);
  const module = programPath("steered-handler.mjs");
  return `${text.join("\n")}\nagents:\n  - {name: steered, kind: module, module: ${module}, default: true}\n`;
}

export interface Steps {
  does?:
    | "nothing"
    | "work"
    | "speak"
    | "await"
    | "hang"
    | "block"
    | "measure"
    | "log"
    | "die"
    | "fail"
    | "refuse";
  ms?: number;
  /** Path of the file it waits for. */
  until?: string;
  /** The attempt that does not fail. */
  good?: number;
}

export interface TraceLine {
  what: "start" | "end";
  id: string;
  attempt: number;
  lease: string;
  pid: number;
  /** Epoch ms. */
  t: number;
}

export function tracePath(pool: Pool): string {
  return join(pool.dir, "trace.jsonl");
}

/** The payload that makes the handler do this. */
export function steps(pool: Pool, what: Steps): { payload: Steps & { trace: string } } {
  return { payload: { ...what, trace: tracePath(pool) } };
}

/** Every line that handlers and programs have written so far. */
export function trace(pool: Pool): TraceLine[] {
  const path = tracePath(pool);
  if (!fs.existsSync(path)) return [];
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .flatMap((line) => {
      const whole = /^\{.*"t":\d+\}$/.test(line);
      // A program killed while it asked for the time leaves a line without one.
      return whole ? [JSON.parse(line) as TraceLine] : [];
    });
}

export function starts(pool: Pool, id: string): TraceLine[] {
  return trace(pool).filter((line) => line.what === "start" && line.id === id);
}

/** A pool whose state tree lies on a disk of 1 MiB; traces and programs lie elsewhere. Needs root. */
export function poolOnSmallDisk(
  settings: Record<string, string | number> = {},
  inodesMax = 0,
): { pool: Pool; disk: SmallDisk } {
  const disk = smallDisk(inodesMax);
  const pool = newPool({ config: steeredConfig(settings) });
  const state = join(disk.dir, "state");
  fs.cpSync(pool.state, state, { recursive: true });
  fs.rmSync(pool.state, { recursive: true });
  fs.symlinkSync(state, pool.state);
  // What is dropped must come from the same file system.
  const drop: Pool["drop"] = (id, task) => {
    const staged = join(disk.dir, `${id}.json`);
    try {
      fs.writeFileSync(staged, JSON.stringify(task));
    } catch (error) {
      fs.rmSync(staged, { force: true });
      throw error;
    }
    fs.renameSync(staged, join(state, "mailbox", "inbox", `${id}.json`));
  };
  return { pool: { ...pool, drop }, disk };
}
