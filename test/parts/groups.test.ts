/** Groups: real programs count each other, so that a limit that is passed for a moment is seen, whatever dies. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { readPlan } from "../support/read-plan.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const COUNTS_OTHERS = `
alive() {
  n=0
  for f in "$RUN"/*; do grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/\${f##*/}/status" 2>/dev/null && n=$((n+1)); done
  [ $n -gt 2 ] && echo "$n" >> "$RUN.over"
}
touch "$RUN/$$"; alive; sleep 0.05; alive; rm "$RUN/$$"
`;

function programsOf(pool: Pool): string {
  const run = join(pool.dir, "running");
  fs.mkdirSync(run);
  return run;
}

test("no more than its slots run at once of a group, while workers and supervisors are killed, and all end", async () => {
  const config = QUICK_CONFIG.replace("workers: 4", "workers: 6\nprocesses: 2");
  const pool = newPool({
    config: `${config.replace("max_attempts: 3", "max_attempts: 20")}groups: {x: {slots: 2}}\n`,
  });
  const run = programsOf(pool);
  const exec = ["sh", "-c", COUNTS_OTHERS];
  for (let n = 0; n < 30; n++) pool.drop(`g${n}`, { exec, env: { RUN: run }, group: "x" });
  await pool.start();
  for (let round = 1; round <= 4; round++) {
    await waitFor(() => pool.settledCount() >= 6 * round, { what: "more tasks" });
    if (round % 2 === 0) {
      process.kill(pool.supervisor()?.pid ?? 0, "SIGKILL");
      await pool.start();
    } else for (const { pid } of pool.workers().slice(0, 1)) process.kill(pid, "SIGKILL");
  }
  await waitFor(() => pool.settledCount() === 30, { timeoutMs: 60_000, what: "all tasks" });
  expect(pool.results()).toHaveLength(30);
  expect(fs.existsSync(`${run}.over`)).toBe(false);
});

test("no more than its slots run at once of an agent, tasks and nodes of the plan together, and a single pass runs them all", async () => {
  const pool = newPool();
  const run = programsOf(pool);
  const agent = {
    name: "one",
    kind: "exec",
    program: "sh",
    args: ["-c", COUNTS_OTHERS],
    slots: 2,
    env: { RUN: run },
    phases: ["IMPLEMENT"],
    result: "optional",
    default: true,
  };
  const config = QUICK_CONFIG.replace("workers: 4", "workers: 6");
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${config}agents: [${JSON.stringify(agent)}]\n`,
  );
  const ids = Array.from({ length: 6 }, (_, n) => `node-${n}`);
  const nodes = ids.map((id) => `  - {id: ${id}, agent: one}\n`).join("");
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes:\n${nodes}`);
  for (let n = 0; n < 8; n++) pool.drop(`t${n}`, { agent: "one", payload: n });
  const { code, stderr } = await pool.run(["run", "--once"]);
  expect(code, stderr).toBe(0);
  expect(pool.results()).toHaveLength(14);
  expect(fs.existsSync(`${run}.over`)).toBe(false);
});

test("a node whose agent is full stays open, and wait says why", async () => {
  const pool = newPool();
  const gate = join(pool.dir, "gate");
  const waits = `while [ ! -e ${gate} ]; do sleep 0.1; done`;
  const agent = {
    name: "one",
    kind: "exec",
    program: "sh",
    args: ["-c", waits],
    slots: 1,
    phases: ["IMPLEMENT"],
    result: "optional",
  };
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${QUICK_CONFIG}agents: [${JSON.stringify(agent)}]\n`,
  );
  const roadmap = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(roadmap, "nodes:\n  - {id: first, agent: one}\n  - {id: second, agent: one}\n");
  await pool.start();
  const whyOf = async (): Promise<string> =>
    (await pool.run(["wait", "second", "--timeout", "300ms"])).stderr;
  await waitFor(async () => (await whyOf()).includes("agent one: 1 of 1 running"), {
    what: "wait to say why",
  });
  expect(readPlan(roadmap)).toContain("{id: second, agent: one}");
  fs.writeFileSync(gate, "");
  await pool.result("second");
});

test("a drain ends without what waits for a group or an agent with 0 slots, and names it with what to do", async () => {
  const shut = { name: "shut", kind: "exec", program: "true", slots: 0, result: "optional" };
  const settings = `groups: {gpu: {slots: 0}}\nagents: [${JSON.stringify(shut)}]\n`;
  const pool = newPool({ config: `${QUICK_CONFIG}${settings}` });
  for (let n = 0; n < 3; n++) pool.drop(`gpu-${n}`, { exec: ["true"], group: "gpu" });
  for (let n = 0; n < 4; n++) pool.drop(`shut-${n}`, { agent: "shut", payload: n });
  pool.drop("later", {
    exec: ["true"],
    group: "gpu",
    not_before: Math.floor(Date.now() / 1000) + 1,
  });
  pool.drop("open", { exec: ["true"] });
  const node = "  - {id: node, agent: shut}\n  - {id: after, agent: shut, dependencies: [node]}\n";
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes:\n${node}`);
  const planned = await pool.run(["run", "--dry-run"]);
  expect(planned.stdout).toContain("would run open\n");
  expect(planned.stdout).not.toMatch(/would run (?!open)/);
  const { code, stdout } = await pool.run(["run", "--drain"]);
  expect(code).toBe(1);
  expect(stdout).toContain("1 completed, 0 failed, 8 cannot run:");
  expect(stdout).toMatch(
    / {2}(gpu-\d|later): group gpu has 0 slots: give it some in config.yaml \(groups\) and restart mailchute run/,
  );
  expect(stdout).toContain("and 3 more: `mailchute status` says why");
  expect(stdout).toContain("node: agent shut has 0 slots: give it some in config.yaml (agents)");
  expect((await pool.run(["wait", "node", "--timeout", "1s"])).stderr).toContain("has 0 slots");
  expect(fs.readdirSync(pool.inbox)).toHaveLength(8);
  const again = await pool.run(["run", "--drain", "--json"]);
  const { held, blocked } = JSON.parse(again.stdout) as { held: object[]; blocked: number };
  expect(blocked).toBe(8);
  expect(held).toHaveLength(5);
  expect(held[0]).toMatchObject({ state: "closed", why: expect.stringContaining("has 0 slots") });
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${QUICK_CONFIG}${settings.replace(/slots([":]+) ?0/g, "slots$1 1")}`,
  );
  expect((await pool.run(["run", "--drain"])).stdout).toContain("10 completed, 0 failed");
});

test("the lines of a batch have no group", async () => {
  const pool = newPool({ config: `${QUICK_CONFIG}groups: {x: {slots: 0}}\n` });
  const line = JSON.stringify({ exec: ["true"], group: "x" });
  fs.writeFileSync(join(pool.inbox, "lines.ndjson"), `${line}\n${line}\n`);
  pool.drop("closed", { exec: ["true"], group: "x" });
  await pool.start();
  expect((await pool.result("lines")).batch).toMatchObject({ lines: 2, completed: 2 });
  expect(fs.readdirSync(pool.inbox)).toEqual(["closed.json"]);
  const { stdout } = await pool.run(["show", "closed"]);
  expect(stdout).toContain("group x has 0 slots");
});

test("without a limit on the group the programs do see more than two of each other", async () => {
  const pool = newPool({ config: QUICK_CONFIG.replace("workers: 4", "workers: 6") });
  const run = programsOf(pool);
  const exec = ["sh", "-c", COUNTS_OTHERS];
  for (let n = 0; n < 12; n++) pool.drop(`g${n}`, { exec, env: { RUN: run }, group: "x" });
  await pool.start();
  await waitFor(() => pool.settledCount() === 12, { what: "all tasks" });
  expect(fs.existsSync(`${run}.over`)).toBe(true);
});

test.each([
  ["group x", { group: "x" }],
  ["agent one", { agent: "one", payload: 1 }],
])("a full %s holds up no other task, and people see why its tasks wait", async (full, fields) => {
  const pool = newPool();
  const gate = join(pool.dir, "gate");
  const args = ["-c", `while [ ! -e ${gate} ]; do sleep 0.1; done`];
  const one = JSON.stringify({ name: "one", kind: "exec", program: "sh", args, slots: 1 });
  const config = `${QUICK_CONFIG}groups: {x: {slots: 1}}\nagents: [${one}]\n`;
  fs.writeFileSync(join(pool.state, "config.yaml"), config);
  const task = "group" in fields ? { exec: ["sh", ...args], ...fields } : fields;
  await pool.start();
  pool.drop("first", task);
  const isFirst = (file: string): boolean => file.startsWith("first@");
  await waitFor(() => fs.readdirSync(pool.processing).some(isFirst), { what: "the first one" });
  pool.drop("second", { ...task, priority: 9 });
  pool.drop("other", { exec: ["true"] });
  pool.drop("label", { exec: ["true"], group: "not-configured" });
  await pool.result("other");
  await pool.result("label");
  expect(fs.readdirSync(pool.inbox)).toEqual(["second.json"]);
  const why = `${full}: 1 of 1 running`;
  await waitFor(() => JSON.stringify(pool.supervisor()).includes(why), { what: "the reason" });
  for (const verb of [["status"], ["show", "second"], ["wait", "second", "--timeout", "1s"]]) {
    const { stdout, stderr } = await pool.run(verb);
    expect(`${stdout}${stderr}`, verb.join(" ")).toContain(why);
  }
  fs.writeFileSync(gate, "");
  await pool.result("second");
});
