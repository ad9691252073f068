#!/usr/bin/env node
/**
 * test-agents.mjs [--real] [NAME...]: the real coding agents against a mock of their services, which needs no account. They are installed
 * first. Without --real: claude, codex and opencode, as far as the files of these names. With --real: each of seven programs, or these, in
 * fourteen situations, some of them twenty times, which takes about an hour; its output is the table in docs/agents.md.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";

const { values, positionals } = readFlags(import.meta.url, {
  options: { real: { type: "boolean", default: false } },
  allowPositionals: true,
});
const only = positionals.length === 0 ? [] : ["-t", `^(${positionals.join("|")}) `];
const args = values.real ? ["test/agents/real/programs.test.ts", ...only] : positionals;
const { status } = spawnSync("npx", ["vitest", "run", "--project", "agents", ...args], {
  cwd: fileURLToPath(new URL("..", import.meta.url)),
  stdio: "inherit",
  env: { ...process.env, ...(values.real ? { MAILCHUTE_AGENTS: "all" } : {}) },
});
process.exitCode = status ?? 1;
