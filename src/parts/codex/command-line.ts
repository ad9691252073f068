/** The arguments of Codex, and the variables that it must not inherit. Pure. */
import type { AgentSettings, Permissions } from "../../core/settings.ts";

export type Sandbox = "read-only" | "workspace-write" | "danger-full-access";

const SANDBOXES: Readonly<Record<Permissions["mode"], Sandbox>> = {
  read: "read-only",
  edit: "workspace-write",
  full: "danger-full-access",
};

export function sandboxOf(permissions: Permissions | undefined): Sandbox {
  return SANDBOXES[permissions?.mode ?? "edit"];
}

/** A longer prompt goes through standard input, because Linux refuses an argument above 128 KiB. */
const PROMPT_ARGUMENT_BYTES_MAX = 100 * 1024;

/** True: the prompt must be written to standard input, which is then closed. False: standard input is closed from the start. */
export function isPromptOnStdin(prompt: string): boolean {
  return Buffer.byteLength(prompt) > PROMPT_ARGUMENT_BYTES_MAX || prompt.includes("\0");
}

/**
 * `codex exec`: one run. Options stand before `resume`, which does not know all of them. The program remembers neither model nor
 * sandbox of a session, so both are given again.
 * @param sessionId the id of the thread to resume, not its name: for an unknown name the program begins a new thread
 */
export function execArgv(
  settings: AgentSettings,
  prompt: string,
  sessionId: string | undefined,
  through?: Through,
): string[] {
  return [
    settings.program ?? "codex",
    "exec",
    "--json",
    // The folder need not be a repository, because the user has configured it.
    "--skip-git-repo-check",
    ...modelArgs(settings),
    ...effortArgs(settings),
    ...permissionArgs(settings.permissions),
    ...mcpArgs(settings),
    ...meterArgs(settings, through),
    ...(settings.args ?? []),
    ...(sessionId === undefined ? [] : ["resume", sessionId]),
    ...(isPromptOnStdin(prompt) ? ["-"] : ["--", prompt]),
  ];
}

/** `codex app-server`. Requests give model and sandbox to each of its threads again. */
export function appServerArgv(settings: AgentSettings, through?: Through): string[] {
  return [
    settings.program ?? "codex",
    "app-server",
    ...(settings.model === undefined ? [] : configArg("model", settings.model)),
    ...effortArgs(settings),
    ...permissionArgs(settings.permissions),
    ...mcpArgs(settings),
    ...meterArgs(settings, through),
    ...(settings.args ?? []),
  ];
}

function mcpArgs({ mcp = {} }: AgentSettings): string[] {
  return Object.entries(mcp).flatMap(
    ([
      name,
      {
        command: [command = "", ...args],
      },
    ]) => [
      ...configArg(`mcp_servers.${name}.command`, command),
      ...configArg(`mcp_servers.${name}.args`, args),
    ],
  );
}

/** It reads the address of its service from its configuration, and from no variable. */
function meterArgs({ env }: AgentSettings, through: Through): string[] {
  if (through === undefined) return [];
  return configArg("openai_base_url", through(env?.["OPENAI_BASE_URL"] ?? OPENAI));
}

/** See `RunStart`. */
type Through = ((address: string) => string) | undefined;
const OPENAI = "https://api.openai.com/v1";

function modelArgs({ model }: AgentSettings): string[] {
  return model === undefined ? [] : ["--model", model];
}

function effortArgs({ effort }: AgentSettings): string[] {
  return effort === undefined ? [] : configArg("model_reasoning_effort", effort);
}

function permissionArgs(permissions: Permissions | undefined): string[] {
  const allow = permissions?.allow ?? [];
  const folders = allow.filter(isFolder);
  return [
    ...configArg("sandbox_mode", sandboxOf(permissions)),
    // No person can be asked.
    ...configArg("approval_policy", "never"),
    ...(allow.includes(NETWORK) ? configArg("sandbox_workspace_write.network_access", true) : []),
    ...(folders.length === 0 ? [] : configArg("sandbox_workspace_write.writable_roots", folders)),
  ];
}

const NETWORK = "network";

function isFolder(word: string): boolean {
  return word.startsWith("/");
}

/** Words of `permissions.allow` that Codex does not know. It knows `network` and folders (`/path`) to which it may write. */
export function unknownAllowed({ allow = [] }: Permissions): string[] {
  return allow.filter((word) => word !== NETWORK && !isFolder(word));
}

/** Folders outside its working directory to which the sandbox of `edit` lets it write. A state tree in them is not safe from it. */
export function writableFolders(
  permissions: Permissions | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  if (sandboxOf(permissions) !== "workspace-write") return [];
  const { TMPDIR: tmpdir } = environment;
  const temporary = tmpdir === undefined || tmpdir === "" ? ["/tmp"] : ["/tmp", tmpdir];
  return [...temporary, ...(permissions?.allow ?? []).filter(isFolder)];
}

/** The same settings, but the sandbox of `edit` lets it write to this folder, too. The sandbox of `read` stays as it is. */
export function withWritable(settings: AgentSettings, folder: string): AgentSettings {
  const { permissions } = settings;
  if (sandboxOf(permissions) !== "workspace-write") return settings;
  const allow = [...(permissions?.allow ?? []), folder];
  return { ...settings, permissions: { mode: "edit", allow } };
}

/** A value as TOML. The JSON of a text, a boolean or a list of texts is also TOML. */
function configArg(name: string, value: string | boolean | readonly string[]): string[] {
  return ["-c", `${name}=${JSON.stringify(value)}`];
}

/**
 * Variables that a coding agent sets for the programs that it starts. Those that a user sets (CODEX_HOME, CODEX_API_KEY) are not
 * among them.
 */
const SESSION_VARIABLES = new Set([
  "CLAUDECODE",
  "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
  "CODEX_CI",
  "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
  "CODEX_MANAGED_BY_NPM",
  "CODEX_MANAGED_PACKAGE_ROOT",
  "CODEX_SANDBOX",
  "CODEX_SANDBOX_NETWORK_DISABLED",
  "CODEX_SESSION_ID",
  "CODEX_THREAD_ID",
  "CODEX_TOOL_CALL_ID",
  "CODEX_VERSION",
]);

export function isForeignVariable(name: string): boolean {
  return name.startsWith("CLAUDE_CODE_") || SESSION_VARIABLES.has(name);
}
