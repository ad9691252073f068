/**
 * A git that comes first on PATH and counts its calls. At those that a test has chosen it is killed, alone or with the process that
 * has called it: so a kill at each step of git can be tried, one after the other.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** `before` and `after` are between two calls; `within` is at a system call of git itself; `during` is some ms after its start. */
export const MOMENTS = ["before", "during", "after", "within"] as const;
export type Moment = (typeof MOMENTS)[number];

/** `caller`: git and what has called it. `all`: and that of `alsoKill`. */
export type Victim = "git" | "caller" | "all";

export interface GitKill {
  /** Its number, from 1; or some of its arguments, as `GitCallMade.words` has them. */
  at: number | string;
  /** Of the calls with these arguments: which one, from 1. Default 1. */
  nth?: number;
  moment: Moment;
  victim: Victim;
  /** For `within`: the system call of git that is not carried out, as `stepsThatMatter` has it; a number: the nth of any name. */
  step?: string | number;
}

export interface GitCallMade {
  /** Its arguments in one line, with COMMIT for each object and PATH for each absolute path. */
  words: string;
  /** It was killed. */
  isKilled: boolean;
  /** What it changed, as strace says it; empty unless `countSteps` was asked for. */
  steps: string[];
}

export interface CountingGit {
  /** Counts from 1 until `disarm`. @param until it counts no more when this file is there */
  arm(kills: readonly GitKill[], until?: string): void;
  /** Like `arm` without kills; notes the steps of each call. Needs strace. */
  countSteps(until?: string): void;
  disarm(): void;
  /** For the victim `all`: the process that is killed beside the caller. */
  alsoKill(pid: number): void;
  /** The calls since `arm`. */
  calls(): GitCallMade[];
}

/** The real one. */
export const GIT = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

/** Whether `within` can be tried here. */
export function canCountSteps(): boolean {
  try {
    execFileSync("strace", ["-qq", "-o", "/dev/null", "true"], { stdio: "ignore" });
    return true;
  } catch {
    process.stderr.write("\nSKIPPED: kills within a call of git need strace\n");
    return false;
  }
}

/**
 * Puts it first on PATH of `env`.
 * @param dir a folder for it, which it makes
 * @param broken a script of a git that is broken on purpose; it may call `exec` or change its arguments
 */
export function countingGit(dir: string, env: Record<string, string>, broken = ""): CountingGit {
  const at = (...names: string[]): string => join(dir, ...names);
  const script = fileURLToPath(new URL("counting-git.sh", import.meta.url));
  for (const name of ["bin", "calls"]) fs.mkdirSync(at(name), { recursive: true });
  const set = Object.entries({ COUNTED: dir, REAL_GIT: GIT, BROKEN_GIT: broken });
  const lines = set.map(([name, value]) => `${name}='${value}'\n`).join("");
  fs.writeFileSync(at("bin", "git"), `#!/bin/sh\n${lines}. '${script}'\n`, { mode: 0o755 });
  env["PATH"] = `${at("bin")}${delimiter}${env["PATH"] ?? process.env["PATH"] ?? ""}`;

  const disarm = (): void => {
    for (const name of ["kills", "steps", "until"])
      fs.rmSync(at(name), { recursive: true, force: true });
  };
  const arm = (kills: readonly GitKill[], until?: string): void => {
    disarm();
    fs.rmSync(at("calls"), { recursive: true, force: true });
    fs.rmSync(at("named"), { recursive: true, force: true });
    for (const name of ["calls", "named", "orders"]) fs.mkdirSync(at(name));
    if (until !== undefined) fs.writeFileSync(at("until"), `${until}\n`);
    for (const { at: call, nth = 1, moment, victim, step = 0 } of kills) {
      const name = typeof call === "number" ? String(call) : "named";
      fs.writeFileSync(at("orders", name), `${moment} ${victim} ${step}\n`);
      if (typeof call === "string") fs.writeFileSync(at("orders", "words"), `${nth} ${call}\n`);
    }
    // All of it at once: from here on it counts.
    fs.renameSync(at("orders"), at("kills"));
  };
  return {
    arm,
    disarm,
    alsoKill: (pid) => fs.writeFileSync(at("also"), String(pid)),
    countSteps(until) {
      fs.writeFileSync(at("steps"), "");
      arm([], until);
      fs.writeFileSync(at("steps"), "");
    },
    calls() {
      const read = (...names: string[]): string =>
        fs.existsSync(at("calls", ...names)) ? fs.readFileSync(at("calls", ...names), "utf8") : "";
      const numbers = fs.readdirSync(at("calls")).map(Number);
      return numbers
        .sort((a, b) => a - b)
        .map((number) => {
          const name = String(number);
          const moment = read(name, "kill").split(" ")[0] ?? "";
          const steps = read(name, "steps")
            .split("\n")
            .filter((line) => line !== "");
          const hasEnded = moment === "within" && !fs.existsSync(at("calls", name, "killed"));
          return { words: read(name, "words").trim(), isKilled: moment !== "" && !hasEnded, steps };
        });
    },
  };
}

/**
 * The steps of a call at which a kill may matter: objects that nothing names yet are no loss, and what has failed changes nothing.
 * @returns the name of each system call, and which one of that name it is, from 1: strace counts by name, for each process of the call
 */
export function stepsThatMatter({ steps }: GitCallMade): string[] {
  const counts = new Map<string, number>();
  const found = new Set<string>();
  for (const line of steps) {
    const [, pid = "", name = "", rest = ""] = /^(\d+) +(\w+)\((.*)$/.exec(line) ?? [];
    if (pid === "") continue;
    const key = `${pid} ${name}`;
    const nth = (counts.get(key) ?? 0) + 1;
    counts.set(key, nth);
    if (!/["/]objects\//.test(rest) && !/= -1 E\w+/.test(rest)) found.add(`${name}:${nth}`);
  }
  return [...found];
}
