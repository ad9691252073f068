/** What a run leaves behind: processes that left its group in several ways, under each kind of task. Real processes. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Agent, Assignment } from "../../src/agents/agent.ts";
import { closeBackground, Orphans } from "../../src/agents/background.ts";
import { BUILT_IN_EXEC } from "../../src/core/matching.ts";
import { hostKind } from "../../src/host/host-kind.ts";
import { isGone } from "../../src/host/identity.ts";
import { onProc } from "../support/needs-proc.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** Each writes the pid of the process that it leaves into the file "$1", and ends with 0. */
const LEAVER = 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 600';
const WAYS: Readonly<Record<string, string>> = {
  "a session of its own": `setsid sh -c '${LEAVER}' sh "$1" &`,
  "a double fork": `(setsid sh -c '${LEAVER}' sh "$1" &) &`,
  "a daemon that closes its files": `(setsid sh -c '${LEAVER}' sh "$1" <&- >&- 2>&- &)`,
  "a child of one that left": `setsid sh -c 'sh -c "$2" sh "$1"; :' sh "$1" '${LEAVER}' &`,
};
/** Waits until the process is there, and so has left. */
const scriptOf = (way: string): string => `${way}\nuntil [ -s "$1" ]; do sleep 0.02; done`;

let count = 0;

/** @returns whether the process that was left goes on, and what the record says */
async function afterRun(
  way: string,
  agent: Pick<Agent, "settings">,
  keep?: boolean,
  known?: Pick<Orphans, "have">,
): Promise<{ goesOn: boolean; told: number | undefined }> {
  const stateDir = tempDir();
  const file = join(stateDir, "pid");
  const lease = `t.1.x-${process.pid}-${++count}`;
  const program = spawn("sh", ["-c", scriptOf(way), "sh", file], {
    env: { PATH: process.env["PATH"], MAILCHUTE_LEASE: lease },
    detached: true,
    stdio: "ignore",
  });
  await new Promise((resolve) => program.once("exit", resolve));
  const pid = Number(fs.readFileSync(file, "utf8"));
  onTestFinished(() => killIfThere(pid));
  const usage: Assignment["usage"] = {};
  const task = { id: "t", ...(keep === undefined ? {} : { keep_background: keep }) };
  const run = { task, lease, limiter: undefined, stateDir, usage } as Parameters<
    typeof closeBackground
  >[1];
  await closeBackground(agent, run, known);
  return { goesOn: !isGone(pid), told: usage.left_processes };
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It was ended, as it should be.
  }
}

const PLAIN = { settings: BUILT_IN_EXEC };
const AGENT = { settings: { ...BUILT_IN_EXEC, name: "worker" } };

describe.skipIf(hostKind() === "portable")("of a run that ended by itself", () => {
  for (const [name, way] of Object.entries(WAYS)) {
    test(`${name} goes on after a plain exec, and is told of`, async () => {
      const left = name === "a child of one that left" ? 2 : 1;
      expect(await afterRun(way, PLAIN)).toEqual({ goesOn: true, told: left });
      expect(await afterRun(way, PLAIN, false)).toEqual({ goesOn: false, told: undefined });
    });

    test(`${name} is ended after the run of an agent`, async () => {
      expect((await afterRun(way, AGENT)).goesOn).toBe(false);
      expect((await afterRun(way, AGENT, true)).goesOn).toBe(true);
    });
  }

  test("where the system does not show orphans, those of an agent are ended all the same", async () => {
    const blind = { have: () => undefined };
    const way = WAYS["a double fork"] ?? "";
    expect((await afterRun(way, AGENT, undefined, blind)).goesOn).toBe(false);
    expect(await afterRun(way, PLAIN, undefined, blind)).toEqual({ goesOn: true, told: undefined });
  });

  test("a look that sees no orphan would leave the processes of an agent, and tell of none", async () => {
    const broken = { have: () => false };
    for (const way of Object.values(WAYS)) {
      expect((await afterRun(way, AGENT, undefined, broken)).goesOn).toBe(true);
      expect((await afterRun(way, PLAIN, undefined, broken)).told).toBeUndefined();
    }
  });

  test("a look that knows each pid for ever would miss a process that got a known one", async () => {
    const orphans = new Orphans();
    expect(orphans.have("none")).toBe(false);
    expect(await afterRun(WAYS["a double fork"] ?? "", PLAIN, undefined, orphans)).toMatchObject({
      told: 1,
    });
    // What it knew has ended by now, and is forgotten.
    expect(orphans.have("none")).toBe(false);
  });
});

/** The task's own program, or the agent's, leaves a process; its pid is then in a file with the name of the task. */
const DOUBLE_FORK = `set -- "$MAILCHUTE_STATE/../$MAILCHUTE_TASK_ID"\n${scriptOf(WAYS["a double fork"] ?? "")}`;
const AGENTS = [{ name: "leaver", kind: "exec", program: "sh", args: ["-c", DOUBLE_FORK] }];
const CONFIG = `${QUICK_CONFIG}agents: ${JSON.stringify(AGENTS)}\n`;

/** Runs a task that leaves a process. @returns its pid, and the record of the task */
async function leftBy(pool: Pool, id: string, task: Record<string, unknown>) {
  pool.drop(id, task);
  const record = await pool.result(id);
  const pid = Number(fs.readFileSync(join(pool.dir, id), "utf8"));
  onTestFinished(() => killIfThere(pid));
  return { pid, record };
}

onProc(
  "a pool ends what agents and limited runs leave, and says what a plain exec has left",
  async () => {
    const pool = newPool({ config: CONFIG });
    await pool.start();
    const exec = ["sh", "-c", DOUBLE_FORK];
    const limits = { run_limits: { memory_bytes: 1024 ** 3 } };
    const plain = await leftBy(pool, "plain", { exec });
    expect(plain.record.left_processes).toBe(1);
    const ended = {
      agent: await leftBy(pool, "agent", { agent: "leaver" }),
      limited: await leftBy(pool, "limited", { exec, ...limits }),
      asked: await leftBy(pool, "asked", { exec, keep_background: false }),
    };
    for (const { pid, record } of Object.values(ended)) {
      expect(isGone(pid)).toBe(true);
      expect(record.left_processes).toBeUndefined();
    }
    const kept = await leftBy(pool, "kept", { exec, ...limits, keep_background: true });
    expect(kept.record.left_processes).toBe(1);
    await pool.stop();
    for (const { pid } of [plain, kept]) expect(isGone(pid)).toBe(false);
  },
);

onProc(
  "a limited run ends also what has cleared its environment, once a look has seen it",
  async () => {
    const pool = newPool({ config: CONFIG });
    await pool.start();
    const bare = `set -- "$MAILCHUTE_STATE/../$MAILCHUTE_TASK_ID"
env -i PATH="$PATH" setsid sh -c '${LEAVER}' sh "$1" & sleep 1.5`;
    const { pid } = await leftBy(pool, "bare", {
      exec: ["sh", "-c", bare],
      run_limits: { processes: 50 },
    });
    await waitFor(() => isGone(pid), { what: "its end" });
  },
);

onProc("what the run of an agent has started serves its checks, and ends after them", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  // The check finds what the run has started.
  const verify = ["sh", "-c", `kill -0 $(cat ${join(pool.dir, "checked")})`];
  const { pid } = await leftBy(pool, "checked", { agent: "leaver", verify });
  expect(isGone(pid)).toBe(true);
});
