/**
 * `npm run measure:house`: how large the code is, and how it hangs together: lines by kind, files with one importer, exports with one use,
 * circles, the longest file and constructor, and what a plain task runs. Prints JSON; `--run` also plays the task, and `--names` names
 * what it runs.
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";

const { values: flags } = readFlags(import.meta.url, {
  options: { run: { type: "boolean" }, names: { type: "boolean" } },
});
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SRC = join(ROOT, "src");

const files = fs
  .readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .sort()
  .map((name) => ({ name, text: fs.readFileSync(join(SRC, name), "utf8") }));

/** Each line is of one kind: blank, comment, import (also of several lines), code. */
function kindsOf(text) {
  const kinds = { code: 0, comment: 0, import: 0, blank: 0 };
  let within = "";
  for (const line of text.split("\n").slice(0, -1)) {
    const bare = line.trim();
    if (within === "import") {
      kinds.import++;
      if (/from "|^}/.test(bare)) within = "";
    } else if (within === "comment") {
      kinds.comment++;
      if (bare.includes("*/")) within = "";
    } else if (bare === "") kinds.blank++;
    else if (bare.startsWith("//")) kinds.comment++;
    else if (bare.startsWith("/*")) {
      kinds.comment++;
      if (!bare.includes("*/")) within = "comment";
    } else if (/^(?:import\b(?!\()|export (?:type )?(?:\{|\*))/.test(bare)) {
      kinds.import++;
      if (!/;$/.test(bare)) within = "import";
    } else kinds.code++;
  }
  return kinds;
}

function sum(rows) {
  const total = { files: 0, code: 0, comment: 0, import: 0, blank: 0 };
  for (const row of rows) {
    total.files++;
    for (const kind of ["code", "comment", "import", "blank"]) total[kind] += row[kind];
  }
  return total;
}

/** The modules that a file names, with whether only their types are wanted. */
function importsOf({ name, text }) {
  const found = new Map();
  const at = (path, isType) => {
    const to = relative(SRC, resolve(dirname(join(SRC, name)), path));
    found.set(to, (found.get(to) ?? true) && isType);
  };
  for (const [, head, path] of text.matchAll(/^(?:import|export)\b([^;"]*?)\bfrom "(\.[^"]+)"/gm)) {
    const names = /\{([^}]*)\}/
      .exec(head)?.[1]
      ?.split(",")
      .filter((one) => one.trim() !== "");
    const isType =
      /^\s*type\b/.test(head) || (names?.every((one) => /^\s*type\s/.test(one)) ?? false);
    at(path, isType);
  }
  for (const [, path] of text.matchAll(/^import "(\.[^"]+)"/gm)) at(path, false);
  // Loaded when it is called: it makes no circle, but is a use.
  for (const [, path] of text.matchAll(/import\(\s*(?:\/\*.*?\*\/\s*)?"(\.[^"]+)"\s*\)/g)) {
    const to = relative(SRC, resolve(dirname(join(SRC, name)), path));
    if (!found.has(to)) found.set(to, "late");
  }
  return found;
}

const graph = new Map(files.map((file) => [file.name, importsOf(file)]));

/** Groups of files that reach each other. */
function circles(isEdge) {
  let count = 0;
  const index = new Map();
  const low = new Map();
  const stack = [];
  const on = new Set();
  const groups = [];
  const visit = (name) => {
    index.set(name, count);
    low.set(name, count++);
    stack.push(name);
    on.add(name);
    for (const [to, how] of graph.get(name) ?? []) {
      if (!graph.has(to) || !isEdge(how)) continue;
      if (!index.has(to)) {
        visit(to);
        low.set(name, Math.min(low.get(name), low.get(to)));
      } else if (on.has(to)) low.set(name, Math.min(low.get(name), index.get(to)));
    }
    if (low.get(name) !== index.get(name)) return;
    const group = [];
    for (let one = ""; one !== name; ) {
      one = stack.pop();
      on.delete(one);
      group.push(one);
    }
    if (group.length > 1) groups.push(group);
  };
  for (const name of graph.keys()) if (!index.has(name)) visit(name);
  return groups;
}

const importers = new Map(files.map(({ name }) => [name, 0]));
for (const to of graph.values())
  for (const name of to.keys())
    if (importers.has(name)) importers.set(name, importers.get(name) + 1);

/** Exported names, with how many other files name them. */
function exportsNamedOnce() {
  const words = files.map(({ text }) => new Set(text.match(/[A-Za-z_$][\w$]*/g)));
  let once = 0;
  files.forEach(({ text }, own) => {
    const head = /^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm;
    for (const [, name] of text.matchAll(head))
      if (words.filter((set, n) => n !== own && set.has(name)).length <= 1) once++;
  });
  return once;
}

function longestConstructor() {
  let longest = { file: "", lines: 0 };
  for (const { name, text } of files)
    for (const { 0: body } of text.matchAll(/^ {2}(?:private )?constructor\([\s\S]*?^ {2}\}/gm)) {
      const lines = body.split("\n").length;
      if (lines > longest.lines) longest = { file: name, lines };
    }
  return longest;
}

/** A build in which each source is a file of its own, so that what ran can be told by file. */
async function buildApart(dir) {
  const { rolldown } = await import("rolldown");
  const names = files.map(({ name }) => name.slice(0, -".ts".length));
  const input = names.filter((name) =>
    /(?:^cli\/main|(?:^|\/)(?:entry|[\w-]+-thread))$/.test(name),
  );
  const build = await rolldown({
    input: Object.fromEntries(input.map((name) => [name, join(SRC, `${name}.ts`)])),
    platform: "node",
    external: (id) => !id.startsWith(".") && !id.startsWith("/"),
    checks: { ineffectiveDynamicImport: false },
  });
  const dist = join(dir, "dist");
  const shape = { entryFileNames: "[name].cjs", preserveModules: true, preserveModulesRoot: SRC };
  await build.write({ dir: dist, format: "cjs", ...shape });
  await build.close();
  for (const name of ["package.json", "bin"])
    fs.cpSync(join(ROOT, name), join(dir, name), { recursive: true });
  fs.symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
}

/** How often each pool is played: what depends on time differs. */
const ROUNDS = 2;
const LOOK_MS = 50;
/** How long a pool lives before a task, and how long after it (ms). */
const BEFORE_MS = 1500;
const AFTER_MS = 500;

/** The functions of ours that a pool ran, each with its file: a pool that lives for some time, perhaps with one task. */
async function play(dir, name, hasTask) {
  const state = join(dir, `state-${name}`);
  const seen = join(dir, `seen-${name}`);
  for (const path of [state, join(state, "mailbox"), join(state, "mailbox/inbox")])
    fs.mkdirSync(path, { mode: 0o700 });
  const env = { ...process.env, NODE_V8_COVERAGE: seen };
  const pool = spawn(process.execPath, [join(dir, "bin/mailchute.js"), "run", "--state", state], {
    env,
  });
  const ended = new Promise((resolve) => pool.once("exit", resolve));
  while (!fs.existsSync(join(state, "supervisor.json"))) await wait(LOOK_MS);
  await wait(BEFORE_MS);
  if (hasTask) {
    fs.writeFileSync(join(state, "mailbox/inbox/t.json"), '{"exec": ["true"]}');
    while (!fs.existsSync(join(state, "mailbox/outbox/t_result.json"))) await wait(LOOK_MS);
  }
  await wait(AFTER_MS);
  pool.kill("SIGTERM");
  await ended;
  const functions = new Set();
  for (const file of fs.readdirSync(seen))
    for (const script of JSON.parse(fs.readFileSync(join(seen, file), "utf8")).result) {
      const [, source] = /\/dist\/(.*)\.cjs$/.exec(script.url) ?? [];
      for (const { functionName, ranges } of source === undefined ? [] : script.functions)
        if (functionName !== "" && ranges[0].count > 0) functions.add(`${source} ${functionName}`);
    }
  return functions;
}

/** What always runs for a task, and never in a pool without one. */
async function runsOfTask() {
  const dir = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "mailchute-measure-"));
  try {
    await buildApart(dir);
    const without = new Set();
    let own;
    for (let n = 0; n < ROUNDS; n++) {
      for (const one of await play(dir, `idle${n}`, false)) without.add(one);
      const seen = await play(dir, `task${n}`, true);
      own = (own ?? [...seen]).filter((one) => seen.has(one));
    }
    own = own.filter((one) => !without.has(one)).sort();
    const byFile = {};
    for (const one of own) {
      const [file, name] = one.split(" ");
      byFile[file] = [...(byFile[file] ?? []), name];
    }
    return { functions: own.length, files: Object.keys(byFile).length, byFile };
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

const rows = files.map(({ name, text }) => ({ name, ...kindsOf(text) }));
const folders = [...new Set(rows.map(({ name }) => name.split("/")[0]))];
const inCore = rows.filter(({ name }) => !name.startsWith("parts/"));
const lengthOf = ({ code, comment, import: imports, blank }) => code + comment + imports + blank;
const longest = rows.toSorted((a, b) => lengthOf(b) - lengthOf(a)).slice(0, 3);
const report = {
  total: sum(rows),
  without_parts: sum(inCore),
  folders: Object.fromEntries(
    folders.map((one) => [one, sum(rows.filter(({ name }) => name.split("/")[0] === one))]),
  ),
  files_with_one_importer: [...importers.values()].filter((count) => count === 1).length,
  exports_with_one_use: exportsNamedOnce(),
  longest_files: longest.map((row) => ({ file: row.name, lines: lengthOf(row) })),
  files_over_450: rows.filter((row) => lengthOf(row) > 450).length,
  longest_constructor: longestConstructor(),
  circles: {
    at_run_time: circles((how) => how === false),
    with_types: circles((how) => how !== "late").map((group) => group.length),
  },
};
if (flags.run) {
  const { byFile, ...counts } = await runsOfTask();
  report.plain_task = counts;
  if (flags.names) report.plain_task.names = byFile;
}
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
