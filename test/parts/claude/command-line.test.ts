/** How Claude Code is started and talked to. */
import { expect, it } from "vitest";
import {
  claudeArgv,
  isForeignVariable,
  userFrame,
} from "../../../src/parts/claude/command-line.ts";

const agent = { name: "coder", kind: "claude" as const };
const STREAMS =
  "claude -p --input-format=stream-json --output-format=stream-json --verbose --replay-user-messages";

it("lets an agent change files and run commands, unless its settings say otherwise", () => {
  expect(claudeArgv(agent, undefined).join(" ")).toBe(
    `${STREAMS} --permission-mode acceptEdits --allowedTools=Bash`,
  );
  expect(claudeArgv({ ...agent, permissions: { mode: "read" } }, undefined).join(" ")).toBe(
    `${STREAMS} --permission-mode default`,
  );
  expect(claudeArgv({ ...agent, permissions: { mode: "full" } }, undefined).join(" ")).toBe(
    `${STREAMS} --permission-mode bypassPermissions`,
  );
});

it("resumes a session, with model, permissions and the user's own arguments last", () => {
  const settings = {
    ...agent,
    program: "/opt/claude",
    model: "opus",
    permissions: { mode: "read" as const, allow: ["Bash(git *)", "WebFetch"] },
    args: ["--max-turns", "9"],
  };
  expect(claudeArgv(settings, "s1").join(" ")).toBe(
    `${STREAMS.replace("claude", "/opt/claude")} --resume s1 --model opus --permission-mode default --allowedTools=Bash(git *),WebFetch --max-turns 9`,
  );
});

it("names the servers of the Model Context Protocol, and allows their tools where it may change files", () => {
  const mcp = { files: { command: ["npx", "files", "--ro"] } };
  const server = { type: "stdio", command: "npx", args: ["files", "--ro"] };
  const option = `--mcp-config=${JSON.stringify({ mcpServers: { files: server } })}`;
  expect(claudeArgv({ ...agent, mcp }, undefined)).toEqual(
    expect.arrayContaining([option, "--allowedTools=Bash,mcp__files"]),
  );
  const reader = claudeArgv({ ...agent, mcp, permissions: { mode: "read" } }, undefined);
  expect([reader.includes(option), reader.join(" ").includes("mcp__")]).toEqual([true, false]);
});

it("writes a message as one line, whatever is in it", () => {
  const frame = userFrame("u", 'two\nlines "quoted"', "next");
  expect(frame.indexOf("\n")).toBe(frame.length - 1);
  expect(JSON.parse(frame)).toEqual({
    type: "user",
    uuid: "u",
    priority: "next",
    message: { role: "user", content: 'two\nlines "quoted"' },
  });
  expect(JSON.parse(userFrame("u", "x"))).not.toHaveProperty("priority");
});

it.each([
  ["CLAUDECODE", true],
  ["CLAUDE_CODE_ENTRYPOINT", true],
  ["CODEX_THREAD_ID", true],
  ["CODEX_HOME", false],
  ["ANTHROPIC_API_KEY", false],
  ["PATH", false],
])("takes %s for a variable of another agent's session: %s", (name, isForeign) => {
  expect(isForeignVariable(name)).toBe(isForeign);
});
