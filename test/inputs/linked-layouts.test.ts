/** Layouts with symbolic links that people use: what a person names may be a link, and so may the folders of a tree. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { inWorktree, newPlace } from "../parts/worktrees/place.ts";
import type { Pool } from "../support/pool.ts";

/** Moves a file or folder away and leaves a link, as a person does who keeps it on another disk or in a repository. */
function relink(pool: Pool, path: string): void {
  const elsewhere = fs.mkdtempSync(join(pool.dir, "elsewhere-"));
  const target = join(elsewhere, basename(path));
  fs.mkdirSync(dirname(path), { recursive: true });
  if (!fs.existsSync(path)) fs.mkdirSync(path);
  fs.renameSync(path, target);
  fs.symlinkSync(target, path);
}

/** A file as Kubernetes mounts it: a link to `..data/NAME`, and `..data` is a link to the folder of the present version. */
function mount(dir: string, name: string, text: string): string {
  fs.mkdirSync(join(dir, "..2026_01_01"), { recursive: true });
  fs.writeFileSync(join(dir, "..2026_01_01", name), text, { mode: 0o640 });
  if (!fs.existsSync(join(dir, "..data"))) fs.symlinkSync("..2026_01_01", join(dir, "..data"));
  fs.symlinkSync(`..data/${name}`, join(dir, name));
  return join(dir, name);
}

const FOLDERS =
  "runs analytics logs evidence kv workers sessions limits drops landings worktrees lists templates".split(
    " ",
  );

test("settings, plan, schedule, module, secrets, folders and a whole tree may be links", async () => {
  const { pool, repo } = newPlace();
  const at = (...names: string[]): string => join(pool.dir, ...names);
  fs.writeFileSync(at("handler.mjs"), "export default () => 'from the module';\n");
  const config = `${fs.readFileSync(join(pool.state, "config.yaml"), "utf8")}
agents: [{name: code, kind: module, module: ${at("handler.mjs")}}]
`;
  fs.rmSync(join(pool.state, "config.yaml"));
  mount(pool.state, "config.yaml", config);
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), 'nodes: [{id: n, exec: ["true"]}]\n');
  mount(join(pool.state, "schedules"), "often.yaml", 'cron: "0 0 1 1 *"\ntask: {exec: ["true"]}\n');
  const secret = mount(at("secrets"), "token", "of kubernetes\n");
  fs.mkdirSync(at("credentials"));
  fs.writeFileSync(at("credentials", "token"), "of systemd\n", { mode: 0o400 });
  for (const name of FOLDERS) relink(pool, join(pool.state, name));
  for (const path of [join(pool.state, "roadmap.yaml"), at("handler.mjs"), join(repo.dir, ".git")])
    relink(pool, path);
  relink(pool, pool.state);
  const shows = (path: string): object => ({
    exec: ["sh", "-c", 'printf %s "$TOKEN"'],
    env_from: { TOKEN: `file:${path}` },
  });
  pool.drop("kubernetes", shows(secret));
  pool.drop("systemd", shows(at("credentials", "token")));
  pool.drop("module", { agent: "code", payload: {} });
  pool.drop("worktree", inWorktree("echo new > new.txt; commit"));
  pool.drop("owner", { exec: ["true"], cwd: "repo", owns: { write: ["src"] } });
  const { code, stderr, stdout } = await pool.run(["run", "--drain"]);
  expect(code, `${stdout}${stderr}${JSON.stringify(pool.errors())}`).toBe(0);
  const outputs = Object.fromEntries(pool.results().map((one) => [one.task_id, one.output]));
  expect(outputs).toMatchObject({
    kubernetes: "of kubernetes",
    systemd: "of systemd",
    module: "from the module",
  });
  expect(Object.keys(outputs).sort()).toEqual([
    "kubernetes",
    "module",
    "n",
    "owner",
    "systemd",
    "worktree",
  ]);
  expect(repo.git("show", "mailchute/worktree:new.txt")).toBe("new");
  expect((await pool.run(["roadmap", "show", "n"])).stdout).toContain("done");
  expect((await pool.run(["schedule", "ls"])).stdout).toContain("often");
  for (const name of [...FOLDERS, "roadmap.yaml", "config.yaml"])
    expect(fs.lstatSync(join(pool.state, name)).isSymbolicLink(), name).toBe(true);
});

test("a list, and each file that an option names, may be a link; a pipe of the shell is read, too", async () => {
  const { pool } = newPlace("agents: [{name: sh, kind: exec, program: sh}]\n");
  const elsewhere = (name: string, text: string): string =>
    mount(join(pool.dir, `of-${name}`), name, text);
  const list = elsewhere("TODO.md", "- [ ] one thing\n");
  const tasks = elsewhere("tasks.ndjson", '{"id":"t1","exec":["true"]}\n');
  const lines = elsewhere("lines.txt", "x\n");
  const vars = elsewhere("vars.env", "A=1\n");
  for (const args of [
    ["enqueue", "--file", list, "--agent", "sh"],
    ["enqueue", "--file", tasks],
    ["enqueue", "--batch", "--id", "b1", "--file", tasks],
    ["enqueue", "--each", lines, "--id", "e", "--", "true"],
    ["enqueue", "--vars", vars, "--id", "v", "--", "true"],
  ]) {
    const { code, stderr } = await pool.run(args);
    expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
  }
  const cli = join(import.meta.dirname, "../../bin/mailchute.js");
  const from = `"${process.execPath}" "${cli}" enqueue --state "${pool.state}"`;
  execFileSync("bash", [
    "-ec",
    `${from} --file <(echo '{"id":"t2","exec":["true"]}')
     echo '{"id":"t3","exec":["true"]}' | ${from} --file /dev/stdin
     ${from} --id b2 --batch --file <(echo '{"exec":["true"]}')
     ${from} --id w --vars <(echo A=1) -- true`,
  ]);
  const names = fs.readdirSync(pool.inbox).sort((a, b) => (a < b ? -1 : 1));
  expect(names).toEqual(
    expect.arrayContaining(["b2.ndjson", "t1.json", "t2.json", "t3.json", "w.json"]),
  );
});

test("a pipe that a person made in a folder is refused, and the command says so", async () => {
  const { pool } = newPlace();
  const pipe = join(pool.dir, "pipe.ndjson");
  execFileSync("mkfifo", [pipe]);
  for (const args of [
    ["enqueue", "--file", pipe],
    ["enqueue", "--batch", "--file", pipe],
  ]) {
    const { code, stderr } = await pool.run(args);
    expect(code, stderr).not.toBe(0);
    expect(stderr).toContain("not a regular file");
  }
});
