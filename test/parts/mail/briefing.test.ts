/** The texts of which an agent is told beside its task: its colleagues and the news, both within limits. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentRecord } from "../../../src/parts/mail/agents/agents.ts";
import { newsText, type TaskGroup, taskLine } from "../../../src/parts/mail/briefing/news.ts";
import { standingText } from "../../../src/parts/mail/briefing/standing.ts";

const SCOPE = { project: "app", branch: "feature/login" };
const agent = (name: string, more: Partial<AgentRecord> = {}): AgentRecord =>
  ({ ...SCOPE, name, type: "codex", status: "idle", task: "", ...more }) as AgentRecord;
const JUNE = "app:feature/login:june";

describe("the standing instructions", () => {
  it("name the agent, its scope, who else is there, and how to say, ask and read", () => {
    const others = [agent("ann", { status: "busy", task: "the login" }), agent("june")];
    const text = standingText({ ...SCOPE, name: "bob" }, [...others, agent("bob")], JUNE);
    expect(text.split("\n")).toEqual([
      "You are the agent bob in the scope app:feature/login.",
      "The other agents there:",
      "- june (codex, idle, the orchestrator)",
      "- ann (codex, busy): the login",
      "",
      expect.stringContaining("`mailchute say TEXT --to NAME`"),
      expect.stringContaining("`mailchute ask QUESTION`"),
      expect.stringContaining("`mailchute mail --ack`"),
    ]);
    expect(standingText({ ...SCOPE, name: "june" }, [agent("june")], JUNE)).toContain(
      "its orchestrator: you are told how the others end.\nNo other agent is there.",
    );
  });

  it("have at most 20 lines of colleagues and 2 KiB, and count the others", () => {
    const long = "x".repeat(96);
    const names = fc.array(fc.stringMatching(/^[a-z0-9_][a-z0-9_-]{0,94}[a-z0-9_]$/), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(names, fc.constantFrom("", "fix it", "Ä\n\u001b[2J".repeat(50)), (some, task) => {
        const others = [...new Set(some)].filter((name) => name !== "bob");
        const records = others.map((name) => agent(name, { task }));
        const text = standingText({ ...SCOPE, name: "bob" }, records, JUNE);
        const shown = text.split("\n").filter((line) => line.startsWith("- ") && !/`/.test(line));
        const [, more = "0"] = /^- (\d+) more: /m.exec(text) ?? [];
        expect(shown.length).toBeLessThanOrEqual(20);
        expect(shown.length + Number(more)).toBe(others.length);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2048);
        expect(text).not.toContain("\u001b");
      }),
    );
    const many = Array.from({ length: 60 }, (_, n) => agent(`${long.slice(2)}${n + 10}`));
    const text = standingText({ ...SCOPE, name: long }, many, JUNE);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2048);
  });
});

describe("the news", () => {
  const wake = {
    v: 1 as const,
    at: 0,
    task: "wake.x.1.0",
    is_wake: true,
    hops: 2,
    is_self: false,
    ids: ["m1", "m2"],
    from: ["app:main:ann"],
  };

  it("say why the agent was woken, and have one line for each task with its state", () => {
    const groups = [
      { lines: [taskLine("b", "failed", "no\nway")], count: 1, isExact: true, command: "ls f" },
      { lines: [], count: 0, isExact: true, command: "ls r" },
      { lines: [taskLine("c", "waiting", "")], count: 9, isExact: false, command: "ls w" },
    ];
    expect(newsText(wake, groups, "T", 4096).split("\n")).toEqual([
      "You were woken by mail of app:main:ann (m1, m2); 2 wake-ups led to it, and no person spoke in between.",
      "The tasks here, with those that have ended since T:",
      "- b: failed: no\\nway",
      "- c: waiting",
      "- 8 or more others: `ls w`",
    ]);
    expect(newsText(undefined, [], null, 4096)).toBe("There are no tasks here.");
  });

  it("fit into any limit, and count what is left out", () => {
    const group = fc.record({
      lines: fc.array(fc.string({ maxLength: 200 }).map((text) => taskLine("id", "done", text))),
      more: fc.nat(5000),
      isExact: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(group, { maxLength: 7 }), fc.nat(8192), (some, bytesMax) => {
        const groups: TaskGroup[] = some.map(({ lines, more, isExact }, n) => ({
          lines,
          isExact,
          command: `ls --state-is ${n}.`,
          count: lines.length + more,
        }));
        const text = newsText(wake, groups, "T", bytesMax);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytesMax);
        if (text === "") return;
        const lines = text.split("\n").slice(2);
        const shown = lines.filter((line) => line.startsWith("- id: "));
        const others = lines.flatMap((line) => /^- (\d+) .*others: /.exec(line)?.[1] ?? []);
        const sum = others.reduce((total, count) => total + Number(count), shown.length);
        expect(sum).toBe(groups.reduce((total, { count }) => total + count, 0));
      }),
    );
  });
});
