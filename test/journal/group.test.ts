/** The lines of both journals about a task name its group, so that a reader needs no task files; `selected` names its title, too. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/host/system-clock.ts";
import { recordClaimed, recordSettled } from "../../src/journal/attempts.ts";
import { Telemetry } from "../../src/journal/telemetry.ts";
import { newPool } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

type Line = Record<string, unknown>;

const linesOf = (...paths: string[]): Line[] =>
  paths.flatMap((path) =>
    fs
      .readFileSync(path, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line),
  );
const namesIn = (lines: Line[]): unknown[] => lines.map((line) => line["event"] ?? line["status"]);
const withoutGroup = (lines: Line[]): unknown[] =>
  namesIn(lines.filter((line) => line["task_id"] !== "" && line["group"] === undefined));

it("all lines of tasks that run, fail, are tried again, are skipped and are cancelled name their group", async () => {
  const pool = newPool({ config: "workers: 1\nretry: {backoff_ms: 1, backoff_max_ms: 1}\n" });
  const task = { group: "gpu", title: `${"\u{1f680}".repeat(79)}xyz` };
  pool.drop("well", { ...task, exec: ["true"] });
  pool.drop("bad", { ...task, exec: ["false"], max_attempts: 2 });
  pool.drop("after", { ...task, exec: ["true"], dependencies: ["bad"] });
  pool.drop("never", { ...task, exec: ["true"], not_before: 4_000_000_000 });
  pool.drop("plain", { exec: ["true"] });
  await pool.run(["cancel", "never"]);
  await pool.run(["run", "--drain"]);
  const events = linesOf(join(pool.state, "analytics", "supervisor_lifecycle.jsonl"));
  const leases = linesOf(join(pool.state, "supervisor_leases.jsonl"));
  const isPlain = (line: Line): boolean => line["task_id"] === "plain";
  const told = [...events, ...leases].filter((line) => !isPlain(line));
  expect(withoutGroup(told)).toEqual([]);
  for (const name of ["failed", "retry_scheduled", "skipped", "cancelled", "released", "active"])
    expect(namesIn(told)).toContain(name);
  const plain = [...events, ...leases].filter(isPlain);
  expect(withoutGroup(plain)).toEqual(namesIn(plain));
  const selected = events.filter(({ event }) => event === "selected");
  const titles = new Map(selected.map((line) => [line["task_id"], line["title"]]));
  expect(titles.get("well")).toBe(`${"\u{1f680}".repeat(79)}x`);
  expect(titles.get("plain")).toBeUndefined();
});

it("lines of runs that are put back or lose their worker name the group, too", async () => {
  const pool = newPool({ config: "workers: 1\n" });
  const run = await pool.start();
  pool.drop("long", {
    group: "gpu",
    exec: ["sh", "-c", "test -e done || sleep 1000"],
    cwd: pool.dir,
  });
  const claims = (): string[] => fs.readdirSync(pool.processing).filter((n) => n.includes("~w"));
  const events = (): Line[] => linesOf(join(pool.state, "analytics", "supervisor_lifecycle.jsonl"));
  const started = (): number => namesIn(events()).filter((name) => name === "started").length;
  await waitFor(() => claims().length === 1 && started() === 1, { what: "the first run" });
  expect((await pool.run(["cancel", "--requeue", "long"])).code).toBe(0);
  await waitFor(() => claims().length === 1 && started() === 2, { what: "the second run" });
  const [worker] = JSON.parse((await pool.run(["status", "--json"])).stdout).workers;
  process.kill(worker.pid, "SIGKILL");
  fs.writeFileSync(join(pool.dir, "done"), "");
  await pool.result("long");
  await pool.stop();
  expect(run.stderr()).toContain("ended");
  const told = [...events(), ...linesOf(join(pool.state, "supervisor_leases.jsonl"))];
  for (const name of ["cancelled", "reclaimed"]) expect(namesIn(told)).toContain(name);
  expect(withoutGroup(told)).toEqual([]);
});

describe("a line that follows one of the same run", () => {
  const SUBJECT = { task_id: "a", agent_id: "exec", attempt: 1, lease: "s.1.x" };
  const open = (make: typeof Telemetry): Telemetry => {
    const dir = tempDir();
    const paths = { events: join(dir, "events.jsonl"), leases: join(dir, "leases.jsonl") };
    return new make(paths, "worker-1", 1000, systemClock);
  };
  /** The lines of a run whose task is known only after its first line. */
  const missingIn = (telemetry: Telemetry): unknown[] => {
    telemetry.event("selected", SUBJECT);
    const subject = { ...SUBJECT, group: "gpu" };
    recordClaimed(telemetry, subject, 0);
    const facts = { isCompleted: true, acquiredAtMs: 0, pid: 1, durationMs: 1 };
    recordSettled(telemetry, subject, { ...facts, error: null, kind: null });
    telemetry.close();
    return withoutGroup(linesOf(telemetry.events.path, telemetry.leases.path));
  };

  it("has the group, though the line before had none", () => {
    expect(missingIn(open(Telemetry))).toEqual(["selected"]);
  });

  it("caught: a journal that takes each line's subject for that of the line before", () => {
    class FirstSubject extends Telemetry {
      override event(...[event, subject, more]: Parameters<Telemetry["event"]>) {
        super.event(event, { ...subject, group: undefined }, more);
      }
    }
    expect(missingIn(open(FirstSubject))).toContain("completed");
  });
});
