/**
 * Changes of tasks that race with their start: each time one of them wins, and what ran is one version. `MAILCHUTE_RACES=2000` for
 * the long form.
 */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withMembers } from "../../../src/codec/json-members.ts";
import { errorName, resultName } from "../../../src/core/names.ts";
import { digestOf } from "../../../src/mailbox/submit/edit.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { waitFor } from "../../support/wait-for.ts";

const RACES = Number(process.env["MAILCHUTE_RACES"] ?? 160);
/** So many at once. */
const ROUND = 40;
/** Commands are given within so many ms one after the other, by round: how long a start takes differs from machine to machine. */
const SPREAD_MS = [20, 80, 5, 320];
/** As long as one side has never won, rounds are added, up to so many times the races. */
const TIMES_MAX = 4;
const KINDS = ["edit", "urgent", "cancel", "retry"] as const;
type Kind = (typeof KINDS)[number];

type Json = Record<string, unknown>;

function readJson(path: string): Json | undefined {
  try {
    return JSON.parse(fs.readFileSync(path, "utf8")) as Json;
  } catch {
    return undefined;
  }
}

/** What became of the command and of the task. */
interface End {
  isDone: boolean;
  record: Json;
  task: Json;
  /** What its runs have written. */
  said: string[];
}

function faultOf(kind: Kind, { isDone, record, task, said }: End): string | undefined {
  const version = kind === "edit" ? (isDone ? "new" : "old") : "old";
  switch (kind) {
    case "edit":
      if (said.join() !== version || (task["title"] ?? "old") !== version)
        return `ran ${said.join()}`;
      return undefined;
    case "urgent":
      return said.length === 1 && (task["priority"] === 9) === isDone ? undefined : "not urgent";
    case "cancel":
      if (isDone !== (record["kind"] === "cancelled")) return `kind ${String(record["kind"])}`;
      return said.length === (record["status"] === "completed" ? 1 : said.length) &&
        said.length <= 1
        ? undefined
        : `ran ${said.length} times`;
    case "retry":
      return said.length === (isDone ? 2 : 1) ? undefined : `ran ${said.length} times`;
  }
}

test("a change, a cancel or a retry that races with a start: one wins, and nothing runs twice", {
  timeout: 900_000,
}, async () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const pool = newPool({ config: QUICK_CONFIG });
  const ran = join(pool.dir, "ran");
  fs.mkdirSync(ran);
  await pool.start();
  const wins: Record<string, number> = {};
  const neverWon = (): string[] =>
    ["edit", "urgent", "retry"]
      .flatMap((kind) => [`${kind} first`, `${kind} late`])
      .filter((win) => wins[win] === undefined);
  const isEnough = (races: number): boolean =>
    races >= RACES && (neverWon().length === 0 || races >= RACES * TIMES_MAX);
  for (let from = 0; !isEnough(from); from += ROUND) {
    const spreadMs = SPREAD_MS[(from / ROUND) % SPREAD_MS.length] ?? 20;
    const ids = Array.from({ length: ROUND }, (_, n) => `r${from + n}`);
    const kindOf = new Map(ids.map((id, n) => [id, KINDS[n % KINDS.length] as Kind]));
    const give = [...kindOf].map(([id, kind]) => race(pool, id, kind, ran));
    // A retry races with the end of the first run, all others with its start.
    const later: (() => void)[] = [];
    for (const [n, [, kind]] of [...kindOf].entries()) {
      const one = give[n] as () => void;
      if (kind === "retry" || random() < 0.5) later.push(one);
      else one();
    }
    for (const one of later) {
      await new Promise((resolve) => setTimeout(resolve, random.below(spreadMs)));
      one();
    }
    const acks = (id: string): Json | undefined =>
      readJson(join(pool.state, "control", "outbox", resultName(`c-${id}`))) ??
      readJson(join(pool.state, "control", "failed", errorName(`c-${id}`)));
    await waitFor(() => ids.every((id) => acks(id) !== undefined), { what: "all answers" });
    const records = (id: string): Json | undefined =>
      readJson(join(pool.outbox, resultName(id))) ?? readJson(join(pool.failed, errorName(id)));
    await waitFor(
      () =>
        ids.every((id) => records(id) !== undefined) &&
        fs.readdirSync(pool.processing).length === 0,
      { what: "all records" },
    );
    for (const [id, kind] of kindOf) {
      const isDone = acks(id)?.["status"] === "completed";
      const record = records(id) ?? {};
      const said = fs.existsSync(join(ran, id))
        ? fs.readFileSync(join(ran, id), "utf8").split("\n").filter(Boolean)
        : [];
      const task = (record["task"] ?? {}) as Json;
      const fault = faultOf(kind, { isDone, record, task, said });
      expect(fault, `seed ${seed}: ${kind} of ${id}: ${JSON.stringify(acks(id))}`).toBeUndefined();
      const both = [join(pool.outbox, resultName(id)), join(pool.failed, errorName(id))];
      expect(
        both.filter((path) => fs.existsSync(path)),
        id,
      ).toHaveLength(1);
      const win = `${kind} ${isDone ? "first" : "late"}`;
      wins[win] = (wins[win] ?? 0) + 1;
    }
  }
  expect(fs.readdirSync(pool.inbox)).toEqual([]);
  expect(fs.readdirSync(pool.tmp)).toEqual([]);
  // Each side has won some: otherwise nothing raced.
  expect(neverWon(), `seed ${seed}: ${JSON.stringify(wins)}`).toEqual([]);
  await pool.stop();
});

/** Drops the task. @returns gives the command */
function race(pool: Pool, id: string, kind: Kind, ran: string): () => void {
  const says = (version: string): string[] => ["sh", "-c", `echo ${version} >> ${ran}/${id}`];
  const old: Json =
    kind === "retry"
      ? { exec: ["sh", "-c", `echo old >> ${ran}/${id}; exit 1`], max_attempts: 1 }
      : { exec: says("old") };
  const text = JSON.stringify(old);
  const bytes = Buffer.from(text);
  const changed =
    kind === "edit"
      ? withMembers(bytes, { exec: says("new"), title: "new" })
      : withMembers(bytes, { priority: 9 });
  const command =
    kind === "cancel"
      ? { command: "cancel", args: { node: id, final: true } }
      : kind === "retry"
        ? { command: "retry", args: { node: id } }
        : { command: "edit", args: { node: id, text: changed, was: digestOf(bytes) } };
  put(join(pool.inbox, `${id}.json`), text, pool.dir);
  const box = join(pool.state, "control", "inbox", `c-${id}.json`);
  return () => put(box, JSON.stringify(command), pool.dir);
}

function put(path: string, text: string, dir: string): void {
  const staged = join(dir, "staged");
  fs.writeFileSync(staged, text, { mode: 0o600 });
  fs.renameSync(staged, path);
}
