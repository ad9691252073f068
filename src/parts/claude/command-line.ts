/** The arguments and the environment of Claude Code, and the form of a message to it. Pure. */
import type { AgentSettings, Permissions } from "../../core/settings.ts";

/**
 * The arguments that say what Claude Code may do without asking. No person can answer it, so the program denies what is not
 * allowed, and its result names the tool.
 */
const MODES: Readonly<Record<Permissions["mode"], readonly string[]>> = {
  // Reading needs no permission.
  read: ["--permission-mode", "default"],
  edit: ["--permission-mode", "acceptEdits"],
  full: ["--permission-mode", "bypassPermissions"],
};
/** The tools that the mode `edit` allows in addition to changes of files. */
const EDIT_TOOLS = ["Bash"];

export function claudeArgv(settings: AgentSettings, sessionId: string | undefined): string[] {
  const { program = "claude", model, effort, args = [], mcp = {} } = settings;
  const { mode, allow = [] } = settings.permissions ?? { mode: "edit" as const };
  const servers = Object.entries(mcp);
  const ofServers = servers.map(([name]) => `mcp__${name}`);
  const tools = mode === "edit" ? [...EDIT_TOOLS, ...ofServers, ...allow] : allow;
  return [
    program,
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--replay-user-messages",
    ...(sessionId === undefined ? [] : ["--resume", sessionId]),
    ...(model === undefined ? [] : ["--model", model]),
    ...(effort === undefined ? [] : ["--effort", effort]),
    ...(servers.length === 0 ? [] : [`--mcp-config=${mcpConfig(servers)}`]),
    ...MODES[mode],
    // All tools are one argument, because the program would read the arguments after a list as tools, too. Names may hold commas
    // and spaces only inside parentheses.
    ...(tools.length === 0 ? [] : [`--allowedTools=${tools.join(",")}`]),
    // The user's arguments come last, so they win.
    ...args,
  ];
}

function mcpConfig(servers: readonly [name: string, server: { command: string[] }][]): string {
  const entries = servers.map(
    ([
      name,
      {
        command: [command, ...args],
      },
    ]) => [name, { type: "stdio", command, args }],
  );
  return JSON.stringify({ mcpServers: Object.fromEntries(entries) });
}

/**
 * A message as one line for the program's stdin.
 * @param uuid new in this session, because the program drops a repeat without an answer
 * @param priority "next": the message is read at the next boundary of a running turn
 */
export function userFrame(uuid: string, text: string, priority?: "next"): string {
  const message = { role: "user", content: text };
  const frame = { type: "user", uuid, ...(priority === undefined ? {} : { priority }), message };
  return `${JSON.stringify(frame)}\n`;
}

/** Asks the program to end its turn. The program goes on running, and takes the next message. @param id new in this process */
export function interruptFrame(id: string): string {
  const frame = { type: "control_request", request_id: id, request: { subtype: "interrupt" } };
  return `${JSON.stringify(frame)}\n`;
}

/** Variables that tell a program that it runs inside another agent, and in which session. */
const OF_SESSIONS =
  /^(?:CLAUDECODE|CLAUDE_CODE_.*|CODEX_(?:THREAD_ID|SANDBOX.*)|CURSOR_(?:AGENT|TRACE_ID)|GEMINI_CLI|AI_AGENT)$/;

export function isForeignVariable(name: string): boolean {
  return OF_SESSIONS.test(name);
}
