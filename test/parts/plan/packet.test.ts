/** A packet: bounded previews, fences that hold, one pass of filling, templates that come with the package. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KvEntry } from "../../../src/core/kv.ts";
import { PHASES } from "../../../src/core/phases.ts";
import { cutBytes, fenced } from "../../../src/parts/plan/run/markdown.ts";
import { type PacketFacts, renderPacket, roleOf } from "../../../src/parts/plan/run/packet.ts";
import { loadTemplate } from "../../../src/parts/plan/run/templates.ts";
import { tempDir } from "../../support/temp-dir.ts";

function facts(more: Partial<PacketFacts> = {}, values: Record<string, unknown> = {}): PacketFacts {
  return {
    brief: { id: "T-1", type: "task", title: "the title", acceptance: [], inputs: [] },
    description: "",
    prompt: "",
    taskText: "{}",
    phase: "IMPLEMENT",
    phases: PHASES,
    attempt: 1,
    maxAttempts: 3,
    lastError: "",
    finished: [],
    isResultRequired: true,
    stateDir: "/state",
    runDir: "/state/runs/r",
    resultFile: "/state/runs/r/result.json",
    lookUp: ({ nodeId, key }) => {
      const value = values[`${nodeId}:${key}`];
      return value === undefined ? undefined : ({ value } as KvEntry);
    },
    ...more,
  };
}

function inputs(values: Record<string, unknown>, refs = Object.keys(values)): string {
  const list = refs.map((ref) => {
    const [nodeId = "", key = ""] = ref.split(":");
    return { nodeId, key };
  });
  const brief = { ...facts().brief, inputs: list };
  return renderPacket("{{NODE_INPUTS}}", facts({ brief }, values));
}

describe("the inputs of a node", () => {
  it("are named, with what they hold, or without when it is missing", () => {
    expect(inputs({})).toBe("- (none)\n");
    expect(inputs({ "a:k": "v", "b:k": { n: 1 } }, ["a:k", "gone:k", "b:k"])).toBe(
      '- a:k\n\n  ```text\n  v\n  ```\n\n- gone:k\n- b:k\n\n  ```text\n  {\n    "n": 1\n  }\n  ```\n',
    );
  });

  it("are shown up to 2 KB each, cut at a character with a visible mark", () => {
    const text = inputs({ "a:k": "é".repeat(3000) });
    expect(text).toContain(`${"é".repeat(1024)}… [cut: 2048 bytes of 6000 shown]\n`);
    expect(inputs({ "a:k": "x".repeat(2048) })).not.toContain("cut:");
    expect(inputs({ "a:k": `${"x".repeat(2047)}é` })).toContain(
      "x… [cut: 2047 bytes of 2049 shown]",
    );
  });

  it("are bounded together", () => {
    const values = Object.fromEntries(
      Array.from({ length: 100 }, (_, n) => [`n${n}:k`, "x".repeat(5000)]),
    );
    const text = inputs(values);
    expect(Buffer.byteLength(text)).toBeLessThan(80 * 1024);
    expect(text).toContain("- n99:k (not shown here: read it with `mailchute kv get`)");
  });

  it("cannot leave their fence, whatever they hold", () => {
    const piece = fc.constantFrom("`", "```", "\n", "\r", "# H", "  ", "~~~", "é", "\u0000", "x");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const block = fenced(pieces.join(""), "text", 2);
        const lines = block.split("\n");
        const fence = lines[0]?.trim().replace("text", "") ?? "";
        expect(lines.at(-1)?.trim()).toBe(fence);
        for (const line of lines.slice(1, -1)) {
          expect(line).not.toContain(fence);
          expect(line === "" || line.startsWith("  ")).toBe(true);
        }
        expect(block).not.toMatch(/[\r\u0000]/);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(50), (text, max) => {
        expect(cutBytes(text, max)).not.toContain("\ufffd");
      }),
    );
  });
});

describe("a packet", () => {
  it("says what was before: attempt, last error, finished phases, answers", () => {
    const text = renderPacket(
      "{{RESUME_CONTEXT}}",
      facts({
        attempt: 2,
        lastError: "it broke",
        finished: [
          { phase: "SPEC", attempt: 1, summary: "specified" },
          { phase: "PLAN", attempt: 2, summary: "" },
        ],
        brief: { ...facts().brief, answers: [{ question: "Which?", answer: "The first." }] },
      }),
    );
    for (const part of [
      "- Attempt 2 of 3\n",
      "it broke",
      "- SPEC is finished (attempt 1):\n\n  ```text\n  specified",
      "- PLAN is finished (attempt 2)\n",
      "- You asked:\n\n  ```text\n  Which?",
      "  The answer:\n\n  ```text\n  The first.",
    ])
      expect(text).toContain(part);
    expect(renderPacket("{{RESUME_CONTEXT}}", facts())).toContain("- Nothing was done before.");
  });

  it("is filled once: what a value holds is not filled again", () => {
    const brief = { ...facts().brief, goal: "{{TITLE}} $& {{NOPE}}" };
    expect(renderPacket("{{GOAL}}|{{ goal }}", facts({ brief }))).toBe(
      "{{TITLE}} $& {{NOPE}}|{{TITLE}} $& {{NOPE}}\n",
    );
  });

  it("echoed by a program is no result of it", () => {
    const text = renderPacket("{{RESULT_FORMAT}}", facts());
    const [, inside = ""] = /<result>([\s\S]*?)<\/result>/.exec(text) ?? [];
    expect(inside.length).toBeGreaterThan(100);
    expect(() => JSON.parse(inside)).toThrow();
  });

  it("has a template for each role in the package, with inputs beside the resume context", () => {
    const dir = tempDir();
    for (const type of ["plan", "task", "verify", "integrate", "final_verify"] as const) {
      const { text, problem } = loadTemplate(dir, roleOf(type));
      expect(problem).toBeUndefined();
      expect(text).toMatch(
        /## Resume Context\n\n\{\{RESUME_CONTEXT\}\}\n\n## Node Inputs\n\n\{\{NODE_INPUTS\}\}/,
      );
      expect(renderPacket(text, facts())).not.toMatch(/\{\{|Note: the template/);
    }
    fs.mkdirSync(join(dir, "templates", "planner.md"), { recursive: true });
    expect(loadTemplate(dir, "planner").problem).toMatch(/not a regular file.*planner.md/);
  });
});
