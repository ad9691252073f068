/** What tests of commands do with a pool. */
import fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { openTrays, readAcknowledgement } from "../../../src/index.ts";
import type { Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

/** A program that runs until this file is there. */
export const until = (path: string): string[] => [
  "sh",
  "-c",
  `until [ -e '${path}' ]; do sleep 0.1; done`,
];

/** Ids of tasks that a worker holds now. */
export const running = (pool: Pool): string[] =>
  fs
    .readdirSync(pool.processing)
    .filter((file) => file.includes("~w-"))
    .map((file) => file.slice(0, file.indexOf("@")))
    .sort();

export const waiting = (pool: Pool): string[] => fs.readdirSync(pool.inbox).sort();
export const control = (pool: Pool, tray: string): string => join(pool.state, "control", tray);

export async function send(pool: Pool, ...args: string[]): Promise<Record<string, unknown>> {
  const { stdout, stderr, code } = await pool.run([...args, "--wait", "--json"]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { result: Record<string, unknown> }).result;
}

/** Drops a command file as any program would. @returns its acknowledgement */
export async function drop(pool: Pool, id: string, body: object): Promise<Record<string, unknown>> {
  const staged = join(pool.dir, `${id}.command`);
  fs.writeFileSync(staged, JSON.stringify(body));
  fs.renameSync(staged, join(control(pool, "inbox"), `${id}.json`));
  return waitFor(() => readAcknowledgement(openTrays(join(pool.state, "control")), id), {
    what: `the answer to ${id}`,
  });
}

export async function startPaused(pool: Pool): Promise<void> {
  await pool.start(["--paused"]);
  const path = join(pool.state, "control.json");
  await waitFor(
    () => fs.existsSync(path) && fs.readFileSync(path, "utf8").includes('"paused": true'),
    { what: "the pause" },
  );
}
