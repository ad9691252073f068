/** A check that fails after a run goes back to the agent: into the same session, with the end of its output. Stand-ins, a real pool. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { type Kind, newBench } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
const DONE = { say: "Done." };
const CHECK = [
  "sh",
  "-c",
  "grep -q good ../out.txt || { echo 'it is only'; cat ../out.txt; exit 3; }",
];

describe.each(KINDS)("%s", (kind) => {
  it("goes on in its session with the output of the check, and the task is done when the check is green", async () => {
    const bench = newBench([
      {
        name: "coder",
        kind,
        turns: [
          [{ run: "echo bad > ../out.txt" }, DONE],
          [{ run: "echo good > ../out.txt" }, DONE],
        ],
      },
    ]);
    const { pool } = bench;
    fs.mkdirSync(join(pool.dir, "work"));
    pool.drop("task", { agent: "coder", prompt: "Write it", cwd: "work", verify: CHECK });
    await (await pool.start(["--drain"])).ended;
    expect(await pool.result("task")).toMatchObject({ attempts: 2 });
    const [first, second] = bench.resumed("coder");
    expect([first, typeof second]).toEqual([undefined, "string"]);
    const [, told = ""] = bench.messages("coder");
    expect(told).toContain("the check failed");
    expect(told).toContain('verify: "sh" ended with exit code 3\n\nit is only\nbad');
    expect(told).not.toContain("Write it");
    expect(pool.alerts()).toEqual([]);
    const { total } = JSON.parse((await pool.run(["cost", "--json"])).stdout);
    expect(total).toMatchObject({ runs: 2, runs_not_completed: 1 });
    expect(bench.session("task")).toBeUndefined();
    expect(fs.readdirSync(join(pool.state, "sessions")).join()).not.toContain("check");
  });

  it("is told when an expected file is missing, too, and a person is told when that repeats", async () => {
    const bench = newBench([{ name: "coder", kind, turns: [[DONE], [DONE], [DONE]] }]);
    const { pool } = bench;
    fs.mkdirSync(join(pool.dir, "work"));
    const expect_files = ["../out.txt"];
    pool.drop("task", { agent: "coder", prompt: "Write it", cwd: "work", expect_files });
    await (await pool.start(["--drain"])).ended;
    await pool.error("task");
    const [, second = "", third = ""] = bench.messages("coder");
    for (const told of [second, third])
      expect(told).toContain("expect_files: ../out.txt is not there");
    const alerts = pool.alerts().filter(({ alert }) => alert === "same_check");
    expect(alerts[0]?.message).toContain("the check of task has failed twice in the same way");
  });
});

it("a program finds it in a file and in its packet, without the secrets of the task", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}agents: [{name: own, kind: exec, program: sh, args: [own.sh]}]\n`,
    env: { TOKEN_OF_TEST: "s3cret-value" },
  });
  const run = `n=$MAILCHUTE_ATTEMPT; cp "$MAILCHUTE_PACKET" packet.$n; cp "\${MAILCHUTE_LAST_CHECK:-/dev/null}" check.$n; echo $n > n`;
  fs.writeFileSync(join(pool.dir, "own.sh"), run);
  pool.drop("task", {
    agent: "own",
    prompt: "Count",
    env_from: { TOKEN: "env:TOKEN_OF_TEST" },
    verify: ["sh", "-c", 'echo "with $TOKEN"; [ $(cat n) = 2 ]'],
  });
  await (await pool.start(["--drain"])).ended;
  expect(await pool.result("task")).toMatchObject({ attempts: 2 });
  const read = (name: string): string => fs.readFileSync(join(pool.dir, name), "utf8");
  expect(read("check.1")).toBe("");
  expect(read("packet.1")).not.toContain("check");
  expect(read("check.2")).toContain("with ***");
  expect(read("packet.2")).toContain(`Count\n\n## The last check`);
  expect(read("packet.2")).toContain("with ***");
});

it("a node of the plan is told, too", async () => {
  const agent = `{name: own, kind: exec, program: sh, args: [own.sh], phases: [IMPLEMENT], result: optional}`;
  const pool = newPool({ config: `${QUICK_CONFIG}agents: [${agent}]\n` });
  const run = `n=$MAILCHUTE_ATTEMPT; cp "$MAILCHUTE_PACKET" packet.$n; echo $n > n`;
  fs.writeFileSync(join(pool.dir, "own.sh"), run);
  const node = {
    id: "one",
    agent: "own",
    title: "Count",
    verify: ["sh", "-c", "echo few; [ $(cat n) = 2 ]"],
  };
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `${JSON.stringify({ nodes: [node] })}\n`);
  await (await pool.start(["--drain"])).ended;
  expect(fs.readFileSync(join(pool.dir, "packet.1"), "utf8")).not.toContain("The last check");
  expect(fs.readFileSync(join(pool.dir, "packet.2"), "utf8")).toContain("few");
});
