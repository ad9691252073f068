/** docs/other-tools.md names a command for what other tools do: each one runs as it stands there. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";

const page = fs.readFileSync(new URL("../../docs/other-tools.md", import.meta.url), "utf8");
const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
/** They need a terminal or systemd, start a second pool, or end this one; each has tests of its own. */
const NOT_RUN = [
  "mailchute run --detach",
  "mailchute service install",
  "mailchute top",
  "mailchute stop --drain",
];

/** The commands in the last column of each table. */
const commands = page.split("\n").flatMap((line) => {
  const cells = line.split(/(?<!\\)\|/);
  if (cells.length < 4 || line.startsWith("|---")) return [];
  return [...(cells[2] ?? "").matchAll(/(?<!\[)`([^`]+)`/g)]
    .map(([, text = ""]) => text.replaceAll("\\|", "|"))
    .filter((text) => /\bmailchute [a-z-]/.test(text) && !NOT_RUN.includes(text));
});

const later = { exec: ["true"], not_before: 4_000_000_000 };

/** A pool with what the page names: tasks of each state, a group, a schedule, files. */
async function startPool(): Promise<Pool> {
  const pool = newPool({ config: `${QUICK_CONFIG}groups: {gpu: {slots: 1}}\n` });
  const put = (name: string, text: string): void => fs.writeFileSync(join(pool.dir, name), text);
  for (const name of ["bin", "state/schedules"]) fs.mkdirSync(join(pool.dir, name));
  put("state/schedules/tidy.yaml", 'cron: "30 2 * * *"\ntask: {exec: [ls]}\n');
  put("a.txt", "a\n");
  put("b.txt", "b\n");
  put("items.txt", "one\ntwo\n");
  put("tasks.ndjson", '{"exec":["true"]}\n{"exec":["true"]}\n');
  fs.symlinkSync(LAUNCHER, join(pool.dir, "bin", "mailchute"));
  pool.drop("done", { exec: ["echo", "hi"] });
  pool.drop("bad", { exec: ["false"], max_attempts: 1 });
  for (const n of [1, 2, 3]) {
    pool.drop(`running-${n}`, { exec: ["sleep", "600"], priority: 9 });
    pool.drop(`waiting-${n}`, later);
  }
  await pool.start();
  await pool.result("done");
  return pool;
}

async function shell(pool: Pool, text: string): Promise<string> {
  const path = `${join(pool.dir, "bin")}${delimiter}${process.env["PATH"]}`;
  const child = spawn("sh", ["-ec", text], {
    cwd: pool.dir,
    env: { ...process.env, PATH: path },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return code === 0 ? "" : `${text}: exit code ${code}: ${said}`;
}

test("each command of docs/other-tools.md works", async () => {
  expect(commands.length).toBeGreaterThan(60);
  const pool = await startPool();
  const faults: string[] = [];
  for (const command of commands) {
    if (command.includes("retry")) await pool.error("bad");
    faults.push(await shell(pool, command));
    // The next row finds it as it was.
    if (command.includes("cancel waiting-1")) pool.drop("waiting-1", later);
  }
  expect(faults.filter((fault) => fault !== "")).toEqual([]);
});
