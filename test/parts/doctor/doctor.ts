/** Runs doctor on a state tree whose agents are stand-ins. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { GateFile } from "../../../src/agents/accounts/gate-file.ts";
import type { Cli } from "../../cli/run-cli.ts";

interface Check {
  name: string;
  status: "ok" | "warn" | "fail";
  message: string;
}

const fake = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/programs/${name}`, import.meta.url));

/** A program of this text in the test's folder. */
export function program(cli: Cli, name: string, text: string): string {
  const path = join(cli.dir, name);
  fs.writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}

/** The stand-in for a program, at a path of the test's own, with what it does. Each start adds a line to `<kind>-runs`. */
export function standIn(
  cli: Cli,
  kind: "acp" | "claude" | "codex",
  script: object,
  version = "9.8.7",
): string {
  const lines = [
    `export FAKE_AGENT='${JSON.stringify(script)}'`,
    `export FAKE_AGENT_VERSION=${version}`,
    `echo "$@" >> ${join(cli.dir, `${kind}-runs`)}`,
    `exec '${process.execPath}' '${fake(`fake-${kind}.mjs`)}' "$@"`,
  ];
  return program(cli, kind, lines.join("\n"));
}

/** @returns its exit code, and its checks by name */
export async function doctor(
  cli: Cli,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<{ code: number | null; of: (name: string) => Check[] }> {
  const own = { HOME: cli.dir, XDG_STATE_HOME: join(cli.dir, "xdg"), ...env };
  const { code, stdout, stderr } = await cli(["doctor", "--json", ...args], { env: own });
  expect(stderr).toBe("");
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { code, of: (name) => checks.filter((check) => check.name === name) };
}

/** As a worker does when the service refuses a run: no other starts within the hour. */
export async function closeAccount(cli: Cli, account: string, reason: string): Promise<void> {
  const gate = new GateFile(join(cli.dir, "xdg", "mailchute", "accounts"), account);
  const nowMs = Date.now();
  await gate.close({ untilMs: nowMs + 3_600_000, window: null, reason }, nowMs);
}
