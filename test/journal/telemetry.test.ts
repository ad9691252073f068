/** The two journals of a state tree: every record carries what the README promises, in the order things happened. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { JOURNAL_BUFFER_BYTES_MAX } from "../../src/core/limits.ts";
import { readJournal } from "../../src/journal/read.ts";
import { Telemetry } from "../../src/journal/telemetry.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const SUBJECT = { task_id: "a", agent_id: "coder", attempt: 2, lease: "s.2.x" };
/** What its lines say of it. */
const LEASE = { lease: "s.2", owner: "x", submission: "s" };
const LEASE_TTL_MS = 60_000;

function openTelemetry(clock: Partial<Clock> = {}): Telemetry {
  const dir = tempDir();
  const paths = {
    events: join(dir, "analytics", "events.jsonl"),
    leases: join(dir, "leases.jsonl"),
  };
  return new Telemetry(paths, "worker-1", LEASE_TTL_MS, {
    wallMs: () => T,
    monotonicMs: () => 0,
    random: () => 0,
    ...clock,
  });
}

async function recordsOf(path: string): Promise<Record<string, unknown>[]> {
  const records: Record<string, unknown>[] = [];
  for await (const record of readJournal(path)) records.push(record);
  return records;
}

it("what a disk that stayed full has cost is told once it takes lines again", async () => {
  const telemetry = openTelemetry();
  fs.mkdirSync(telemetry.events.path, { recursive: true });
  const text = "x".repeat(4000);
  const count = Math.ceil((1.5 * JOURNAL_BUFFER_BYTES_MAX) / text.length);
  for (let n = 0; n < count; n++) telemetry.note("paused", { text });
  expect(telemetry.flush()).toBe(false);
  fs.rmdirSync(telemetry.events.path);
  telemetry.close();
  const records = await recordsOf(telemetry.events.path);
  const kept = records.filter((record) => record["event"] === "paused").length;
  expect(kept).toBeGreaterThan(0);
  expect(records.at(-1)).toMatchObject({ event: "records_dropped", count: count - kept });
  expect(records).toHaveLength(kept + 1);
});

describe("an event", () => {
  it("says what, about whom, when in two forms, and counts up", async () => {
    const telemetry = openTelemetry();
    telemetry.event("selected", SUBJECT);
    telemetry.event("failed", SUBJECT, { kind: "exit", exit_code: 1 });
    telemetry.close();
    const common = {
      ...SUBJECT,
      ...LEASE,
      timestamp: "2026-01-02T03:04:05.678Z",
      t: T,
      worker: "worker-1",
    };
    expect(await recordsOf(telemetry.events.path)).toEqual([
      { event: "selected", ...common, seq: 1 },
      { event: "failed", ...common, seq: 2, kind: "exit", exit_code: 1 },
    ]);
  });

  it("names its lease alike before and after there is an owner, so that they can be joined", async () => {
    const telemetry = openTelemetry();
    telemetry.event("selected", { ...SUBJECT, lease: "s.2" });
    for (const event of ["assigned", "started", "completed"] as const)
      telemetry.event(event, SUBJECT);
    telemetry.lease("active", SUBJECT);
    telemetry.close();
    const events = await recordsOf(telemetry.events.path);
    const records = [...events, ...(await recordsOf(telemetry.leases.path))];
    expect(new Set(records.map(({ lease }) => lease))).toEqual(new Set(["s.2"]));
    expect(new Set(records.map(({ submission }) => submission))).toEqual(new Set(["s"]));
    expect(records.map(({ owner }) => owner)).toEqual(["", "x", "x", "x", "x"]);
  });

  it("about the pool itself has empty task members, not missing ones", async () => {
    const telemetry = openTelemetry();
    telemetry.note("paused", { by: "command-1" });
    telemetry.close();
    expect(await recordsOf(telemetry.events.path)).toMatchObject([
      {
        event: "paused",
        task_id: "",
        agent_id: "",
        attempt: 0,
        lease: "",
        owner: "",
        by: "command-1",
      },
    ]);
  });

  it("is written soon without anybody asking, several in one turn in order", async () => {
    const telemetry = openTelemetry();
    for (const event of ["selected", "assigned", "started", "completed"] as const)
      telemetry.event(event, SUBJECT);
    const records = await waitFor(
      async () => {
        const found = await recordsOf(telemetry.events.path);
        return found.length >= 4 ? found : undefined;
      },
      { what: "the events" },
    );
    expect(records?.map((record) => record["event"])).toEqual([
      "selected",
      "assigned",
      "started",
      "completed",
    ]);
    telemetry.event("released", SUBJECT);
    await waitFor(async () => (await recordsOf(telemetry.events.path)).length === 5, {
      what: "the event of a later turn",
    });
    telemetry.close();
  });
});

describe("a lease record", () => {
  it("says who holds what until when, and moves its end on with each heartbeat", async () => {
    let now = T;
    const telemetry = openTelemetry({ wallMs: () => now });
    telemetry.lease("active", SUBJECT, T, 42);
    now += 5000;
    telemetry.lease("active", SUBJECT, T, 42);
    now += 5000;
    telemetry.lease("released", SUBJECT, T, 42);
    telemetry.close();
    const common = {
      ...SUBJECT,
      ...LEASE,
      worker: "worker-1",
      pid: 42,
      acquired_at: "2026-01-02T03:04:05.678Z",
    };
    expect(await recordsOf(telemetry.leases.path)).toEqual([
      {
        ...common,
        status: "active",
        expires_at: "2026-01-02T03:05:05.678Z",
        ts: "2026-01-02T03:04:05.678Z",
        t: T,
      },
      {
        ...common,
        status: "active",
        expires_at: "2026-01-02T03:05:10.678Z",
        ts: "2026-01-02T03:04:10.678Z",
        t: T + 5000,
      },
      {
        ...common,
        status: "released",
        expires_at: "2026-01-02T03:05:05.678Z",
        ts: "2026-01-02T03:04:15.678Z",
        t: T + 10_000,
      },
    ]);
  });

  it("of a lease whose beginning is not known begins now", async () => {
    const telemetry = openTelemetry();
    telemetry.lease("expired", SUBJECT);
    telemetry.close();
    expect(await recordsOf(telemetry.leases.path)).toMatchObject([
      { status: "expired", acquired_at: "2026-01-02T03:04:05.678Z" },
    ]);
  });
});
