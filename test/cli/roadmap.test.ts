/** `roadmap`, `node` and `dep` as a person uses them. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newCli, put } from "./run-cli.ts";

const PLAN = `# mine
epics:
  - id: E
    title: "Größer"
    milestones:
      - id: M
        tasks:
          - { id: a, title: "First", status: done } # keep
          - { id: b, title: "Second", dependencies: [a], exec: ["true"] }
          - { id: c, dependencies: [b], exec: ["true"] }
nodes:
  - { id: plan-000, type: plan, status: needs_human }
  - { id: d, parent: plan-000, capabilities: [rust] }
`;

function planOf(cli: ReturnType<typeof newCli>): string {
  return fs.readFileSync(join(cli.dir, "state", "roadmap.yaml"), "utf8");
}

describe("roadmap", () => {
  test("check is quiet about a good plan, and points at each fault of a bad one", async () => {
    const cli = newCli();
    put(cli, "roadmap.yaml", PLAN);
    expect(await cli(["roadmap", "check"])).toMatchObject({
      code: 0,
      stdout: "state/roadmap.yaml: 7 nodes, no problems\n",
    });
    put(
      cli,
      "roadmap.yaml",
      "nodes:\n  - { id: a, status: dnoe }\n  - { id: b, dependencies: [x, aa] }\n",
    );
    const bad = await cli(["roadmap", "check"]);
    expect(bad.code).toBe(1);
    const lines = bad.stdout.trim().split("\n");
    expect(lines.map((line) => line.split(": ")[0])).toEqual([
      "state/roadmap.yaml:2:22",
      "state/roadmap.yaml:3:29",
      "state/roadmap.yaml:3:32",
    ]);
    expect(lines[0]).toContain('did you mean "done"?');
    const json = JSON.parse((await cli(["roadmap", "check", "--json"])).stdout);
    expect(json).toMatchObject({
      ok: false,
      problems: [{ code: "bad_value", line: 2, col: 22 }, {}, {}],
    });
    for (const sub of ["show", "next"]) {
      const refused = await cli(["roadmap", sub]);
      expect(refused.code).toBe(78);
      expect(refused.stderr).toContain("ErrInvalidRoadmap");
      expect(refused.stderr).toContain("roadmap.yaml:2:22");
    }
  });

  test("check says that there is none", async () => {
    const cli = newCli();
    put(cli, "config.yaml", "");
    expect((await cli(["roadmap", "check"])).code).toBe(3);
  });

  test("show is a tree that fits 80 columns", async () => {
    const cli = newCli();
    put(cli, "roadmap.yaml", PLAN.replace("Second", "Second ".repeat(30)));
    const { code, stdout } = await cli(["roadmap", "show"]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    expect(lines.map((line) => /^ *\S+/.exec(line)?.[0])).toEqual([
      "NODE",
      "E",
      "  M",
      "    a",
      "    b",
      "    c",
      "plan-000",
      "  d",
    ]);
    expect(lines[2]).toMatch(/M +open 1\/3/);
    const part = JSON.parse(
      (await cli(["roadmap", "show", "m", "--json", "--status", "done"])).stdout,
    );
    expect(part.nodes.map((node: { id: string }) => node.id)).toEqual(["M", "a"]);
    const at = PLAN.split("\n").findIndex((line) => /id: a\b/.test(line));
    const col = 1 + (PLAN.split("\n")[at]?.search(/(?<=id: )a\b/) ?? 0);
    expect(part.nodes[1]).toMatchObject({ line: at + 1, col });
    expect((await cli(["roadmap", "show", "zz"])).code).toBe(3);
  });

  test("next is what could run, and --explain why the rest waits", async () => {
    const cli = newCli();
    put(cli, "roadmap.yaml", PLAN);
    const { code, stdout } = await cli(["roadmap", "next", "--explain"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^b +medium +task +exec +Second$/m);
    expect(stdout).toMatch(/^c +waits for b \(open\)$/m);
    expect(stdout).toMatch(/^plan-000 +needs an answer$/m);
    expect(stdout).toMatch(/^d +no agent has the capabilities rust$/m);
    const none = await cli(["roadmap", "next", "--epic", "zz", "--json", "--explain"]);
    expect(none).toMatchObject({ code: 3, stdout: '{"ready":[],"waiting":[]}\n' });
  });
});

describe("node and dep", () => {
  test("change the file in place, and nothing else in it", async () => {
    const cli = newCli();
    put(cli, "roadmap.yaml", PLAN);
    expect(await cli(["node", "set-status", "a", "pending"])).toMatchObject({
      code: 0,
      stdout: "a: done → open\n",
    });
    let plan = PLAN.replace("status: done } # keep", "status: pending } # keep");
    expect(planOf(cli)).toBe(plan);

    const args = [
      "node",
      "add",
      "f",
      "--title",
      "New: one",
      "--parent",
      "plan-000",
      "--after",
      "a",
      "--max-attempts",
      "2",
    ];
    const more = [
      "--acceptance",
      "all green",
      "--verify",
      "npm test",
      "--capabilities",
      "ts, e2e",
      "--",
      "echo",
      "0012",
      "--x",
    ];
    expect(await cli([...args, ...more])).toMatchObject({ code: 0, stdout: "f\n" });
    plan += `  - { id: f, type: task, status: open, title: "New: one", parent: plan-000, capabilities: [ts, e2e], retry_policy: { max_attempts: 2 }, acceptance: ["all green"], verify: "npm test", exec: [echo, "0012", "--x"], dependencies: [a] }\n`;
    expect(planOf(cli)).toBe(plan);

    expect((await cli(["node", "update", "plan-000", "--priority", "high"])).code).toBe(0);
    plan = plan.replace("status: needs_human }", "status: needs_human, priority: high }");
    expect(planOf(cli)).toBe(plan);

    expect((await cli(["dep", "add", "d", "M", "--terminal"])).stdout).toBe(
      "d waits for M (terminal)\n",
    );
    expect((await cli(["dep", "remove", "d", "m"])).stdout).toBe("d waits for nothing\n");
    plan = plan.replace("[rust] }", "[rust], dependencies: [] }");
    expect(planOf(cli)).toBe(plan);
    // Beside the plan, that a command has opened a node: its file might be an old copy just as well.
    expect(fs.readdirSync(join(cli.dir, "state")).sort()).toEqual([".tmp", "kv", "roadmap.yaml"]);
    expect(fs.readdirSync(join(cli.dir, "state", ".tmp"))).toEqual([]);
  });

  test("make a plan where there was none", async () => {
    const cli = newCli();
    put(cli, "config.yaml", "");
    expect((await cli(["node", "add", "a", "--json"])).stdout).toContain('"id":"a"');
    expect(planOf(cli)).toBe("nodes:\n  - { id: a, type: task, status: open }\n");
    expect((await cli(["node", "update", "a", "--cwd", "sub", "--json"])).stdout).toContain(
      `"cwd":"${cli.dir}/sub"`,
    );
  });

  test.each([
    [["node", "add", "A"], 4, "ErrTaskExists"],
    [["node", "add", "../x"], 78, "ErrInvalidRoadmap"],
    [["node", "add", "x", "--after", "zz"], 78, "zz, which does not exist"],
    [["node", "set-status", "zz", "done"], 3, "ErrTaskNotFound"],
    [["node", "set-status", "a", "dnoe"], 2, 'did you mean "done"?'],
    [["node", "set-status", "a"], 2, "needs a status"],
    [["node", "update", "a"], 2, "something to set"],
    [["node", "update", "a", "b"], 2, "does not know"],
    [["node", "update", "c", "--parent", "M"], 78, "under epics"],
    [["dep", "add", "a", "c"], 78, "a circle of dependencies"],
    [["dep", "remove", "zz", "a"], 3, "ErrTaskNotFound"],
    [["dep", "remove", "c", "b", "--terminal"], 2, "dep add"],
  ])("%j is refused with code %i, and the plan stays", async (args, code, text) => {
    const cli = newCli();
    put(cli, "roadmap.yaml", PLAN);
    const refused = await cli(args);
    expect(refused.code).toBe(code);
    expect(refused.stderr).toContain(text);
    expect(planOf(cli)).toBe(PLAN);
  });

  test("of many at once all take effect", async () => {
    const cli = newCli();
    put(cli, "roadmap.yaml", PLAN);
    const ids = Array.from({ length: 6 }, (_, i) => `n${i}`);
    const done = await Promise.all(ids.map((id) => cli(["node", "add", id])));
    expect(done.map((one) => one.code)).toEqual(ids.map(() => 0));
    const shown = JSON.parse((await cli(["roadmap", "show", "--json"])).stdout);
    expect(shown.nodes.map((node: { id: string }) => node.id)).toEqual(expect.arrayContaining(ids));
    expect(planOf(cli).startsWith(PLAN)).toBe(true);
  });
});
