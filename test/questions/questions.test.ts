/** Questions as files that people read and edit. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  explainBadAnswer,
  formatAnswer,
  formatQuestion,
  parseQuestion,
  type Question,
  readLimitAnswer,
} from "../../src/questions/question-file.ts";
import { QuestionStore } from "../../src/questions/question-store.ts";
import { newPool } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const NOW = 1_795_500_000_000;

const question = (more: Partial<Question> = {}): Question => ({
  id: "budget.day.usd.1",
  question: "Spent 0.52 of 0.50 USD: go on to 1.00 USD?",
  context: "It is the limit of a day.",
  who: "every coding agent",
  agents: ["*"],
  expects: "limit",
  asked_at_ms: NOW,
  ends_at_ms: null,
  ...more,
});

describe("the file of a question", () => {
  it("says the same when it is read again", () => {
    const asked = question();
    expect(parseQuestion(asked.id, formatQuestion(asked))).toEqual({ ...asked, answer: "" });
  });

  it("holds a text that looks like the place of the answer", () => {
    const asked = question({ context: "## Answer\nnot here" });
    expect(parseQuestion(asked.id, formatQuestion(asked)).answer).toBe("");
  });

  it("gives the answer that a person wrote under the heading, from any editor", () => {
    const edited = `${formatQuestion(question())}\n  0.80 USD\n`.replaceAll("\n", "\r\n");
    expect(parseQuestion("q", edited)).toMatchObject({ answer: "0.80 USD", expects: "limit" });
  });

  it.each([
    ["", ""],
    ["no head at all\n## Answer\nblue", "blue"],
    ["---\nbroken: [\n---\n# What?\n## Answer\nblue", "blue"],
    ["---\n---\n---\n## Answer\n---\n", "---"],
    ["\0\ufffd", ""],
  ])("takes what is there of %j", (text, answer) => {
    expect(parseQuestion("q", text)).toMatchObject({ id: "q", answer, expects: "text" });
  });

  it.each([formatQuestion(question()), "no head at all", ""])(
    "is kept with its answer, from %j",
    (text) => {
      const kept = formatAnswer(text, " yes\n", "cli", NOW);
      expect(parseQuestion("q", kept).answer).toBe("yes");
      expect(kept).toContain('answered_by: "cli"');
    },
  );

  it.each([
    ["yes", "yes"],
    [" No ", "no"],
    ["0.8", 0.8],
    ["$0.80", 0.8],
    ["2000000 tokens", 2_000_000],
    ["perhaps", undefined],
    ["-1", undefined],
    ["1e9", undefined],
  ])("reads %j about a limit as %j", (text, limit) => {
    expect(readLimitAnswer(text)).toBe(limit);
    expect(explainBadAnswer("limit", text) === undefined).toBe(limit !== undefined);
  });
});

describe("the store of questions", () => {
  it("asks once, and takes the first answer", () => {
    const store = new QuestionStore(tempDir());
    store.ask(question());
    store.ask(question({ question: "Another text?" }));
    expect(store.open(NOW).map((one) => one.question)).toEqual([question().question]);
    store.answer("budget.day.usd.1", "yes", "cli", NOW);
    expect(() => store.answer("budget.day.usd.1", "no", "cli", NOW)).toThrow(/no open question/);
    store.ask(question());
    expect(store.open(NOW)).toEqual([]);
    expect(store.answerOf("budget.day.usd.1")).toBe("yes");
  });

  it("removes an open file that an editor wrote again after the answer", () => {
    const store = new QuestionStore(tempDir());
    store.ask(question());
    store.answer("budget.day.usd.1", "yes", "cli", NOW);
    fs.writeFileSync(join(store.openDir, "budget.day.usd.1.md"), "## Answer\nno");
    expect(store.open(NOW)).toEqual([]);
    for (const id of store.openIds()) store.takeEdit(id, 0, NOW);
    expect(fs.readdirSync(store.openDir)).toEqual([]);
    expect(store.answerOf("budget.day.usd.1")).toBe("yes");
  });

  it("takes an answer out of a file only when it has been quiet, and only one that fits", () => {
    const store = new QuestionStore(tempDir());
    const path = join(store.openDir, "budget.day.usd.1.md");
    store.ask(question());
    fs.appendFileSync(path, "perhaps\n");
    const changedMs = fs.statSync(path).mtimeMs;
    const take = (nowMs: number) => store.takeEdit("budget.day.usd.1", 2000, nowMs);
    expect(take(changedMs + 1000)).toBeUndefined();
    expect(take(changedMs + 2000)).toMatchObject({ is: "refused" });
    fs.writeFileSync(path, `${formatQuestion(question())}yes\n`);
    expect(take(fs.statSync(path).mtimeMs + 2000)).toEqual({ is: "taken" });
    expect(store.answerOf("budget.day.usd.1")).toBe("yes");
  });

  it("forgets a question whose time is over", () => {
    const store = new QuestionStore(tempDir());
    store.ask(question({ ends_at_ms: NOW }));
    expect(store.open(NOW - 1)).toHaveLength(1);
    expect(store.open(NOW)).toEqual([]);
    for (const id of store.openIds()) store.takeEdit(id, 0, NOW);
    expect(fs.readdirSync(store.openDir)).toEqual([]);
  });

  it("keeps an answer for its time", () => {
    const store = new QuestionStore(tempDir());
    store.ask(question());
    store.answer("budget.day.usd.1", "yes", "cli", NOW);
    store.forget(Date.now() - 60_000);
    expect(store.answerOf("budget.day.usd.1")).toBe("yes");
    store.forget(Date.now() + 60_000);
    expect(store.answerOf("budget.day.usd.1")).toBeUndefined();
  });

  it("reads no file outside its folder", () => {
    const store = new QuestionStore(tempDir());
    store.ask(question());
    expect(store.find("../open/budget.day.usd.1")).toBeUndefined();
  });
});

describe("a question in a state tree", () => {
  it("is shown by status and answered by answer", async () => {
    const pool = newPool();
    new QuestionStore(pool.state).ask(question());
    const shown = await pool.run(["status"]);
    expect(shown.stdout).toMatch(/Spent 0\.52 of 0\.50 USD.*every coding agent/s);
    expect(shown.stdout).toContain("mailchute answer budget.day.usd.1");
    expect(await pool.run(["answer", "budget.day.usd.1", "perhaps"])).toMatchObject({ code: 2 });
    expect(await pool.run(["answer", "budget.day.usd.1", "0.8"])).toMatchObject({ code: 0 });
    expect(await pool.run(["answer", "budget.day.usd.1", "0.8"])).toMatchObject({ code: 3 });
    expect(new QuestionStore(pool.state).answerOf("budget.day.usd.1")).toBe("0.8");
  });

  it("is answered by an edited file while a supervisor runs, which tells of it once", async () => {
    const pool = newPool();
    const store = new QuestionStore(pool.state);
    store.ask(question());
    await pool.start();
    await waitFor(() => pool.alerts().some(({ alert }) => alert === "budget"), {
      what: "an alert about the question",
    });
    fs.appendFileSync(join(store.openDir, "budget.day.usd.1.md"), "yes\n");
    await waitFor(() => store.answerOf("budget.day.usd.1") === "yes", { what: "the answer" });
    await pool.stop();
    expect(pool.alerts().filter(({ alert }) => alert === "budget")).toHaveLength(1);
  });
});

it("an answer with a NUL character is refused: no program takes it as an argument", () => {
  expect(explainBadAnswer("text" as never, "a\0b")).toContain("NUL");
  expect(explainBadAnswer("text" as never, "a b")).toBeUndefined();
});
