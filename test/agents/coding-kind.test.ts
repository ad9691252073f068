/** The code of a kind of coding agent is read when an agent of that kind is there, and never before. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { Agent, type Assignment } from "../../src/agents/agent.ts";
import { type CodingKind, LoadedAgent } from "../../src/agents/coding-kind.ts";
import { AgentRegistry } from "../../src/agents/registry.ts";
import type { AttemptOutcome } from "../../src/core/outcome.ts";
import type { AgentSettings } from "../../src/core/settings.ts";
import { pathInPackage } from "../../src/host/package.ts";

const CODER: AgentSettings = { name: "coder", kind: "claude", capabilities: [] };
const ASSIGNMENT = {} as Assignment;

class CountingAgent extends Agent {
  private runs = 0;
  override async run(): Promise<AttemptOutcome> {
    this.runs++;
    return { kind: "released", message: `run ${this.runs}` };
  }
}

const COUNTING: CodingKind = {
  make: (settings) => new CountingAgent(settings),
  newReader: () => () => [],
  takesMessages: () => false,
};

it("loads no kind while no configured agent is of it", () => {
  const kind = { kind: "claude", load: () => Promise.reject(new Error("loaded")) } as const;
  const exec: AgentSettings = { name: "sh", kind: "exec", program: "/bin/sh", capabilities: [] };
  const agents = new AgentRegistry([exec], [kind]);
  expect(agents.get("sh")).not.toBeInstanceOf(LoadedAgent);
  agents.warmUp();
});

it("runs that begin at once share one agent", async () => {
  const agent = new LoadedAgent(CODER, { kind: "claude", load: async () => COUNTING });
  const outcomes = await Promise.all([agent.run(ASSIGNMENT), agent.run(ASSIGNMENT)]);
  expect(outcomes.map((one) => one.kind === "released" && one.message)).toEqual(["run 1", "run 2"]);
});

it("a kind that cannot be loaded leaves its tasks waiting, and is tried again", async () => {
  let isThere = false;
  const load = async (): Promise<CodingKind> => {
    if (!isThere) throw new Error("Cannot find module './kind.cjs'");
    return COUNTING;
  };
  const agent = new LoadedAgent(CODER, { kind: "claude", load });
  agent.warmUp();
  expect(await agent.run(ASSIGNMENT)).toEqual({
    kind: "deferred",
    isHindered: true,
    delayMs: null,
    message:
      "cannot load the code for agents of kind claude: Cannot find module './kind.cjs': install mailchute again",
  });
  isThere = true;
  expect(await agent.run(ASSIGNMENT)).toEqual({ kind: "released", message: "run 1" });
});

it("the file of a worker process has no coding agent in it, and no character that takes two bytes", () => {
  const code = fs.readFileSync(pathInPackage("dist/worker/entry.cjs"), "utf8");
  expect(code).not.toContain("StreamAgent = class");
  expect(code).toContain("ExecAgent = class");
  expect(code.match(/[^\0-\x7f]/u)).toBeNull();
});
