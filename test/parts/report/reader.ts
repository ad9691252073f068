/** Reads the numbers of a report from the files of a state tree, by a jq program that shares no code with the report. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { Report } from "../../../src/parts/report/report.ts";
import { tempDir } from "../../support/temp-dir.ts";

const PROGRAM = fileURLToPath(new URL("./reader.jq", import.meta.url));
/** Percentiles are at most 2 % off, and have five digits. */
const OFF = 0.021;

export const HAS_JQ = spawnSync("jq", ["--version"]).status === 0;

type Json = Record<string, unknown>;

function namesIn(...parts: string[]): string[] {
  const dir = join(...parts);
  return fs.existsSync(dir) ? fs.readdirSync(dir).sort() : [];
}

function documentsIn(dir: string, ending: string): Record<string, Json> {
  return Object.fromEntries(
    namesIn(dir)
      .filter((name) => name.endsWith(ending))
      .map((name) => [
        name.slice(0, -ending.length),
        JSON.parse(fs.readFileSync(join(dir, name), "utf8")) as Json,
      ]),
  );
}

/** Rotated files come before the one that is written. */
function journalsOf(analytics: string, name: string): string[] {
  const all = namesIn(analytics).filter((one) => one.startsWith(name) && one.endsWith(".jsonl"));
  return [
    ...all.filter((one) => one !== `${name}.jsonl`),
    ...all.filter((one) => one === `${name}.jsonl`),
  ].map((one) => join(analytics, one));
}

function readByJq(state: string, { from, to }: Report, prices: object): Json {
  const mailbox = join(state, "mailbox");
  const analytics = join(state, "analytics");
  const landings = join(state, "landings");
  const questions = namesIn(state, "questions", "open").filter((name) => name.endsWith(".md"));
  const supervisor = join(state, "supervisor.json");
  const { plan_holds: holds } = (
    fs.existsSync(supervisor) ? JSON.parse(fs.readFileSync(supervisor, "utf8")) : {}
  ) as { plan_holds?: { asking?: unknown[] } };
  const given = {
    from: Date.parse(from),
    to: Date.parse(to),
    now: Date.now(),
    prices,
    trays: Object.fromEntries(
      ["inbox", "processing", "outbox", "failed"].map((tray) => [tray, namesIn(mailbox, tray)]),
    ),
    answered: namesIn(state, "questions", "answered"),
    asking: holds?.asking ?? [],
    orders: documentsIn(landings, ".order.json"),
    sents: documentsIn(landings, ".sent.json"),
    states: documentsIn(landings, ".state.json"),
    records: {
      ...documentsIn(join(mailbox, "failed"), "_error.json"),
      ...documentsIn(join(mailbox, "outbox"), "_result.json"),
    },
  };
  const files = [
    ...["supervisor_lifecycle", "costs", "alerts"].flatMap((name) => journalsOf(analytics, name)),
    ...questions.map((name) => join(state, "questions", "open", name)),
  ];
  const work = tempDir();
  const file = join(work, "given.json");
  fs.writeFileSync(file, JSON.stringify(given));
  // To jq a last line without its end and the first line of the next file are one line.
  const copies = files.map((path) => {
    const copy = join(work, basename(path));
    fs.writeFileSync(copy, `${fs.readFileSync(path, "utf8")}\n`);
    return copy;
  });
  const args = ["-nR", "--slurpfile", "given", file, "-f", PROGRAM, ...copies];
  const { stdout, stderr, status } = spawnSync("jq", args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as Json;
}

/** The numbers of a report, in the form in which the other reader gives them: causes by their kind, lists without an order sorted. */
function numbersOf(report: Report): Json {
  const { costs, questions, work, gates } = report;
  const byKind = (causes: Report["failures"], hasTasks: boolean): Json[] => {
    const kinds = [...new Set(causes.map(({ kind }) => kind))].sort();
    return kinds.map((kind) => {
      const of = causes.filter((one) => one.kind === kind);
      return {
        kind,
        count: of.reduce((sum, one) => sum + one.count, 0),
        first_ms: Math.min(...of.map((one) => one.first_ms)),
        last_ms: Math.max(...of.map((one) => one.last_ms)),
        ...(hasTasks ? { tasks: of.flatMap(({ tasks }) => tasks).sort() } : {}),
      };
    });
  };
  const by =
    <T>(key: (one: T) => string) =>
    (a: T, b: T): number =>
      key(a) < key(b) ? -1 : 1;
  return {
    counts: report.counts,
    now: report.now,
    questions: questions
      .map(({ id, asked_at_ms: atMs }) => ({ id, asked_at_ms: atMs }))
      .sort(by(({ id }) => id)),
    failures: byKind(report.failures, true),
    refused: byKind(report.refused, true),
    work: work
      .map(({ task_id: id, state, files, insertions, deletions }) => ({
        id,
        state,
        files,
        insertions,
        deletions,
      }))
      .sort(by(({ id }) => id)),
    completed: report.completed.map(({ id, at_ms: atMs, attempts }) => ({
      id,
      at_ms: atMs,
      attempts,
    })),
    gates: gates.map(({ why: _why, ...gate }) => gate).sort(by(({ gate }) => gate)),
    crashes: report.crashes.map(({ at_ms: atMs }) => atMs).sort((a, b) => a - b),
    costs: { rows: costs.rows.toSorted(by(({ key }) => key)), total: costs.total },
    slowest: report.slowest.map(({ duration_ms: ms }) => ms),
    alerts: byKind(report.alerts, false),
    bad_lines: report.bad_lines,
  };
}

/** Each number of the report is that of the files. @param prices of the settings */
export function expectSameNumbers(state: string, report: Report, prices: object = {}): void {
  const { waited_ms: waited, ran_ms: ran, ...exact } = readByJq(state, report, prices);
  expect(numbersOf(report)).toEqual(exact);
  for (const [name, found] of Object.entries({ waited_ms: waited, ran_ms: ran }))
    for (const at of ["p50", "p95"] as const) {
      const right = (found as Report["ran_ms"])[at];
      const said = report[name as "ran_ms"][at];
      if (right === null || right === 0) expect([name, at, said]).toEqual([name, at, right]);
      else expect(Math.abs((said ?? -1) / right - 1), `${name} ${at}`).toBeLessThan(OFF);
    }
}
