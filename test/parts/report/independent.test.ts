/** Each number of a report against another reader of the same files, on made-up trees that have all that a tree can have. */
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Report } from "../../../src/parts/report/report.ts";
import { type Cli, newCli, put } from "../../cli/run-cli.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { expectSameNumbers, HAS_JQ } from "./reader.ts";

type Line = Record<string, unknown>;

const HOUR_MS = 3_600_000;
const PRICES = { small: { input_usd: 1.3, cached_input_usd: 0.1, output_usd: 10 } };

/** The journals, trays, questions and landings of some hours, of which the report takes the middle. */
function makeTree(cli: Cli, seed: number, nowMs: number): { fromMs: number; toMs: number } {
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const one = <T>(of: readonly T[]): T => of[below(of.length)] as T;
  const events: Line[] = [];
  let t = nowMs - 6 * HOUR_MS;
  const tell = (event: string, more: Line = {}): void => {
    t += below(60_000);
    events.push({ event, t, ...more });
  };
  const kinds = ["exit", "timeout", "cancelled", "dependency_failed", ""];
  const end = (id: string, status: string): void => {
    const kind = one(kinds);
    const error = one(["exit code 3", `no answer of 127.0.0.1:${below(9999)}`, ""]);
    if (status === "failed" && below(9) > 0)
      tell(one(["failed", kind === "cancelled" ? "cancelled" : "failed", "skipped"]), {
        task_id: id,
        error,
        kind,
      });
    const took = below(4) === 0 ? {} : { duration_ms: one([0, 7, below(100), below(900_000)]) };
    tell("completed", { task_id: id, agent_id: "exec", attempt: 1 + below(3), status, ...took });
  };
  const somewhat = [
    "supervisor_started",
    "supervisor_started",
    "supervisor_stopped",
    "worker_stopped",
  ];
  const counted = ["retry_scheduled", "reclaimed", "lines_failed", "quarantined"];
  const select = (about: Line): void => {
    const waited = below(3) === 0 ? {} : { queue_ms: one([0, below(500), below(5_000_000)]) };
    tell("selected", { ...about, attempt: 1 + below(2), ...waited });
  };
  const steps: readonly ((task_id: string) => void)[] = [
    (task_id) => select({ task_id }),
    (task_id) => tell("held", { task_id, gate: one(["quota-ada", "rate-x"]), error: "wait" }),
    (task_id) => tell("assigned", { task_id, attempt: 1 }),
    (task_id) => end(task_id, "completed"),
    (task_id) => end(task_id, "failed"),
  ];
  const rare: typeof steps = [
    (task_id) => tell("blocked", { task_id, question: "?" }),
    (task_id) => tell(one(counted), { task_id }),
    () => tell(one(somewhat), { id: "w-1", error: "SIGKILL" }),
  ];
  const step = (): void => {
    const id = below(9) === 0 ? `${one(["w1", "w2", "w3"])}.land` : `t${below(25)}`;
    one(below(4) === 0 ? rare : steps)(id);
  };
  for (let n = 0; n < 600; n++) step();
  const first = events[0]?.["t"] as number;
  const [fromMs, toMs] = [first + (t - first) * 0.2, first + (t - first) * 0.8].map(Math.round) as [
    number,
    number,
  ];
  events.push({ event: "completed", task_id: "t1", t: "later", status: "completed" });
  const journal = (name: string, lines: readonly Line[]): void => {
    const texts = lines.map((line) => JSON.stringify(line));
    const parts = [0, 0.3, 0.7, 1].map((share) => Math.round(share * texts.length));
    for (let n = 0; n < 3; n++) {
      const some = texts.slice(parts[n], parts[n + 1]);
      if (below(2) === 0) some.splice(below(some.length), 0, one(["{", "null", "[1]", "{}x", " "]));
      const torn = n === 2 ? '{"event":"compl' : "";
      const at = n === 2 ? name : `${name}.2026010${n}T000000Z`;
      put(cli, `analytics/${at}.jsonl`, `${some.join("\n")}\n${torn}`);
    }
  };
  journal("supervisor_lifecycle", events);
  const costs = Array.from({ length: 40 }, () => {
    const input = below(90_000);
    return {
      at: Math.round((first + random() * (t - first)) / 1000),
      task_id: "t1",
      run: `r${below(20)}`,
      ...(below(2) === 0 ? {} : { lease: `l${below(15)}` }),
      agent: one(["ada", "bob", "cleo"]),
      kind: "claude",
      account: "a",
      model: one(["small", "large", null]),
      session_id: one(["s1", "s2", null]),
      input_tokens: input,
      cached_input_tokens: below(input + 1),
      output_tokens: below(9000),
      cost_usd_micro: one([null, below(3_000_000)]),
      outcome: one(["completed", "completed", "failed", "deferred"]),
    };
  });
  put(
    cli,
    "analytics/costs.2026-11-24.jsonl",
    costs
      .slice(0, 20)
      .map((x) => `${JSON.stringify(x)}\n`)
      .join(""),
  );
  put(
    cli,
    "analytics/costs.2026-11-25.jsonl",
    `${[...costs.slice(20), ...costs.slice(15, 25)].map((x) => `${JSON.stringify(x)}\n`).join("")}{"at":1}\n`,
  );
  const alert = (): Line => ({
    t: Math.round(first + random() * (t - first)),
    alert: one(["disk_full", "worker_gone", "quota", "task_failed", "notify"]),
    message: `trouble ${below(9)}`,
  });
  const alerts = Array.from({ length: 60 }, alert);
  journal(
    "alerts",
    alerts.sort((a, b) => Number(a["t"]) - Number(b["t"])),
  );
  const tray = (name: string, files: readonly string[]): void => {
    for (const file of files) put(cli, `mailbox/${name}/${file}`, '{"exec":["true"]}');
  };
  const some = (ending: (n: number) => string): string[] =>
    Array.from({ length: below(6) }, (_, n) => ending(n));
  tray("inbox", [...some((n) => `in-${n}.json`), ".hidden.json", "a~", "notes.txt"]);
  tray("processing", [
    ...some((n) => `ready-${n}@aaaaaaaa261126.1~ready.json`),
    ...some((n) => `run-${n}@aaaaaaaa261126.1~w-w1abcdef.json`),
    ...some((n) => `hold-${n}@aaaaaaaa261126.1~hold-quota-ada.json`),
  ]);
  for (let n = 0; n < 5; n++) {
    const head = `id: "q${n}"\nasked_at_ms: ${nowMs - n * 1000}\nends_at_ms: ${one(["null", 5, nowMs + HOUR_MS])}`;
    put(cli, `questions/open/q${n}.md`, `---\n${head}\n---\n# Which?\n\n## Answer\n`);
    if (below(3) === 0)
      put(cli, `questions/answered/q${n}.md`, "---\n---\n# Which?\n\n## Answer\n\nblue\n");
  }
  for (const id of ["w1", "w2", "w3", "w4", "w5"]) {
    const diffstat = { files: below(9), insertions: below(99), deletions: below(99) };
    put(cli, `landings/${id}.order.json`, {
      lease: "L1",
      title: id,
      land: one(["branch", "merge"]),
      branch: `b/${id}`,
      base: "0",
      target: "main",
      ...(below(5) === 0 ? {} : { diffstat }),
    });
    if (below(4) > 0) put(cli, `landings/${id}.sent.json`, { lease: one(["L1", "L1", "L0"]) });
    if (below(2) === 0) put(cli, `landings/${id}.state.json`, { lease: "L1", landed: true });
    if (below(4) > 0)
      put(cli, `mailbox/outbox/${id}_result.json`, { task_id: id, lease: one(["L1", "L1", "L0"]) });
    const place = one(["outbox", "failed", "inbox", "none"]);
    const name = { outbox: "_result.json", failed: "_error.json", inbox: ".json" }[place];
    if (name !== undefined)
      put(cli, `mailbox/${place}/${id}.land${name}`, { task_id: `${id}.land` });
  }
  return { fromMs, toMs };
}

it.skipIf(!HAS_JQ).each([1, 2, 3])("of a made-up night (%i)", async (seed) => {
  const cli = newCli();
  const { fromMs, toMs } = makeTree(cli, seed, Date.now());
  put(cli, "config.yaml", JSON.stringify({ prices: PRICES }));
  const [since, until] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  const args = ["report", "--json", "--since", since ?? "", "--until", until ?? ""];
  const { stdout, code, stderr } = await cli(args);
  expect([code, stderr]).toEqual([0, ""]);
  const report = JSON.parse(stdout) as Report;
  // Made-up trees without these would show nothing.
  const { counts, gates, costs, alerts, work } = report;
  for (const name of ["completed", "failed", "cancelled", "skipped", "mended", "crashes"] as const)
    expect(counts[name], name).toBeGreaterThan(0);
  for (const list of [gates, costs.rows, alerts, work]) expect(list.length).toBeGreaterThan(0);
  expectSameNumbers(join(cli.dir, "state"), report, PRICES);
});
