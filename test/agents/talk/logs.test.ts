/** `logs` of coding agents, through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { newTalkPool, UNTIL_GO } from "./talk-pool.ts";

const withoutTimes = (text: string): string[] =>
  text.split("\n").map((line) => line.replace(/^\d\d:\d\d:\d\d /, "@ "));

it("follows a conversation while it goes on, and ends with what the task ended as", async () => {
  const pool = newTalkPool({
    GO: [[{ say: "I look." }, { run: UNTIL_GO }, { say: "Done." }]],
  });
  pool.drop("a", { agent: "claude", prompt: "GO on", cwd: pool.dir });
  const following = pool.spawn(["logs", "-f", "a"]);
  await pool.start();
  await waitFor(() => following.stdout().includes(`* $ ${UNTIL_GO}`), { what: "the call" });
  expect(following.stdout()).not.toContain("Done.");
  fs.writeFileSync(join(pool.dir, "go"), "");
  await following.ended;
  const lines = withoutTimes(following.stdout());
  expect(lines[0]).toMatch(/^@ · session [0-9a-f-]{36} /);
  expect(lines.slice(1, 4)).toEqual(["@ > GO on", "@   I look.", `@ * $ ${UNTIL_GO}`]);
  expect(lines).toContain("@   Done.");
  expect(lines.at(-2)).toBe("== completed");
});

it("shows all attempts of a failed task through rubbish, and the raw lines when asked", async () => {
  const first = [{ say: "One." }, { line: "no JSON" }, { exit: 2 }];
  const pool = newTalkPool({ BAD: [first] }, [[{ say: "Two." }, { exit: 2 }]]);
  await pool.start();
  pool.drop("a", { agent: "codex", prompt: "BAD", max_attempts: 2 });
  await pool.error("a");
  const lines = withoutTimes((await pool.run(["logs", "a"])).stdout);
  for (const line of ["@   One.", "@ ? no JSON", "== attempt 2", "@   Two."])
    expect(lines).toContain(line);
  expect(lines.at(-2)).toMatch(/^== failed: /);
  const raw = (await pool.run(["logs", "a", "--raw"])).stdout.trim().split("\n");
  expect(JSON.parse(raw[0] ?? "")).toMatchObject({ type: "thread.started" });
  const [json = ""] = (await pool.run(["logs", "a", "--json"])).stdout.split("\n");
  expect(JSON.parse(json)).toMatchObject({ stream: "events", line: raw[0] });
});
