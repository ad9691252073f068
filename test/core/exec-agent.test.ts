/** Who runs a program of a task that also names an agent: that agent, or nothing. */
import { describe, expect, test } from "vitest";
import { checkExec, matchAgent, resolveAgent } from "../../src/core/matching.ts";
import { AGENT_KINDS, type AgentSettings } from "../../src/core/settings.ts";

const AGENTS = [...AGENT_KINDS, "of-a-plugin"].map(
  (kind): AgentSettings => ({ name: `a-${kind}`, kind, program: "x" }),
);
const ASKED = [...AGENTS.map(({ name }) => name), "nosuch"];

type Matcher = (task: { exec: string[]; agent?: string }) => ReturnType<typeof matchAgent>;

/** The names that a matcher passes over without a word: the program runs here, although the agent is no program of this machine. */
function passedOver(match: Matcher): string[] {
  return ASKED.filter((agent) => {
    const runsHere = match({ exec: ["date"], agent }).agent?.kind === "exec";
    return runsHere && agent !== "a-exec";
  });
}

describe("a program with the name of an agent", () => {
  test.each([
    ["a task", (task) => matchAgent(task, AGENTS)],
    [
      "a node of the plan",
      (task) => resolveAgent({ ...task, type: "task", capabilities: [] }, AGENTS),
    ],
  ] as [string, Matcher][])("as %s is passed over for no agent", (_, match) => {
    expect(passedOver(match)).toEqual([]);
    expect(match({ exec: ["date"], agent: "a-remote" }).agent?.name).toBe("a-remote");
    expect(match({ exec: ["date"], agent: "a-exec" }).agent?.name).toBe("exec");
    expect(match({ exec: ["date"] }).agent?.name).toBe("exec");
    expect(match({ exec: ["date"], agent: "nosuch" })).toMatchObject({
      reason: 'no agent "nosuch" is configured',
    });
  });

  test("caught: a matcher that looks at the program only", () => {
    expect(passedOver(({ exec }) => matchAgent({ exec }, AGENTS))).toContain("nosuch");
  });

  test("is refused by the name of the agent, with the one that was perhaps meant", () => {
    const check = (agent: string) => () => checkExec({ exec: ["date"], agent }, AGENTS, {});
    for (const fine of ["a-exec", "a-remote", "exec"]) expect(check(fine)).not.toThrow();
    expect(check("a-module")).toThrow(
      "agent a-module is of kind module, which does not run an exec",
    );
    expect(check("a-remoet")).toThrow(
      expect.objectContaining({ code: "ErrInvalidTask", hint: "did you mean a-remote?" }),
    );
  });
});
