/** Nodes of the plan with the real programs: their phases, their results, and a message that comes while the checks run. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { newAgentBench, PROGRAMS } from "./agent-bench.ts";

/** Programs start slowly on a machine that has other work. */
const SLOW_MS = 180_000;
const said = (summary: string): string =>
  `Done.\n\n<result>${JSON.stringify({ status: "success", summary })}</result>`;

it.each(PROGRAMS)(
  "%s works on a node, phase by phase, and reads in the last phase what was said while the checks ran",
  async (_, kind, more) => {
    const steps = ["planned", "built", "built anew"].map((summary) => ({ say: said(summary) }));
    const agent = { ...more, phases: ["SPEC", "IMPLEMENT"] };
    const { api, pool } = await newAgentBench(kind, steps, { agent });
    const verify = `cd ${pool.dir}; echo x >> verifying; until test -e go; do sleep 0.1; done`;
    const node = { id: "n", title: "n", agent: "coder", verify: [["sh", "-c", verify]] };
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes:\n  - ${JSON.stringify(node)}\n`);
    await pool.start();
    await waitFor(() => fs.existsSync(join(pool.dir, "verifying")), {
      what: "the checks",
      timeoutMs: SLOW_MS,
    });
    expect(await pool.run(["say", "n", "Look at X, too."])).toMatchObject({ code: 0 });
    fs.writeFileSync(join(pool.dir, "go"), "");
    expect(await pool.result("n", SLOW_MS)).toMatchObject({
      attempts: 1,
      verdict: "success",
      verdict_reason: expect.stringContaining("built anew"),
    });
    const turns = api.requests.filter((request) => request.kind === "turn");
    expect(turns).toHaveLength(3);
    const told = turns.map(({ messages }) => messages.join());
    expect(told.map((text) => text.includes("Look at X, too."))).toEqual([false, false, true]);
    // It goes on in the session of that phase.
    expect(told[2]).toContain("built");
    expect(fs.readFileSync(join(pool.dir, "verifying"), "utf8")).toBe("x\nx\n");
  },
);
