/** `watch` and `logs -f NAME`: what happens in a scope is shown as it happens. Through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { UNTIL_GO } from "../../agents/talk/talk-pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newMailPool } from "./mail-pool.ts";

const SLOW_MS = 60_000;

it("watch shows messages, wake-ups, runs, what was read and exits, each once, in lines and as JSON", async () => {
  const { pool, post } = newMailPool({}, [[{ say: "I have looked" }]]);
  fs.appendFileSync(join(pool.state, "config.yaml"), "orchestrator: codex\n");
  post({ text: "before" });
  await pool.run(["mail", "claude", "--ack", "--scope", "unknown:main"]);
  await pool.start();
  const args = ["watch", "--scope", "unknown:main"];
  const [lines, json] = [pool.spawn(args), pool.spawn([...args, "--json"])];
  try {
    await waitFor(
      () => [lines, json].every((one) => one.stderr().includes("following unknown:main")),
      {
        what: "both to follow",
      },
    );
    const id = post({ text: "look at X\nand more" });
    const events = () =>
      json
        .stdout()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line));
    const told = (event: string, agent = "claude") =>
      events().filter((one) => one.event === event && one.agent === agent);
    await waitFor(() => told("read", "codex").length > 0, { what: "the end", timeoutMs: SLOW_MS });
    expect(told("message", "ann")).toMatchObject([
      { message: { id, content: "look at X\nand more" } },
    ]);
    expect(told("woken")).toMatchObject([{ wake: { ids: [id], from: ["unknown:main:ann"] } }]);
    expect(told("read")).toMatchObject([{ upto: 2 }]);
    expect(told("exit")).toMatchObject([{ message: { type: "exit", to: ["unknown:main:codex"] } }]);
    const statuses = told("status").map(({ record }) => record.status);
    expect(statuses.filter((one) => one === "idle")).toHaveLength(1);
    for (const { t } of events()) expect(t).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
    expect(JSON.stringify(events())).not.toContain("before");
    await waitFor(() => lines.stdout().includes("codex has read"), { what: "the lines" });
    const shown = lines.stdout().split("\n");
    const at = (text: string): number => shown.findIndex((line) => line.includes(text));
    expect(at("ann to claude: look at X …")).toBeGreaterThanOrEqual(0);
    expect(at(`claude woken by ann (${id}): task wake.`)).toBeGreaterThan(at("look at X"));
    expect(at("claude ended: wake.")).toBeGreaterThan(at("claude woken"));
    expect(shown.every((line) => line === "" || /^\d\d:\d\d:\d\d {2}\S/.test(line))).toBe(true);
  } finally {
    for (const one of [lines, json]) one.child.kill("SIGKILL");
  }
});

it("logs -f NAME waits for the next run of an agent, and follows it to its end; logs NAME shows it again", async () => {
  const { pool, folder, post } = newMailPool({
    "You are": [[{ say: "I look" }, { run: UNTIL_GO }, { say: "Seen." }]],
  });
  folder.make();
  await pool.start();
  expect(await pool.run(["logs", "nobody"])).toMatchObject({ code: 3 });
  const early = await pool.run(["logs", "claude"]);
  expect(early).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("claude has not run yet"),
  });
  const follow = pool.spawn(["logs", "-f", "claude"]);
  await waitFor(() => follow.stderr().includes("waits for its next run"), { what: "the wait" });
  post();
  await waitFor(() => follow.stdout().includes("I look"), { what: "the run", timeoutMs: SLOW_MS });
  fs.writeFileSync(join(pool.dir, "go"), "");
  expect(await follow.ended).toMatchObject({ exitCode: 0 });
  expect(follow.stderr()).toContain("claude: task wake.");
  expect(follow.stdout()).toContain("Seen.");
  expect(follow.stdout()).toContain("== completed");
  const again = await pool.run(["logs", "claude"]);
  expect(again.stdout).toContain("Seen.");
});
