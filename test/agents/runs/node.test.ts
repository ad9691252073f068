/** Nodes of the plan that a coding agent works on: what it says last is its result. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Kind, newBench } from "./bench.ts";

const KINDS: readonly (readonly [string, Kind, object])[] = [
  ["claude", "claude", {}],
  ["codex", "codex", {}],
  ["codex app-server", "codex", { mode: "app-server" }],
];
const said = (status: string): string =>
  `I am done.\n\n<result>${JSON.stringify({ status, summary: `it is a ${status}` })}</result>`;

describe.each(KINDS)("%s", (_, kind, more) => {
  it("reports the result of each phase in its last words", async () => {
    const settings = { phases: ["IMPLEMENT", "VERIFY"], ...more };
    const bench = newBench([
      { name: "good", kind, settings, turns: [[{ say: said("success") }]] },
      { name: "bad", kind, settings, turns: [[{ say: said("fail") }]] },
      { name: "silent", kind, settings, turns: [[{ say: "Done." }]] },
    ]);
    const { pool } = bench;
    const nodes = ["good", "bad", "silent"].map(
      (name) =>
        `  - {id: ${name}, title: ${name}, agent: ${name}, retry_policy: {max_attempts: 1}}\n`,
    );
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes:\n${nodes.join("")}`);
    await pool.start();
    expect(await pool.result("good")).toMatchObject({ verdict_reason: "it is a success" });
    expect(bench.starts("good")).toHaveLength(2);
    // Each phase has a session of its own.
    expect(bench.resumed("good")).toEqual([undefined, undefined]);
    expect(await pool.error("bad")).toMatchObject({ kind: "reported", error: "it is a fail" });
    expect(await pool.error("silent")).toMatchObject({ kind: "no_result" });
  });
});
