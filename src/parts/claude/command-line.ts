/** How Claude Code is started and talked to: arguments, environment, and the frame of a message. Pure. */

export interface ClaudeSettings {
  model?: string;
  permissions?: {
    /** As the program names it: acceptEdits, bypassPermissions, plan, … */
    mode?: string;
    /** Tools that it may use without asking: `Bash(git *)`. */
    allow?: readonly string[];
  };
  /** More arguments of the user's; they come last, so they win. */
  args?: readonly string[];
}

/** No person answers what the program would ask: it denies that by itself, and its result names the tool. */
export function claudeArguments(
  { model, permissions = {}, args = [] }: ClaudeSettings,
  /** The session to be resumed. */
  sessionId?: string,
): string[] {
  const streams = ["--input-format", "stream-json", "--output-format", "stream-json"];
  const { mode, allow = [] } = permissions;
  return [
    "-p",
    ...streams,
    "--verbose",
    "--replay-user-messages",
    ...(sessionId === undefined ? [] : ["--resume", sessionId]),
    ...(model === undefined ? [] : ["--model", model]),
    ...(mode === undefined ? [] : ["--permission-mode", mode]),
    // One argument a tool would swallow what comes after it. Names may hold commas and spaces only inside parentheses.
    ...(allow.length === 0 ? [] : [`--allowedTools=${allow.join(",")}`]),
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

/** @param own what the agent's own settings name: it stays, whatever it is called */
export function claudeEnvironment(
  inherited: Readonly<Record<string, string | undefined>>,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(inherited))
    if (value !== undefined && !OF_SESSIONS.test(name)) kept[name] = value;
  return { ...kept, ...own };
}
