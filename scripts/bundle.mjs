/**
 * The second half of the build: few files of many, because reading a hundred small ones was most of what a command and a
 * worker process took to start. The packages that we use go in too, with their licences beside them.
 */
import fs from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

/** ES modules: the library and the supervisor, and the one that a worker imports to have Node's loader ready. */
const LIBRARY = ["index", "supervisor", "plugin", "agents/nothing"];
/** The command line: one file for each verb, read when it is called. */
const COMMANDS = ["cli/main"];
/** Processes and threads, each with files of its own (src/host/package.ts finds them). What it imports when it is called is a file beside it. */
const ALONE = fs
  .readdirSync(join(root, "src"), { recursive: true })
  .filter((name) => /(?:^|\/)(?:entry|[\w-]+-thread)\.ts$/.test(name))
  .map((name) => name.slice(0, -".ts".length));
/** Not bundled: it compiles what it is given, with files of its own that it looks for. */
const EXTERNAL = ["jiti"];
/**
 * The modules of this package, which become one with ours, without what we do not use. Its other build, the same code as CommonJS, takes
 * twice as long to load, and almost every command reads `config.yaml`.
 */
const YAML = { yaml: join(root, "node_modules/yaml/browser/dist/index.js") };
/** What these need, and what each command needs anyway, is one file: people wait for them. */
const QUICK = ["cli/main", "cli/commands/status"];

/**
 * What we start ourselves is CommonJS: Node has it read and compiled in half the time, and does not begin by loading its
 * streams, which an ES module that names node:fs makes it do.
 */
const ENDINGS = { esm: { entry: "js", chunk: "mjs" }, cjs: { entry: "cjs", chunk: "cjs" } };

const options = (names, format) => ({
  input: Object.fromEntries(names.map((name) => [name, join(root, "src", `${name}.ts`)])),
  platform: "node",
  external: EXTERNAL,
  resolve: { alias: YAML },
  transform: {
    target: "node20",
    // CommonJS packages ask for these, and an ES module has them under other names.
    define:
      format === "esm"
        ? { __filename: "import.meta.filename", __dirname: "import.meta.dirname" }
        : {},
  },
  // Every verb is imported when it is called, also those that have to come with another.
  checks: { ineffectiveDynamicImport: false },
});

async function bundle(names, format, chunks, codeSplitting = true, isWritten = true) {
  const build = await rolldown(options(names, format));
  const { output } = await build[isWritten ? "write" : "generate"]({
    dir: dist,
    format,
    entryFileNames: `[name].${ENDINGS[format].entry}`,
    // An upgrade replaces these files below running processes: what they load later must be their own, or be missing.
    chunkFileNames: `${chunks}/[name]-[hash].${ENDINGS[format].chunk}`,
    codeSplitting,
    comments: { annotation: false, jsdoc: false, legal: true },
  });
  await build.close();
  if (isWritten)
    for (const { fileName, code } of output)
      fs.writeFileSync(join(dist, fileName), toAscii(withPlainExports(code)));
  return output;
}

/**
 * One character outside Latin-1 makes V8 keep the whole source of a file with two bytes for each character, and every process keeps its
 * sources. So such characters become escapes, which mean the same in strings, templates and regular expressions.
 */
function toAscii(code) {
  // Not so after a backslash, and in a raw template.
  if (/\\[^\0-\x7f]|String\.raw`[^`]*[^\0-\x7f]/.test(code))
    throw new Error("a source has to write a character outside ASCII as an escape");
  return code.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Each export of a CommonJS file is a getter, which serves a variable that changes: several hundred functions to compile at each start.
 * What never changes is exported as it is.
 */
function withPlainExports(code) {
  const getter =
    /^Object\.defineProperty\(exports, "([\w$]+)", \{\n\tenumerable: true,\n\tget: function\(\) \{\n\t\treturn ([\w$]+);\n\t\}\n\}\);$/gm;
  const fixed = new Set(
    [...code.matchAll(/^(?:(?:async )?function\*? ?|const |var (?=[\w$]+ = ))([\w$]+)/gm)].map(
      ([, name]) => name,
    ),
  );
  return code.replace(getter, (whole, name, value) =>
    fixed.has(value) && !isAssigned(code, value) ? `exports.${name} = ${value};` : whole,
  );
}

/** Whether a variable of a file has another value later. */
function isAssigned(code, name) {
  return new RegExp(`^\\s+${name.replaceAll("$", "\\$")}(?:\\+\\+|--| [-+*/|&?]*= )`, "m").test(
    code,
  );
}

/** The modules that are read before any of these runs. */
async function findNeeds(names) {
  const chunks = new Map(
    (await bundle(names, "cjs", "chunks", true, false)).map((chunk) => [chunk.fileName, chunk]),
  );
  const needed = new Set(names.map((name) => `${name}.cjs`));
  for (const fileName of needed)
    for (const next of chunks.get(fileName)?.imports ?? []) needed.add(next);
  return new Set([...needed].flatMap((fileName) => chunks.get(fileName)?.moduleIds ?? []));
}

const quick = await findNeeds(QUICK);
const written = await bundle(COMMANDS, "cjs", "chunks", {
  groups: [{ name: "quick", test: (id) => quick.has(id) }],
});
const findsPackage = (id) => id.endsWith("src/host/package.ts");
written.push(
  ...(await bundle(LIBRARY, "esm", "chunks", {
    groups: [{ name: "package", test: findsPackage }],
  })),
);
for (const name of ALONE) {
  const needs = await findNeeds([name]);
  written.push(
    ...(await bundle([name], "cjs", dirname(name), {
      groups: [
        { name: "packages", test: (id) => needs.has(id) && packageOf(id) !== undefined },
        { name: "needs", test: (id) => needs.has(id) },
      ],
    })),
  );
}

// src/host/package.ts counts on lying one folder deep.
for (const { fileName, moduleIds } of written)
  if (moduleIds.some(findsPackage) && !/^[^/]+\/[^/]+$/.test(fileName))
    throw new Error(`${fileName} must lie in a folder of dist/`);

// What an earlier build left.
const names = new Set(written.map((chunk) => chunk.fileName));
for (const entry of fs.readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (entry.isFile() && /\.[cm]?js$/.test(entry.name) && !names.has(relative(dist, path)))
    fs.rmSync(path);
}

// Files that a browser gets as they are.
for (const name of fs.readdirSync(join(root, "src"), { recursive: true }))
  if (/\/assets\/[^/]+$/.test(name)) fs.cpSync(join(root, "src", name), join(dist, name));

/** The folder of the package that a file belongs to; undefined for our own. */
function packageOf(id) {
  const at = id.lastIndexOf("node_modules/");
  if (at === -1) return undefined;
  const path = id.slice(at).split("/");
  return id.slice(0, at) + path.slice(0, path[1].startsWith("@") ? 3 : 2).join("/");
}

const folders = new Set(written.flatMap((chunk) => chunk.moduleIds.map(packageOf)));
folders.delete(undefined);
const licences = [...folders].sort().map((folder) => {
  const { name, version, license, author } = JSON.parse(
    fs.readFileSync(join(folder, "package.json"), "utf8"),
  );
  const file = fs.readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text =
    file === undefined
      ? `${license}, ${author?.name ?? author}`
      : fs.readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version}\n\n${text}\n`;
});
fs.writeFileSync(
  join(dist, "THIRD-PARTY.txt"),
  `Packages that are part of these files, each under its own licence.\n\n${licences.join(`\n${"-".repeat(80)}\n\n`)}`,
);
