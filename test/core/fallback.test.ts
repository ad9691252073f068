/** Which of several agents runs a task: the settings, the task, and the gates that are closed. */
import { describe, expect, it } from "vitest";
import { checkTask } from "../../src/codec/task-codec.ts";
import { explainBadSettings } from "../../src/core/bad-settings.ts";
import type { ClosedGate } from "../../src/core/documents.ts";
import { chooseAgent, closedGate, closes, gateAt } from "../../src/core/gates.ts";
import {
  agentIdOf,
  agentsOf,
  checkExec,
  matchAgent,
  resolveOpenAgent,
} from "../../src/core/matching.ts";
import { type AgentSettings, DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { type Lane, laneOf, readLane } from "../../src/core/waiting-task.ts";

const agent = (name: string, more: Partial<AgentSettings> = {}): AgentSettings => ({
  name,
  kind: "claude",
  ...more,
});
const ALL = [agent("a", { fallback: ["b", "c"] }), agent("b"), agent("c"), agent("d")];

const namesOf = (task: object, agents = ALL): string[] =>
  agentsOf(matchAgent(task, agents)).map(({ name }) => name);

describe("the agents of a task", () => {
  it("are those that the settings name for its agent, in that order", () => {
    expect(namesOf({ agent: "a" })).toEqual(["a", "b", "c"]);
    expect(namesOf({ agent: "b" })).toEqual(["b"]);
    const turned = [agent("a", { fallback: ["c", "b"] }), ...ALL.slice(1)];
    expect(namesOf({ agent: "a" }, turned)).toEqual(["a", "c", "b"]);
  });

  it("are those that the task names itself, if it does", () => {
    expect(namesOf({ agents: ["a"] })).toEqual(["a"]);
    expect(namesOf({ agents: ["d", "a"] })).toEqual(["d", "a"]);
    expect(namesOf({ exec: ["true"] })).toEqual(["exec"]);
    expect(namesOf({ agents: ["d", "x"] })).toEqual([]);
    expect(matchAgent({ agents: ["d", "x"] }, ALL)).toMatchObject({
      reason: 'agents: "x" is no agent here',
    });
  });

  it("are read from a file that was not checked, too", () => {
    for (const agents of [5, null, {}, "a"])
      expect(namesOf({ agents, prompt: "x" }, [])).toEqual([]);
  });

  it("are checked with the task: its first agent is `agent`, no program runs, and none reviews", () => {
    expect(checkTask({ agents: ["a", "b"] }, "t")).toMatchObject({ agent: "a" });
    const refused = (fields: object): string => {
      try {
        checkTask({ ...fields }, "t");
        return "";
      } catch (error) {
        return String(error);
      }
    };
    expect(refused({ agents: ["a"], agent: "b" })).toContain("its first one is");
    expect(refused({ agents: ["a"], exec: ["true"] })).toContain("run by no agent");
    expect(refused({ agents: ["a", "b"], review_by: "b" })).toContain("review its own work");
    expect(refused({ agents: [] })).toContain("agents");
    expect(refused({ agents: ["a", "a"] })).toContain("agents");
  });

  it("need a check when one of them is of kind acp, and that of the first one is enough", () => {
    const acp = agent("z", { kind: "acp", command: ["z"] });
    const check = (first: AgentSettings) => (): void =>
      checkExec({ agent: "a" }, [first, acp], { id: "t" });
    expect(check(agent("a", { fallback: ["z"] }))).toThrow("the word of z, of kind acp");
    expect(check(agent("a", { fallback: ["z"], verify: ["true"] }))).not.toThrow();
  });
});

describe("a node of the plan", () => {
  it("is refused only when none of its agents has slots", () => {
    const node = { type: "task", agent: "a", capabilities: [] as string[] } as const;
    const at = (slots: number): boolean => {
      const agents = ALL.map((one) => ({ ...one, slots: one.name === "c" ? slots : 0 }));
      return resolveOpenAgent(node, agents).agent !== undefined;
    };
    expect([at(1), at(0)]).toEqual([true, false]);
  });
});

describe("the settings", () => {
  const faultOf = (...agents: AgentSettings[]): string | undefined =>
    explainBadSettings({ ...DEFAULT_SETTINGS, agents });

  it.each([
    [["x"], '"x" is no agent here'],
    [["a"], "a is named twice"],
    [["far"], "only programs of this machine"],
    [["mod"], "only programs of this machine"],
  ])("refuse the fallback %j", (fallback, why) => {
    const others = [
      agent("far", { kind: "remote" }),
      agent("mod", { kind: "module", module: "m" }),
    ];
    expect(faultOf(agent("a", { fallback }), ...others)).toContain(why);
  });

  it("refuse a reviewer that may do the work itself", () => {
    const two = (by: string): string | undefined =>
      faultOf(agent("a", { fallback: ["b"], review_by: by }), agent("b"), agent("c"));
    expect(two("b")).toContain("may do the work itself");
    expect(two("c")).toBeUndefined();
  });
});

describe("the agent that runs the tasks of a lane now", () => {
  const laneAt = (gate?: string): Lane =>
    readLane(
      laneOf({
        agentId: agentIdOf(matchAgent({ agent: "a" }, ALL)),
        group: "night",
        ...(gate !== undefined && { gate }),
      }),
    );
  const quota = (name: string, untilMs = 1e12): ClosedGate =>
    closedGate(`quota-${name}`, `${name} is at its limit`, "wait", {
      agents: [name],
      until_ms: untilMs,
    });
  const busy = (name: string): ClosedGate =>
    closedGate(`agent-${name}`, `${name} is busy`, "wait", { agents: [name], places: true });
  const choose = (gates: readonly ClosedGate[], at?: string): string => {
    const gatesOf = (one: Lane): ClosedGate[] => gates.filter((gate) => closes(gate, one));
    const { lane, gate } = chooseAgent(laneAt(at), gatesOf, 0);
    return `${lane.agent}${gate === undefined ? "" : `: ${gate.why}`}`;
  };

  it("is the first one that is not closed", () => {
    expect(laneAt()).toMatchObject({ agent: "a", fallbacks: ["b", "c"], group: "night" });
    expect(choose([])).toBe("a");
    expect(choose([quota("a")])).toBe("b");
    expect(choose([quota("a"), quota("b")])).toBe("c");
    expect(choose([quota("b")])).toBe("a");
    expect(choose([quota("a"), quota("b"), quota("c")])).toBe("a: a is at its limit");
  });

  it("is waited for when it is only busy, but not when it has no slots at all", () => {
    expect(choose([busy("a")])).toBe("a: a is busy");
    expect(choose([busy("a"), quota("a")])).toBe("b");
    expect(choose([quota("a"), busy("b")])).toBe("b: b is busy");
    expect(choose([{ ...busy("a"), is_shut: true }])).toBe("b");
  });

  it("does not change for a gate that holds all of them", () => {
    const all = closedGate("question-1", "asked", "answer", { group: "night" });
    expect(choose([all])).toBe("a: asked");
    expect(choose([closedGate("question-1", "asked", "answer")], "question-1")).toBe("a: asked");
  });

  it("is the one that has begun, when its gate opens within five minutes", () => {
    const soon = 5 * 60_000;
    expect(choose([quota("a", soon)], "quota-a")).toBe("a: a is at its limit");
    expect(choose([quota("a", soon + 1)], "quota-a")).toBe("b");
    expect(choose([quota("a", 1e12), quota("b", soon)], "quota-b")).toBe("b: b is at its limit");
    expect(choose([quota("a", soon)], "agents")).toBe("b");
    expect(choose([], "quota-a")).toBe("a");
    const paused = closedGate("paused-a", "a is paused", "resume", { agents: ["a"] });
    expect(choose([paused], "paused-a")).toBe("b");
  });

  it("is told to people by the same rule", () => {
    expect(gateAt([quota("a")], laneAt(), 0)).toBeUndefined();
    expect(gateAt([quota("a"), busy("b")], laneAt(), 0)?.why).toBe("b is busy");
  });
});
