/** Which fields of a task travel, and which a machine takes from others. */
import { describe, expect, test } from "vitest";
import { TaskSchema } from "../../../src/codec/task-codec.ts";
import type { Task } from "../../../src/core/task.ts";
import {
  type Accept,
  acceptJob,
  sentFields,
} from "../../../src/parts/cluster/protocol/sent-task.ts";

const dispatch = { tree: "laptop.abcd2345", task: "t", submission: "s", attempt: 2 };
const NOTHING_MORE: Accept = { agents: ["coder"], fields: [] };
const take = (task: Record<string, unknown>, accept = NOTHING_MORE) =>
  acceptJob({ dispatch, target: "any", task }, accept);

describe("a task that is sent", () => {
  test("leaves at home when, beside what and how often it runs, and what follows from it", () => {
    const task: Task = {
      id: "t",
      agent: "far",
      prompt: "?",
      payload: { a: 1 },
      priority: 5,
      max_attempts: 4,
      group: "g",
      limits: ["l"],
      owns: { write: ["src"] },
      dedup_key: "k",
      not_before: 1,
      on_failure: ["mail"],
      timeout_ms: 1000,
      metadata: { dependencies: ["a"] },
    };
    expect(sentFields(task, "coder")).toEqual({
      agent: "coder",
      prompt: "?",
      payload: { a: 1 },
      timeout_ms: 1000,
    });
  });

  test("takes along what another machine may refuse, so that it is not left out in silence", () => {
    const task: Task = {
      id: "t",
      exec: ["ls"],
      verify: [["make"]],
      metadata: { worktree: "w", dependencies: [] },
    };
    expect(sentFields(task, "coder")).toEqual({
      agent: "coder",
      exec: ["ls"],
      verify: [["make"]],
      metadata: { worktree: "w" },
    });
  });
});

describe("a machine", () => {
  test("makes a task of a job that runs once and says where it comes from, with the same text each time", () => {
    const made = take({ agent: "coder", prompt: "?", timeout_ms: 1000 });
    expect(made).toMatchObject({
      task: {
        id: "laptop.abcd2345.t.s.2",
        agent: "coder",
        prompt: "?",
        timeout_ms: 1000,
        max_attempts: 1,
        metadata: { origin: { ...dispatch, target: "any" } },
      },
    });
    expect(take({ agent: "coder", prompt: "?", timeout_ms: 1000 })).toEqual(made);
  });

  test("takes only what its settings name, and names what it refuses", () => {
    const refused = (task: Record<string, unknown>, accept = NOTHING_MORE) => {
      const made = take(task, accept);
      return "refused" in made ? made.refused : undefined;
    };
    expect(refused({ prompt: "?" })).toBe("it names no agent");
    expect(refused({ agent: "root", prompt: "?" })).toMatch(/the agent "root" does not work/);
    expect(refused({ agent: "coder", exec: ["rm"], env: {} })).toMatch(/: "exec", "env"$/);
    expect(refused({ agent: "coder", prompt: 1 })).toMatch(/^prompt: /);
    expect(refused({ agent: "coder" })).toBeUndefined();
    const wider = { agents: ["coder"], fields: ["exec", "metadata", "max_attempts", "on_success"] };
    expect(refused({ agent: "coder", exec: ["ls"], metadata: { a: 1 } }, wider)).toBeUndefined();
    expect(refused({ agent: "coder", exec: [], metadata: {} }, wider)).toMatch(/^exec: /);
    expect(refused({ agent: "coder", metadata: "x" }, wider)).toMatch(/metadata/);
    // What belongs to the origin cannot be allowed.
    expect(refused({ agent: "coder", max_attempts: 9, on_success: ["x"] }, wider)).toMatch(
      /"max_attempts", "on_success"/,
    );
    expect(refused(JSON.parse('{"agent":"coder","__proto__":{"exec":["x"]}}'))).toMatch(
      /"__proto__"/,
    );
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`f${n}\u001b`, n]));
    expect(refused({ agent: "coder", ...many })).toMatch(/^[\x20-\x7e]+ and 90 more$/);
  });

  test("keeps its own word about where a task comes from", () => {
    const made = take(
      { agent: "coder", prompt: "?", metadata: { origin: { tree: "other" } } },
      { agents: ["coder"], fields: ["metadata"] },
    );
    expect(made).toMatchObject({ task: { metadata: { origin: dispatch } } });
  });

  test("takes none of the fields that start programs, move files or change the tree, unless it is told to", () => {
    const harmless = ["agent", "prompt", "payload", "title", "description"];
    harmless.push("timeout_ms", "budget", "traceparent");
    for (const name of Object.keys(TaskSchema.properties)) {
      const value = name === "agent" ? "coder" : name === "timeout_ms" ? 1 : "x";
      const made = take({ agent: "coder", [name]: value });
      const isTaken = !("refused" in made) || !made.refused.startsWith("these fields");
      expect(isTaken, name).toBe(harmless.includes(name));
    }
  });
});
