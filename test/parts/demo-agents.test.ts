/** The demo of coding agents, as `npm run demo:agents` runs it with stand-ins: its own counts are right, and nothing is left. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { homeIn, personAt } from "../support/persons-folders.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const SCRIPT = fileURLToPath(new URL("../../scripts/demo-agents.mjs", import.meta.url));
/** Many times what it takes on a free machine (s). */
const LIMIT_S = 240;

interface Demo {
  child: ChildProcess;
  text(): string;
  ended: Promise<number | null>;
}

/** Its temporary directory lies in the pool's, whose `pids` then finds all that belongs to it. */
function startDemo(pool: Pool): Demo {
  const child = spawn(process.execPath, [SCRIPT, "--limit", String(LIMIT_S)], {
    env: { ...personAt(homeIn(pool)), TMPDIR: pool.dir },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, text: () => text, ended };
}

const trees = (pool: Pool): string[] =>
  fs.readdirSync(pool.dir).filter((name) => name.startsWith("mailchute-demo-agents-"));

it("plays a limit, a killed worker, a resume, a denied tool, a question and a budget, and all counts are right", async () => {
  const pool = newPool();
  const demo = startDemo(pool);
  expect(await demo.ended, demo.text()).toBe(0);
  for (const said of [
    "her account is at its limit",
    "its worker is dead: taken back",
    "failed (permission)",
    "ok    1  of these in one session",
    "asks: Blue or green?",
    "Agent cleo today: spent 1 of 1 turns. Go on to 2 turns?",
    "All counts are as expected: 8 tasks, none lost",
  ])
    expect(demo.text()).toContain(said);
  expect(demo.text()).not.toContain("OFF");
  expect(trees(pool)).toEqual([]);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
});

it("leaves nothing behind when it is interrupted", async () => {
  const pool = newPool();
  const demo = startDemo(pool);
  await waitFor(() => demo.text().includes("bob takes it"), {
    what: "its first act",
    timeoutMs: 30_000,
  });
  demo.child.kill("SIGINT");
  expect(await demo.ended).toBe(130);
  expect(trees(pool)).toEqual([]);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
});
