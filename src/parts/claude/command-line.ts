/** How Claude Code is started and talked to: arguments, environment, and the frame of a message. Pure. */
import type { AgentSettings, Permissions } from "../../core/settings.ts";

/**
 * Its own words for what it may do without a person. No person can be asked: the program denies by
 * itself what it is not allowed, and its result names the tool.
 */
const MODES: Readonly<Record<Permissions["mode"], readonly string[]>> = {
  // Reading asks for no permission.
  read: ["--permission-mode", "default"],
  edit: ["--permission-mode", "acceptEdits"],
  full: ["--permission-mode", "bypassPermissions"],
};
/** What `edit` may do beside changing files. */
const EDIT_TOOLS = ["Bash"];

export function claudeArgv(settings: AgentSettings, sessionId: string | undefined): string[] {
  const { program = "claude", model, args = [] } = settings;
  const { mode, allow = [] } = settings.permissions ?? { mode: "edit" as const };
  const tools = mode === "edit" ? [...EDIT_TOOLS, ...allow] : allow;
  return [
    program,
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--replay-user-messages",
    ...(sessionId === undefined ? [] : ["--resume", sessionId]),
    ...(model === undefined ? [] : ["--model", model]),
    ...MODES[mode],
    // One argument a tool would swallow what comes after it. Names may hold commas and spaces only inside parentheses.
    ...(tools.length === 0 ? [] : [`--allowedTools=${tools.join(",")}`]),
    // The user's own come last, so they win.
    ...args,
  ];
}

/**
 * A message as one line for its stdin.
 * @param uuid never used before in this session: the program drops a repeat without an answer
 * @param priority "next": it is read at the next boundary of a running turn
 */
export function userFrame(uuid: string, text: string, priority?: "next"): string {
  const message = { role: "user", content: text };
  const frame = { type: "user", uuid, ...(priority === undefined ? {} : { priority }), message };
  return `${JSON.stringify(frame)}\n`;
}

/** Variables by which a program knows that it runs inside another agent, or in which session. */
const OF_SESSIONS =
  /^(?:CLAUDECODE|CLAUDE_CODE_.*|CODEX_(?:THREAD_ID|SANDBOX.*)|CURSOR_(?:AGENT|TRACE_ID)|GEMINI_CLI|AI_AGENT)$/;

export function isForeignVariable(name: string): boolean {
  return OF_SESSIONS.test(name);
}
