/** The package outside of its clone: what is in it, how large it is, and what happens when it is replaced below a running pool. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { endOfFile, tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { installGlobally, installInto, pack, packAs } from "./installed.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MB = 1024 * 1024;
/** `npm run test:install` takes 10,000. */
const TASKS = Number(process.env["MAILCHUTE_INSTALL_TASKS"] ?? 300);

const onEnd = endOfFile();
const packed = pack(onEnd);

it("the package holds programs, types, templates and documents, and no sources or tests", () => {
  const { files, bytes, unpackedBytes } = packed;
  for (const path of ["bin/mailchute.js", "dist/index.d.ts", "templates/planner.md", "LICENSE"])
    expect(files).toContain(path);
  expect(files.filter((path) => path.startsWith("docs/")).length).toBeGreaterThan(10);
  expect(files.filter((path) => /^(?:src|test|state|node_modules)\//.test(path))).toEqual([]);
  console.log(
    `package: ${(bytes / MB).toFixed(1)} MB, ${(unpackedBytes / MB).toFixed(1)} MB unpacked`,
  );
  expect(bytes).toBeLessThan(4 * MB);
  expect(unpackedBytes).toBeLessThan(12 * MB);
});

it("installed globally, it makes a tree, and runs a function in TypeScript", async () => {
  const command = installGlobally(packed.path, tempDir());
  const cwd = tempDir();
  const run = (...args: string[]): string => execFileSync(command, args, { cwd, encoding: "utf8" });
  expect(run("--version")).toBe(`${versionOfClone()}\n`);
  run("init");
  fs.writeFileSync(join(cwd, "double.ts"), "export default ({ payload }: any) => payload.n * 2;\n");
  fs.writeFileSync(
    join(cwd, "state", "config.yaml"),
    `agents: [{name: double, kind: module, module: ${cwd}/double.ts, default: true}]
`,
  );
  fs.writeFileSync(
    join(cwd, "state/mailbox/inbox/two.json"),
    JSON.stringify({ agent: "double", payload: { n: 21 } }),
  );
  run("run", "--drain", "--no-live");
  expect(JSON.parse(run("show", "two", "--json"))).toMatchObject({ record: { output: 42 } });
});

it("a project that depends on it compiles against its types, and runs", () => {
  const project = tempDir();
  installInto(project, packed.path);
  fs.writeFileSync(
    join(project, "main.ts"),
    [
      'import { ErrNoTasks, type HeldTask, Mailbox, type Task } from "mailchute";',
      'const mailbox = Mailbox.open("mailbox");',
      "const task: Partial<Task> = { payload: { n: 1 } };",
      "const id: string = await mailbox.enqueue(task);",
      "const held: HeldTask = mailbox.claim();",
      'await mailbox.complete(held, { output: "done" });',
      "try { mailbox.claim(); } catch (error) { console.log(id === held.task.id, error instanceof ErrNoTasks); }",
    ].join("\n"),
  );
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  const flags = ["--strict", "--module", "nodenext", "--target", "es2024", "--types", ""];
  execFileSync(
    compiler,
    [...flags, "--typeRoots", join(ROOT, "node_modules/@types"), "--types", "node", "main.ts"],
    { cwd: project, stdio: "pipe" },
  );
  const said = execFileSync(process.execPath, ["main.js"], { cwd: project, encoding: "utf8" });
  expect(said).toBe("true true\n");
});

it("an upgrade below a running pool loses nothing, is told, and ends with a restart; and so does the way back", async () => {
  const prefix = tempDir();
  const launcher = installGlobally(packed.path, prefix);
  const newer = packAs(packed, "0.9.9", onEnd);
  const program = programPath("fake-claude.mjs");
  const agents = `agents: [{name: ada, kind: claude, program: ${program}}]\n`;
  const pool = newPool({ launcher, config: `${QUICK_CONFIG}${agents}` });
  const dropSome = (from: number, count: number): void => {
    for (let n = from; n < from + count; n++) pool.drop(`t${n}`, { exec: ["true"] });
  };
  const third = Math.ceil(TASKS / 3);
  await pool.start();
  dropSome(0, third);
  await waitFor(() => pool.settledCount() > 0, { what: "the first task" });
  installGlobally(newer, prefix);
  dropSome(third, third);
  // The code of this kind of agent was not loaded before the upgrade, and its file has another name now.
  pool.drop("late", { agent: "ada", prompt: "work" });
  await waitFor(async () => (await pool.run(["status"])).stdout.includes("installed again"), {
    what: "the word of it",
  });
  expect((await pool.run(["health"])).code).toBe(1);
  expect(pool.alerts().map(({ alert }) => alert)).toContain("trouble");
  await pool.stop();
  await pool.start();
  expect(pool.supervisor()?.version).toBe("0.9.9");
  expect((await pool.run(["health"])).code).toBe(0);
  dropSome(2 * third, third);
  installGlobally(packed.path, prefix);
  await pool.stop();
  await pool.start();
  expect(pool.supervisor()?.version).toBe(versionOfClone());
  await waitFor(() => pool.settledCount() === 3 * third + 1, {
    what: "all tasks",
    timeoutMs: 60_000 + TASKS * 10,
  });
  expect(pool.errors()).toEqual([]);
  const runs = pool.events().filter(({ event }) => event === "completed");
  expect(new Set(runs.map(({ task_id: id }) => id)).size).toBe(3 * third + 1);
  expect(runs).toHaveLength(3 * third + 1);
});

function versionOfClone(): string {
  const text = fs.readFileSync(join(ROOT, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
