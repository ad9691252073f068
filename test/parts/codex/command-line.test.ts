/** How Codex is started. */
import { expect, it } from "vitest";
import type { AgentSettings } from "../../../src/core/settings.ts";
import {
  appServerArgv,
  execArgv,
  isForeignVariable,
  isPromptOnStdin,
  unknownAllowed,
  withWritable,
  writableFolders,
} from "../../../src/parts/codex/command-line.ts";

const agent = (more: Partial<AgentSettings> = {}): AgentSettings => ({
  name: "coder",
  kind: "codex",
  ...more,
});

it("gives the prompt as the last argument, where no word of it can be an option", () => {
  expect(execArgv(agent(), "--help me", undefined)).toEqual([
    "codex",
    "exec",
    "--json",
    "--skip-git-repo-check",
    "-c",
    'sandbox_mode="workspace-write"',
    "-c",
    'approval_policy="never"',
    "--",
    "--help me",
  ]);
});

it("gives model and sandbox again when it resumes, before the verb", () => {
  const argv = execArgv(
    agent({
      program: "/opt/codex",
      model: "m",
      args: ["-c", "x=1"],
      permissions: { mode: "full" },
    }),
    "go on",
    "01a20f94-d36b-7dd2-9237-f58067572507",
  );
  expect(argv[0]).toBe("/opt/codex");
  expect(argv.slice(4)).toEqual([
    "--model",
    "m",
    "-c",
    'sandbox_mode="danger-full-access"',
    "-c",
    'approval_policy="never"',
    "-c",
    "x=1",
    "resume",
    "01a20f94-d36b-7dd2-9237-f58067572507",
    "--",
    "go on",
  ]);
});

it("lets a prompt that is too long for an argument come through standard input", () => {
  const prompt = "ä".repeat(60_000);
  expect(isPromptOnStdin("short")).toBe(false);
  expect(isPromptOnStdin("a\0b")).toBe(true);
  expect(isPromptOnStdin(prompt)).toBe(true);
  expect(execArgv(agent(), prompt, undefined).at(-1)).toBe("-");
});

it("allows network and folders, and names words that mean nothing to it", () => {
  const permissions = { mode: "edit" as const, allow: ["network", "/data/a b", "Bash(npm *)"] };
  const argv = appServerArgv(agent({ permissions, model: "m" }));
  expect(argv.slice(0, 4)).toEqual(["codex", "app-server", "-c", 'model="m"']);
  expect(argv).toContain("sandbox_workspace_write.network_access=true");
  expect(argv).toContain('sandbox_workspace_write.writable_roots=["/data/a b"]');
  expect(unknownAllowed(permissions)).toEqual(["Bash(npm *)"]);
});

it("knows what the sandbox lets it write to beside its own folder", () => {
  const permissions = { mode: "edit" as const, allow: ["/data"] };
  expect(writableFolders(permissions, { TMPDIR: "/var/t" })).toEqual(["/tmp", "/var/t", "/data"]);
  expect(writableFolders(undefined, {})).toEqual(["/tmp"]);
  expect(writableFolders({ mode: "read" }, {})).toEqual([]);
});

it("leaves out the variables of another agent's session, and keeps those of the user", () => {
  for (const name of ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_THREAD_ID", "CODEX_SANDBOX"])
    expect(isForeignVariable(name), name).toBe(true);
  for (const name of ["CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PATH"])
    expect(isForeignVariable(name), name).toBe(false);
});

it("the sandbox of edit lets it write to the folder of its run, and that of read to nothing", () => {
  const drop = "/state/drops/a@b";
  const edit = withWritable(agent({ permissions: { mode: "edit", allow: ["/data"] } }), drop);
  expect(execArgv(edit, "go", undefined)).toContain(
    `sandbox_workspace_write.writable_roots=["/data","${drop}"]`,
  );
  expect(execArgv(withWritable(agent(), drop), "go", undefined).join(" ")).toContain(drop);
  const read = agent({ permissions: { mode: "read" } });
  expect(withWritable(read, drop)).toBe(read);
});

it("names the servers of the Model Context Protocol in its settings", () => {
  const settings = agent({ mcp: { files: { command: ["npx", "files", "--ro"] } } });
  for (const argv of [execArgv(settings, "go", undefined), appServerArgv(settings)]) {
    expect(argv).toContain('mcp_servers.files.command="npx"');
    expect(argv).toContain('mcp_servers.files.args=["files","--ro"]');
  }
});

it("asks its service through the meter, at the address that it would ask otherwise", () => {
  const through = (address: string): string => `http://meter/${address}`;
  const addressOf = (more: Partial<AgentSettings>): string | undefined =>
    execArgv(agent(more), "{meter:http://x}", undefined, through)
      .concat(appServerArgv(agent(more), through))
      .find((word) => word.startsWith("openai_base_url="));
  expect(addressOf({})).toBe('openai_base_url="http://meter/https://api.openai.com/v1"');
  expect(addressOf({ env: { OPENAI_BASE_URL: "http://own" } })).toBe(
    'openai_base_url="http://meter/http://own"',
  );
  expect(execArgv(agent(), "{meter:http://x}", undefined, through).at(-1)).toBe("{meter:http://x}");
});
