/** How Claude Code is started and talked to. */
import { expect, it } from "vitest";
import {
  claudeArguments,
  claudeEnvironment,
  userFrame,
} from "../../../src/parts/claude/command-line.ts";

const STREAMS =
  "-p --input-format stream-json --output-format stream-json --verbose --replay-user-messages";

it("starts a new session with nothing but the streams", () => {
  expect(claudeArguments({}).join(" ")).toBe(STREAMS);
});

it("resumes a session, with model, permissions and the user's own arguments last", () => {
  const settings = {
    model: "opus",
    permissions: { mode: "acceptEdits", allow: ["Bash(git *)", "Read"] },
    args: ["--max-turns", "9"],
  };
  expect(claudeArguments(settings, "s1").join(" ")).toBe(
    `${STREAMS} --resume s1 --model opus --permission-mode acceptEdits --allowedTools=Bash(git *),Read --max-turns 9`,
  );
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

it("strips what tells of another agent's session, but for what the agent's settings name", () => {
  const inherited = {
    PATH: "/bin",
    ANTHROPIC_API_KEY: "k",
    CLAUDECODE: "1",
    CLAUDE_CODE_ENTRYPOINT: "cli",
    CLAUDE_CODE_OAUTH_TOKEN: "other",
    CODEX_HOME: "/c",
    CODEX_THREAD_ID: "t",
    EMPTY: undefined,
  };
  expect(claudeEnvironment(inherited, { CLAUDE_CODE_OAUTH_TOKEN: "mine" })).toEqual({
    PATH: "/bin",
    ANTHROPIC_API_KEY: "k",
    CODEX_HOME: "/c",
    CLAUDE_CODE_OAUTH_TOKEN: "mine",
  });
});
