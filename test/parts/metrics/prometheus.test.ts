/**
 * The real Prometheus of Debian takes what we ship: it scrapes a pool under load, and its numbers are those of the journals; the rules
 * and the queries of the dashboard are valid, and each rule fires in its own small play. `npm run test:metrics`.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { unpackDebianPackage } from "../../support/debian-package.ts";
import type { Series } from "../../support/exposition.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { counted, recount } from "../../support/recount.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CONTRIB = join(ROOT, "contrib/prometheus");
const RULES = join(CONTRIB, "mailchute-rules.yml");
const PLAYS = join(ROOT, "test/parts/metrics/rules.plays.yml");
const TOKEN = "0123456789abcdef0123";
/** How long tasks are dropped (s). */
const LOAD_S = Number(process.env["MAILCHUTE_METRICS_LOAD_S"] ?? 8);
/** Of one pool without coding agents. */
const SERIES_MAX = 200;

const PACKAGE = unpackDebianPackage("prometheus");
const program = (name: string): string => join(PACKAGE ?? "", "usr/bin", name);

function promtool(args: string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync(program("promtool"), args, {
    input,
    encoding: "utf8",
  });
  expect(status, `${stdout}${stderr}`).toBe(0);
  return `${stdout}${stderr}`;
}

test.skipIf(PACKAGE === undefined)("promtool finds no fault in the numbers of a pool", async () => {
  const pool = newPool();
  await pool.start();
  pool.drop("a", { exec: ["false"], max_attempts: 2 });
  await waitFor(() => fs.readdirSync(pool.failed).length === 1, { what: "its failure" });
  const { stdout } = await pool.run(["metrics"]);
  expect(promtool(["check", "metrics"], stdout)).toBe("");
});

test.skipIf(PACKAGE === undefined)("each rule is valid and fires in its own play", () => {
  promtool(["check", "rules", RULES]);
  const dir = tempDir();
  fs.copyFileSync(RULES, join(dir, "mailchute-rules.yml"));
  fs.copyFileSync(PLAYS, join(dir, "plays.yml"));
  expect(promtool(["test", "rules", join(dir, "plays.yml")])).toContain("SUCCESS");
  const names = (path: string, key: RegExp): string[] =>
    [...fs.readFileSync(path, "utf8").matchAll(key)].map(([, name = ""]) => name);
  const rules = names(RULES, /- alert: (\w+)/g);
  // Each has a play in which it fires.
  const firing = /alertname: (\w+)\n +exp_alerts:\n/g;
  expect([...new Set(names(PLAYS, firing))].sort()).toEqual(rules.sort());
});

test.skipIf(PACKAGE === undefined)("the queries of the dashboard are valid", () => {
  const exprs = dashboardQueries().map((expr) => expr.replaceAll("$__rate_interval", "5m"));
  expect(exprs.length).toBeGreaterThan(15);
  const rules = exprs.map((expr, n) => ({ record: `q${n}`, expr }));
  const path = join(tempDir(), "queries.yml");
  fs.writeFileSync(path, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
  promtool(["check", "rules", path]);
});

test("the rules and the dashboard name only numbers that a page can have", () => {
  const families = fs.readFileSync(join(ROOT, "src/view/metrics/families.ts"), "utf8");
  const texts = [fs.readFileSync(RULES, "utf8"), ...dashboardQueries()];
  const used = texts.flatMap((text) => text.match(/\bmailchute_\w+/g) ?? []);
  expect(new Set(used).size).toBeGreaterThan(15);
  for (const name of new Set(used)) {
    const bare = name.replace(/^mailchute_/, "").replace(/_bucket$/, "");
    expect(families, name).toMatch(new RegExp(`"(?:mailchute_)?${bare}"`));
  }
});

function dashboardQueries(): string[] {
  const text = fs.readFileSync(join(CONTRIB, "grafana-dashboard.json"), "utf8");
  const { panels } = JSON.parse(text) as { panels: { targets: { expr: string }[] }[] };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

test.skipIf(PACKAGE === undefined)(
  "Prometheus scrapes a pool under load, and its numbers are those of the journals",
  async () => {
    const pool = newPool();
    await pool.start();
    const web = await startWeb(pool);
    const query = await startPrometheus(pool, web);
    const endMs = Date.now() + LOAD_S * 1000;
    let dropped = 0;
    while (Date.now() < endMs) {
      for (let n = 0; n < 10; n++, dropped++) pool.drop(`t${dropped}`, taskOf(dropped));
      await waitFor(() => fs.readdirSync(pool.inbox).length < 50, { what: "room in the inbox" });
    }
    await waitFor(() => settled(recount(pool.state)) === dropped, { what: "all ends" });
    const all = '{__name__=~"mailchute_.+"}';
    let numbers: Series = new Map();
    await waitFor(
      async () => {
        numbers = await query(all);
        return settled(numbers) === dropped;
      },
      { what: "a scrape after the last end" },
    );
    expect(counted(numbers)).toEqual(counted(recount(pool.state)));
    expect(numbers.size).toBeLessThan(SERIES_MAX);
    // No scrape failed, none was refused in part, and no total ever became smaller.
    expect([...(await query('min_over_time(up{job="mailchute"}[1h])')).values()]).toEqual([1]);
    const totals = new Set([...numbers.keys()].map((key) => key.replace(/\{.*/, "")));
    for (const name of totals)
      if (/_(?:total|count|bucket)$/.test(name))
        expect([...(await query(`max(resets(${name}[1h]))`)).values()], name).toEqual([0]);
  },
);

function taskOf(n: number): object {
  if (n % 10 === 3) return { exec: ["false"], max_attempts: 2 };
  return { exec: ["sleep", String((n % 5) / 50)] };
}

function settled(series: Series): number {
  const ends = [...series].filter(([key]) => key.startsWith("mailchute_tasks_settled_total"));
  return ends.reduce((sum, [, count]) => sum + count, 0);
}

/** @returns its port */
async function startWeb(pool: Pool): Promise<number> {
  const file = join(pool.dir, "token");
  fs.writeFileSync(file, TOKEN, { mode: 0o600 });
  const web = pool.spawn(["web", "--port", "0", "--json", "--metrics-token-file", file]);
  await waitFor(() => web.stdout().includes("\n"), { what: "the web server" });
  return (JSON.parse(web.stdout()) as { port: number }).port;
}

/** @returns a function that queries it; keys of its answer are as those of `readExposition` */
async function startPrometheus(
  pool: Pool,
  webPort: number,
): Promise<(query: string) => Promise<Series>> {
  const dir = join(pool.dir, "prometheus");
  fs.mkdirSync(dir);
  const config = join(dir, "prometheus.yml");
  const scrape = {
    job_name: "mailchute",
    authorization: { credentials_file: join(pool.dir, "token") },
    static_configs: [{ targets: [`127.0.0.1:${webPort}`] }],
  };
  const global = { scrape_interval: "1s", evaluation_interval: "1s" };
  fs.writeFileSync(
    config,
    JSON.stringify({ global, rule_files: [RULES], scrape_configs: [scrape] }),
  );
  const port = await freePort();
  const child = spawn(
    program("prometheus"),
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(dir, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { cwd: dir, stdio: "ignore" },
  );
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const query = async (text: string): Promise<Series> => {
    const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(text)}`;
    const answer = (await (await fetch(url)).json()) as {
      error?: string;
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    if (answer.error !== undefined) throw new Error(answer.error);
    return new Map(
      answer.data.result.map(({ metric, value }) => [keyOf(metric), Number(value[1])]),
    );
  };
  const isUp = async (): Promise<boolean> =>
    (await query("mailchute_up").catch(() => new Map())).size > 0;
  await waitFor(isUp, { what: "the first scrape" });
  return query;
}

function keyOf({
  __name__: name = "",
  job: _job,
  instance: _instance,
  ...labels
}: Record<string, string>): string {
  const list = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return list.length === 0 ? name : `${name}{${list.join(",")}}`;
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
