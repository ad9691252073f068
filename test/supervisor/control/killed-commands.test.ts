/** A supervisor that is killed between the claim of a command and its acknowledgement: the next one carries it out once, and answers. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errorName } from "../../../src/core/names.ts";
import { startTicksOf } from "../../../src/host/identity.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import {
  claimNextCommand,
  enqueueCommand,
  openTrays,
  readAcknowledgement,
} from "../../../src/index.ts";
import { newSubmission } from "../../../src/mailbox/claim/claim.ts";
import { noteSubject } from "../../../src/mailbox/commands/command-subject.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { running, send, startPaused, until, waiting } from "./command-pool.ts";

takeSome();

describe("killed between the claim of a command and its acknowledgement", () => {
  interface Begun {
    command: string;
    args?: Record<string, unknown>;
    expires_at?: number;
    /** What its supervisor had noted that it is about. */
    subject?: string;
  }
  /** Leaves these commands as a supervisor does that is killed right after it claimed them, and starts the next one. */
  async function dieOver(
    pool: Pool,
    commands: readonly Begun[],
  ): Promise<Record<string, unknown>[]> {
    const dead = pool.supervisor();
    if (dead === undefined) throw new Error("there was a supervisor");
    process.kill(dead.pid, "SIGKILL");
    await waitFor(() => startTicksOf(dead.pid) === undefined, { what: "its end" });
    const trays = openTrays(join(pool.state, "control"), { durability: "process" });
    const ids: string[] = [];
    for (const [n, { subject, ...request }] of commands.entries()) {
      ids.push((await enqueueCommand(trays, request)).id);
      const owner = `${dead.place}-${dead.pid.toString(36)}-${dead.start_ticks.toString(36)}`;
      const claimed = claimNextCommand(trays, `${owner}-${n + 1}`);
      if (claimed !== undefined && subject !== undefined)
        await noteSubject(trays, claimed.claim.name, subject);
    }
    expect(fs.readdirSync(trays.inbox)).toEqual([]);
    await pool.start();
    const answers: Record<string, unknown>[] = [];
    for (const id of ids)
      answers.push(await waitFor(() => readAcknowledgement(trays, id), { what: "the answer" }));
    // Its last step comes after it can be read.
    await waitFor(() => fs.readdirSync(trays.processing).length === 0, { what: "its end" });
    return answers;
  }
  async function diesOver(
    pool: Pool,
    command: string,
    args: Record<string, unknown> = {},
    more = {},
    subject?: string,
  ): Promise<Record<string, unknown>> {
    const begun = { command, args, ...more, ...(subject === undefined ? {} : { subject }) };
    return (await dieOver(pool, [begun]))[0] ?? {};
  }
  const count = (pool: Pool, event: string): number =>
    pool.events().filter((e) => e["event"] === event).length;

  it("pause, set-workers and a final cancel are in effect once", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("t", { exec: ["true"], not_before: 4_000_000_000 });
    await waitFor(() => pool.supervisor()?.waiting.delayed === 1, { what: "t to wait" });
    const [pause, workers, cancel] = await dieOver(pool, [
      { command: "pause" },
      { command: "set-workers", args: { workers: 2 } },
      { command: "cancel", args: { node: "t", final: true } },
    ]);
    expect(pause).toMatchObject({ status: "completed", result: { paused: true }, attempts: 2 });
    expect(workers).toMatchObject({ result: { workers: 2 } });
    expect(cancel).toMatchObject({ result: { cancelled: "t" } });
    expect(count(pool, "paused")).toBe(1);
    expect(JSON.parse(fs.readFileSync(join(pool.state, "control.json"), "utf8"))).toMatchObject({
      paused: true,
      max_workers: 2,
    });
    expect(await pool.error("t")).toMatchObject({ kind: "cancelled" });
    expect([...waiting(pool), ...fs.readdirSync(pool.processing)]).toEqual([]);
  });

  it("resume and retry are in effect once: the task runs again", async () => {
    const pool = newPool();
    await startPaused(pool);
    const record = { task_id: "t", status: "failed", error: "x", task: { exec: ["true"] } };
    fs.writeFileSync(join(pool.failed, errorName("t")), JSON.stringify(record));
    const [resume, retry] = await dieOver(pool, [
      { command: "resume" },
      { command: "retry", args: { node: "t" } },
    ]);
    expect(resume).toMatchObject({ result: { paused: false } });
    expect(retry).toMatchObject({ result: { retried: "t" } });
    expect(count(pool, "resumed")).toBe(1);
    await pool.result("t");
    expect(fs.readdirSync(pool.failed)).toEqual([]);
  });

  it("cancel stops the program, which had gone on without a supervisor", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1"]);
    const pidFile = join(pool.dir, "pid");
    pool.drop("long", { exec: ["sh", "-c", `echo $$ > '${pidFile}'; exec sleep 600`] });
    const pid = Number(
      await waitFor(() => fs.existsSync(pidFile) && fs.readFileSync(pidFile, "utf8").trim(), {
        what: "the program",
      }),
    );
    await send(pool, "pause");
    expect(await diesOver(pool, "cancel", { node: "long" })).toMatchObject({
      result: { cancelled: "long" },
    });
    expect(startTicksOf(pid)).toBeUndefined();
    expect(waiting(pool)).toEqual(["long.json"]);
  });

  it("a retry that was carried out is not carried out on what failed since", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("t", { exec: ["false"], max_attempts: 1 });
    const before = await pool.error("t");
    expect(await diesOver(pool, "retry", { node: "t" }, {}, "of another letter")).toMatchObject({
      status: "completed",
      result: { retried: "t" },
    });
    expect(await pool.error("t")).toEqual(before);
  });

  it("a cancel that was carried out does not stop what was started since", async () => {
    const pool = newPool();
    const gate = join(pool.dir, "go");
    await pool.start(["--workers", "1"]);
    pool.drop("t", { exec: until(gate), max_attempts: 1 });
    await waitFor(() => running(pool).includes("t"), { what: "t to run" });
    const file = fs.readdirSync(pool.processing)[0];
    expect(await diesOver(pool, "cancel", { node: "t" }, {}, "before.1.dead-1-1-1")).toMatchObject({
      status: "completed",
      result: { cancelled: "t" },
    });
    expect(fs.readdirSync(pool.processing)).toEqual([file]);
    fs.writeFileSync(gate, "");
    expect(await pool.result("t")).toMatchObject({ attempts: 1 });
  });

  it("one that was begun is finished although it has expired meanwhile", async () => {
    const pool = newPool();
    await startPaused(pool);
    pool.drop("t", { exec: ["true"] });
    const { submission } = newSubmission(systemClock, "t", 1);
    const args = { node: "t", final: true };
    expect(
      await diesOver(pool, "cancel", args, { expires_at: 1 }, `${submission}.1.`),
    ).toMatchObject({ result: { cancelled: "t" } });
    expect(await pool.error("t")).toMatchObject({ kind: "cancelled", attempts: 0 });
  });

  it("stop was for the one that was killed: the next one goes on", async () => {
    const pool = newPool();
    await pool.start();
    expect(await diesOver(pool, "stop")).toMatchObject({ result: { stopped: true } });
    pool.drop("t", { exec: ["true"] });
    await pool.result("t");
  });

  it("a command that has expired meanwhile is answered, not carried out", async () => {
    const pool = newPool();
    await pool.start();
    expect(await diesOver(pool, "pause", {}, { expires_at: 1 })).toMatchObject({
      status: "failed",
      error: /expired/,
    });
    expect(count(pool, "paused")).toBe(0);
  });
});
