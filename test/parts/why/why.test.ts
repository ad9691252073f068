/** `why` on real state trees: each reason with what would move the task. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Report } from "../../../src/parts/report/report.ts";
import type { Explanation } from "../../../src/parts/why/explain-task.ts";
import { type Cli, newCli, put } from "../../cli/run-cli.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const drop = (cli: Cli, id: string, task: object): string =>
  put(cli, `mailbox/inbox/${id}.json`, { id, exec: ["true"], ...task });

async function whyOf(run: (args: string[]) => Promise<{ stdout: string }>, id: string) {
  return JSON.parse((await run(["why", id, "--json"])).stdout) as Explanation;
}

/** A pool on which this task runs until its file `go` is there. */
async function poolWithARun(id: string, config = QUICK_CONFIG): Promise<Pool> {
  const pool = newPool({ config });
  await pool.start();
  const script = `echo first; echo half way; while ! test -e ${join(pool.dir, "go")}; do sleep 0.1; done`;
  fs.writeFileSync(join(pool.tmp, "x"), JSON.stringify({ id, exec: ["sh", "-c", script] }));
  fs.renameSync(join(pool.tmp, "x"), join(pool.inbox, `${id}.json`));
  const log = async (): Promise<string> => (await pool.run(["logs", id])).stdout;
  await waitFor(async () => (await log()).includes("half way"), { what: "the run" });
  return pool;
}

describe("why, without a supervisor", () => {
  it("names what a waiting task lacks, since when, and the command that helps", async () => {
    const cli = newCli();
    drop(cli, "plain", {});
    drop(cli, "child", { metadata: { dependencies: ["typo"] } });
    drop(cli, "chain", { metadata: { dependencies: ["child"] } });
    drop(cli, "later", { metadata: { dependencies: ["broken"] } });
    put(cli, "mailbox/failed/broken_error.json", {
      task_id: "broken",
      status: "failed",
      kind: "exit",
      code: "ErrTaskFailed",
      error: "it broke",
      attempts: 3,
    });
    drop(cli, "strange", { exec: undefined, agent: "nobody-here" });
    const of = (id: string) => whyOf((args) => cli(args), id);
    expect(await of("plain")).toMatchObject({
      state: "waiting",
      why: expect.stringContaining("no supervisor runs"),
      do: "mailchute run",
      is_stuck: true,
    });
    expect(await of("child")).toMatchObject({
      why: "waits for typo, which is not here",
      do: "drop a task with the id typo, or cancel this one",
    });
    expect(await of("chain")).toMatchObject({
      why: "waits for child, which waits for typo, which is not here",
      do: "mailchute why child",
    });
    expect(await of("later")).toMatchObject({
      why: "waits for broken, which failed",
      do: "mailchute retry broken",
    });
    expect(await of("strange")).toMatchObject({
      why: expect.stringMatching(/^cannot run: .*nobody-here/),
      do: expect.stringContaining("mailchute cancel strange"),
    });
    expect(await of("broken")).toMatchObject({
      state: "failed",
      why: "failed (exit): it broke",
      do: "mailchute retry broken",
    });
    const { since_ms: since } = await of("plain");
    expect(Math.abs(Date.now() - (since ?? 0))).toBeLessThan(600_000);
  });

  it("says that there is no such task, with exit code 3", async () => {
    const cli = newCli();
    drop(cli, "a", {});
    const { code, stderr } = await cli(["why", "b"]);
    expect([code, stderr]).toEqual([3, expect.stringContaining('no tray has a task "b"')]);
  });

  it("explains a node of the plan that was not launched", async () => {
    const cli = newCli();
    await cli(["init"]);
    put(
      cli,
      "roadmap.yaml",
      "version: 1\nepics: [{id: e, milestones: [{id: m, tasks: [{id: one, status: blocked}, {id: two, depends_on: [one]}]}]}]\n",
    );
    const { state, why } = await whyOf((args) => cli(args), "two");
    expect([state, why]).toEqual(["node", expect.stringContaining("waits for one")]);
  });
});

describe("why, beside a supervisor", () => {
  it("shows of a running task its run, its process and its last line, on at most 80 columns", async () => {
    const pool = await poolWithARun("busy");
    const { stdout } = await pool.run(["why", "busy"]);
    expect(stdout).toMatch(/^busy runs\n/);
    expect(stdout).toMatch(/ {2}run +1 of 3\n/);
    expect(stdout).toMatch(/ {2}worker +pid \d+, alive\n/);
    expect(stdout).toMatch(/ {2}says +half way\n/);
    const wide = stdout.split("\n").filter((line) => line.length > 80);
    expect(wide.every((line) => line.startsWith("  file"))).toBe(true);
    fs.writeFileSync(join(pool.dir, "go"), "");
    await waitFor(() => fs.existsSync(join(pool.outbox, "busy_result.json")), { what: "its end" });
    expect((await pool.run(["why", "busy"])).stdout).toMatch(/^busy has completed\n {2}since/);
  });

  it("says how many slots are busy, and that a pause holds a task", async () => {
    const pool = await poolWithARun(
      "busy",
      `${QUICK_CONFIG}workers: 1\n`.replace("workers: 4\n", ""),
    );
    fs.writeFileSync(join(pool.tmp, "x"), JSON.stringify({ id: "next", exec: ["true"] }));
    fs.renameSync(join(pool.tmp, "x"), join(pool.inbox, "next.json"));
    const of = () => whyOf((args) => pool.run(args), "next");
    const { facts, is_stuck: isStuck } = await of();
    expect([isStuck, facts]).toEqual([
      false,
      expect.arrayContaining([{ name: "slots", text: "1 of 1 are busy" }]),
    ]);
    expect((await pool.run(["pause"])).code).toBe(0);
    expect(await of()).toMatchObject({
      why: expect.stringContaining("paused since"),
      do: "mailchute resume",
    });
  });

  it("tells of a task after a failed run why that failed and when the next one comes", async () => {
    const pool = newPool({
      config: QUICK_CONFIG.replace(
        "backoff_ms: 20, backoff_max_ms: 100",
        "backoff_ms: 600000, backoff_max_ms: 600000",
      ),
    });
    await pool.start();
    fs.writeFileSync(
      join(pool.tmp, "x"),
      JSON.stringify({ id: "flaky", exec: ["sh", "-c", "echo no network >&2; exit 7"] }),
    );
    fs.renameSync(join(pool.tmp, "x"), join(pool.inbox, "flaky.json"));
    const isBack = (): boolean =>
      fs.readdirSync(pool.processing).some((name) => /^flaky@.*\.2~ready/.test(name));
    await waitFor(isBack, { what: "the end of its first run" });
    const { why, facts } = await whyOf((args) => pool.run(args), "flaky");
    expect(why).toMatch(/^waits for its next run, \d{4}-/);
    expect(facts).toContainEqual({ name: "run", text: "2 of 3" });
    expect(facts).toContainEqual({
      name: "last run",
      text: expect.stringMatching(/^retry scheduled: .*exit code 7/),
    });
  });

  it("of a task whose worker and supervisor were killed says that it does not run, and what takes it back", async () => {
    const pool = await poolWithARun("cut");
    expect(await whyOf((args) => pool.run(args), "cut")).toMatchObject({ why: "runs", do: null });
    await pool.killAll();
    expect(await whyOf((args) => pool.run(args), "cut")).toMatchObject({
      why: "does not run: its worker is dead, and no supervisor runs that takes it back",
      is_stuck: true,
      do: "mailchute run",
    });
    fs.writeFileSync(join(pool.dir, "go"), "");
    await pool.start();
    await pool.result("cut");
    expect(await whyOf((args) => pool.run(args), "cut")).toMatchObject({ why: "has completed" });
  });

  it("advises to look at a failure that another run cannot help, and to retry another one", async () => {
    const pool = newPool({ config: QUICK_CONFIG });
    pool.drop("none", { exec: ["/no/such/program"] });
    pool.drop("bad", { exec: ["false"], max_attempts: 1 });
    await pool.run(["run", "--drain"]);
    expect((await whyOf((args) => pool.run(args), "none")).do).toBe("mailchute show none");
    expect((await whyOf((args) => pool.run(args), "bad")).do).toBe("mailchute retry bad");
  });

  it("of a failed node, why, report and status name the reset that takes the mended text, and that works", async () => {
    const pool = newPool({ config: QUICK_CONFIG });
    const plan = join(pool.state, "roadmap.yaml");
    const nodes = (program: string): string =>
      `nodes:\n  - { id: sum, exec: [${program}], max_attempts: 1 }\n  - { id: show, exec: ["true"], dependencies: [sum] }\n`;
    fs.writeFileSync(plan, nodes('"false"'));
    await pool.run(["run", "--drain"]);
    const mend =
      "mend roadmap.yaml, then: mailchute roadmap reset sum --downstream; or the same text again: mailchute retry sum";
    expect((await whyOf((args) => pool.run(args), "sum")).do).toBe(mend);
    expect((await whyOf((args) => pool.run(args), "show")).do).toBe(mend);
    const report = JSON.parse((await pool.run(["report", "--json"])).stdout) as Report;
    expect(report.next.map((step) => step.do)).toEqual([
      "mend roadmap.yaml, then: mailchute roadmap reset --failed --downstream; mailchute roadmap next --explain says more",
      mend,
    ]);
    fs.writeFileSync(plan, fs.readFileSync(plan, "utf8").replace('"false"', '"true"'));
    await pool.run(["roadmap", "reset", "sum", "--downstream"]);
    const { stdout } = await pool.run(["run", "--drain"]);
    expect(stdout).toContain("roadmap: 2 done");
  });
});
