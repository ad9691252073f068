/** Each number of a page, and of the other screens, is the number of `status --json`: one meaning of done, failed and skipped. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Pill } from "../../../src/parts/web/page.ts";
import { LISTED_STATES } from "../../../src/view/page-of-tasks.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { blockOf, openWeb } from "./open-web.ts";

interface Counts {
  done: number;
  failed: number;
  skipped: number;
}

/** 3 done, 2 failed, 1 cancelled while it ran, 1 before, 2 skipped. */
async function mixedNight(): Promise<Pool> {
  const pool = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
  for (const id of ["a", "b", "c"]) pool.drop(id, { exec: ["true"] });
  for (const id of ["bad1", "bad2"]) pool.drop(id, { exec: ["false"] });
  for (const id of ["s1", "s2"]) pool.drop(id, { exec: ["true"], dependencies: ["bad1"] });
  await pool.run(["run", "--drain"]);
  pool.drop("long", { exec: ["sleep", "1000"], priority: 9 });
  await pool.start();
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.startsWith("long")), {
    what: "the long task to run",
  });
  pool.drop("later", { exec: ["true"] });
  // The other way round the slot of the long one would be free for it.
  for (const id of ["later", "long"])
    expect((await pool.run(["cancel", id, "--wait"])).code).toBe(0);
  await pool.stop();
  return pool;
}

async function statusOf(pool: Pool): Promise<Counts & { success: number }> {
  const { counts, metrics } = JSON.parse((await pool.run(["status", "--json"])).stdout);
  return {
    done: counts.done.count,
    failed: counts.failed.count,
    skipped: counts.skipped.count,
    success: metrics.success_rate,
  };
}

const numberIn = (text: unknown): number => Number(/\d+/.exec(String(text))?.[0]);

it("the facts, the failures by cause and the charts of the first page count as status does", async () => {
  const pool = await mixedNight();
  const { success, ...counts } = await statusOf(pool);
  expect(counts).toEqual({ done: 3, failed: 4, skipped: 2 });
  // What was cancelled or skipped does not lower it.
  expect(success).toBe(3 / 5);
  const web = await openWeb(pool.state);
  const page = await web.page("/");
  const { facts } = blockOf(page, "facts");
  for (const [name, count] of Object.entries(counts)) {
    const cell = facts.find(([fact]) => fact === name)?.[1];
    expect(numberIn(typeof cell === "object" ? JSON.stringify(cell) : cell), name).toBe(count);
  }
  const causes = blockOf(page, "table", "Failed, by cause").rows;
  expect(causes.reduce((sum, [times]) => sum + numberIn(JSON.stringify(times)), 0)).toBe(
    counts.failed,
  );
  const { blocks: charts } = blockOf(page, "grid");
  const legend = (title: string): string[] =>
    charts.flatMap((one) =>
      one.kind === "chart" && one.title === title ? one.legend.map(({ text }) => text) : [],
    );
  expect(legend("Tasks that ended")).toEqual([`done ${counts.done}`, `failed ${counts.failed}`]);
  const kinds = legend("Failures by kind");
  expect(kinds.reduce((sum, text) => sum + numberIn(text), 0)).toBe(counts.failed);
  expect(kinds.join()).not.toContain("unknown");
});

const ENDED: Readonly<Record<string, "done" | "failed" | "skipped">> = {
  done: "done",
  "done-not-all": "done",
  failed: "failed",
  cancelled: "failed",
  skipped: "skipped",
};

/** What each screen says, under the names of `status`: tasks by state, open questions, and nodes by status. */
async function screensOf(pool: Pool): Promise<Record<string, Record<string, number>>> {
  const json = async (...words: string[]) =>
    JSON.parse((await pool.run([...words, "--json"])).stdout);
  const { counts, questions, supervisor, work } = await json("status");
  const plain = (of: Record<string, unknown>): Record<string, number> =>
    Object.fromEntries(
      Object.entries(of).map(([name, one]) => [
        name,
        typeof one === "number" ? one : (one as { count: number }).count,
      ]),
    );
  const { roadmap } = supervisor.document;
  // A node that asks waits for a person as a question does.
  const status = { ...plain(counts), questions: questions.length + roadmap.needs_human };
  const web = await openWeb(pool.state);
  const listed: Record<string, number> = {};
  for (const state of LISTED_STATES) {
    const table = blockOf(await web.page(`/tasks?state=${state}`), "table");
    for (const [, cell] of table.rows) {
      const { word } = cell as Pill;
      const name = ENDED[word] ?? word;
      listed[name] = (listed[name] ?? 0) + 1;
    }
  }
  const { rows } = (await json("ls")).tasks.reduce(
    (sum: { rows: Record<string, number> }, row: { state: string }) => {
      const name = ENDED[row.state] ?? row.state;
      sum.rows[name] = (sum.rows[name] ?? 0) + 1;
      return sum;
    },
    { rows: {} },
  );
  const { counts: top } = await json("top");
  const { counts: report, questions: asked } = await json("report", "--since", "1h");
  const [stats] = (await json("stats")).rows;
  const metrics = (await pool.run(["metrics"])).stdout;
  const gauges: Record<string, number> = {};
  for (const [, state = "", count] of metrics.matchAll(/^mailchute_tasks\{state="(\w+)"\} (\d+)/gm))
    gauges[state] = Number(count);
  const facts = Object.fromEntries(blockOf(await web.page("/plan"), "facts").facts);
  const nodes: Record<string, number> = {};
  for (const [, count, name = ""] of (facts["of these"] as string).matchAll(/(\d+) ([a-z ]+)/g))
    nodes[`node ${name.trim().replaceAll(" ", "_")}`] = Number(count);
  const questionsPage = (await web.page("/questions")).blocks;
  const first = blockOf(await web.page("/"), "table", "Needs you").rows.filter((cells) =>
    JSON.stringify(cells).includes('"word":"question"'),
  ).length;
  expect(work.unlanded).toEqual([]);
  return {
    status: {
      ...status,
      ...Object.fromEntries(
        Object.entries<number>(roadmap).map(([name, count]) => [`node ${name}`, count]),
      ),
    },
    "/tasks": listed,
    ls: rows,
    top: plain(top),
    report: {
      // A run that asked is no result: the report has it among the questions.
      done: report.completed + roadmap.needs_human,
      failed: report.failed + report.cancelled,
      skipped: report.skipped,
      questions: asked.length,
    },
    stats: { done: stats.completed, failed: stats.failed, skipped: stats.skipped },
    metrics: gauges,
    "/plan": nodes,
    "/questions": { questions: questionsPage.filter(({ kind }) => kind === "heading").length },
    "/": { questions: first },
  };
}

function disagreements({
  status = {},
  ...screens
}: Record<string, Record<string, number>>): string[] {
  return Object.entries(screens).flatMap(([screen, counts]) =>
    Object.entries(counts)
      .filter(([name, count]) => count !== status[name])
      .map(([name, count]) => `${screen}: ${name} is ${count}, not ${status[name]}`),
  );
}

it("lists, top, report, stats, metrics, the plan and the questions count as status does", async () => {
  const pool = await mixedNight();
  const ask = `<result>{"status":"checkpoint","checkpoint":{"question":"Blue?"}}</result>`;
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    [
      "nodes:",
      '  - { id: n1, exec: ["true"] }',
      '  - { id: n2, exec: ["false"] }',
      '  - { id: n3, dependencies: [n2], exec: ["true"] }',
      `  - { id: n4, exec: [echo, ${JSON.stringify(ask)}] }`,
    ].join("\n"),
  );
  fs.writeFileSync(join(pool.inbox, "lines.ndjson"), '{"exec":["true"]}\n{"exec":["false"]}\n');
  pool.drop("tomorrow", { exec: ["true"], not_before: Math.floor(Date.now() / 1000) + 86_400 });
  await pool.start();
  await pool.run(["wait", "lines", "n1", "n2", "--timeout", "60s"]);
  await waitFor(async () => (await pool.run(["status"])).stdout.includes("Blue?"), {
    what: "the question of the plan",
  });
  await pool.run(["ask", "Green?", "--to", "human"]);
  await pool.stop();
  const screens = await screensOf(pool);
  expect(screens["status"]).toMatchObject({
    done: 6,
    failed: 5,
    skipped: 2,
    waiting: 1,
    questions: 2,
  });
  for (const [screen, counts] of Object.entries(screens))
    expect(Object.keys(counts).length, screen).toBeGreaterThan(0);
  expect(disagreements(screens)).toEqual([]);
  // Caught: a screen on which skipped tasks have failed.
  const { failed = 0, skipped = 0 } = screens["stats"] ?? {};
  const broken = { ...screens, stats: { failed: failed + skipped } };
  expect(disagreements(broken)).toEqual(["stats: failed is 7, not 5"]);
  const line = (await pool.run(["status"])).stdout;
  // 6 of 6 + 4: one line of the batch has failed, so it is no success; what was cancelled is no end here.
  expect(line).toContain("success 55.5 % of 9 ends (without cancelled and skipped ones)");
  const batch = Object.fromEntries(
    blockOf(await (await openWeb(pool.state)).page("/tasks/lines"), "facts").facts,
  );
  expect(batch["state"]).toEqual({ look: "bad", word: "done, but 1 of 2 lines failed" });
});
