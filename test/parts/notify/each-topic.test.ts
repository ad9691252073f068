/** Each thing of which people are told while a pool runs, as it really comes about: from the pool's own journals to a receiver. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newBench } from "../../agents/runs/bench.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newReceiver } from "./receiver.ts";

it("a failure, a question, a quota, a budget and what is stuck reach a receiver, each under its name", async () => {
  const receiver = await newReceiver();
  const { pool } = newBench([
    { name: "ada", kind: "claude", turns: [[{ limitForS: 600 }, { say: "later" }]] },
    {
      name: "bob",
      kind: "claude",
      turns: [[{ say: "first" }], [{ say: "second" }]],
      settings: { budget: { day_turns: 1 } },
    },
  ]);
  const target = { name: "ops", url: receiver.url, every_ms: 0 };
  fs.appendFileSync(join(pool.state, "config.yaml"), `notify: ${JSON.stringify([target])}\n`);
  new QuestionStore(pool.state).ask({
    id: "cover",
    question: "Which cover?",
    context: "",
    who: "the printer",
    agents: [],
    expects: "text",
    asked_at_ms: Date.now(),
    ends_at_ms: null,
  });
  await pool.start();
  pool.drop("bad", { exec: ["sh", "-c", "exit 3"], max_attempts: 1 });
  pool.drop("limited", { agent: "ada", prompt: "go", max_attempts: 1 });
  pool.drop("nobody", { agent: "carol", prompt: "go" });
  pool.drop("one", { agent: "bob", prompt: "one", max_attempts: 1 });
  const lines = (): string[] =>
    receiver.received.flatMap(({ body }) => {
      const { data } = JSON.parse(body) as { data: { text: string } };
      return data.text.split("\n");
    });
  const has = (topic: string, about: string): Promise<unknown> =>
    waitFor(() => lines().some((line) => line.startsWith(`${topic}: `) && line.includes(about)), {
      what: `${topic} of ${about} in:\n${lines().join("\n")}`,
      timeoutMs: 20_000,
    });
  await has("failed", "bad: ");
  await has("question", "cover");
  await has("quota", "ada");
  await pool.result("one");
  pool.drop("two", { agent: "bob", prompt: "two", max_attempts: 1 });
  await has("budget", "bob");
  await has("stuck", "carol");
  const counts = receiver.received.flatMap(({ body }) =>
    Object.keys((JSON.parse(body) as { data: { counts: object } }).data.counts),
  );
  expect([...new Set(counts)].sort()).toEqual(["budget", "failed", "question", "quota", "stuck"]);
  await pool.stop();
});
