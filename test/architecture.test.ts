/** Who may import whom, as ARCHITECTURE.md says: arrows go downwards, and the core stands alone. */
import fs from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const SRC = fileURLToPath(new URL("../src", import.meta.url));

/** Folders that a folder may import beside itself. A new folder needs a line here, with its place in ARCHITECTURE.md. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  codec: ["core"],
  host: ["core"],
  journal: ["core"],
  // The only folder that moves mailbox files: it must not know who asks.
  mailbox: ["core", "codec", "host"],
  agents: ["core", "host"],
  // What is known of the plan: it neither runs tasks nor moves them.
  roadmap: ["core", "codec", "host", "journal"],
  worker: ["core", "codec", "host", "journal", "mailbox", "agents", "roadmap"],
  // It starts workers and speaks to them, and never runs a task itself.
  supervisor: ["core", "codec", "host", "journal", "mailbox", "roadmap", "worker"],
};

function sources(folder: string): string[] {
  return fs
    .readdirSync(`${SRC}/${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${SRC}/${folder}/${name}`);
}

/** Folders of src that a file imports; "" for files directly in src. */
function importsOf(path: string): string[] {
  const text = fs.readFileSync(path, "utf8");
  return [...text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].map(([, target = ""]) => {
    const [folder = "", ...rest] = relative(SRC, resolve(dirname(path), target)).split(sep);
    return rest.length === 0 ? "" : folder;
  });
}

describe("the dependency rule", () => {
  test.each(Object.keys(ALLOWED))("src/%s imports only what lies below it", (folder) => {
    for (const path of sources(folder)) {
      for (const target of importsOf(path)) {
        if (target === folder || target === "") continue;
        expect(ALLOWED[folder], relative(SRC, path)).toContain(target);
      }
    }
  });

  test("every folder but cli has its line", () => {
    const folders = fs
      .readdirSync(SRC, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== "cli")
      .map((entry) => entry.name);
    expect(folders.sort()).toEqual(Object.keys(ALLOWED).sort());
  });
});

/** What can be imported from Node without a file system, a clock or chance coming with it. */
const HARMLESS: ReadonlySet<string> = new Set(["node:path", "node:buffer"]);

test.each(["core", "codec"])("src/%s has no file system, no clock and no chance", (folder) => {
  for (const path of sources(folder)) {
    const text = fs.readFileSync(path, "utf8");
    const imported = [...text.matchAll(/(?:from|import\()\s*"(node:[^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect(
      imported.filter((name = "") => !HARMLESS.has(name)),
      relative(SRC, path),
    ).toEqual([]);
    expect(text, relative(SRC, path)).not.toMatch(
      /\b(?:Date\.now|Math\.random|performance\.now|new Date\(\))/,
    );
  }
});

test("ARCHITECTURE.md names functions that exist", () => {
  const text = fs.readFileSync(`${SRC}/../ARCHITECTURE.md`, "utf8");
  const code = sources(".")
    .map((path) => fs.readFileSync(path, "utf8"))
    .join("\n");
  const path = text.slice(text.indexOf("## The path"), text.indexOf("## Decisions"));
  const names = [
    ...path.matchAll(/`(?:[A-Z][A-Za-z]+\.)?([a-z]+[A-Z][A-Za-z]+|[A-Z][a-z]+[A-Za-z]*)`/g),
  ]
    .map(([, name = ""]) => name)
    .filter((name) => !name.startsWith("Err"));
  expect(names.length).toBeGreaterThan(20);
  for (const name of names) expect(code, name).toContain(name);
});

test("the documents speak only of files that are there", () => {
  const root = `${SRC}/..`;
  const pages = fs.readdirSync(`${root}/docs`).map((name) => `docs/${name}`);
  for (const document of ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", ...pages]) {
    const text = fs.readFileSync(`${root}/${document}`, "utf8");
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:)([^)#]+)\)/g))
      expect(fs.existsSync(resolve(dirname(`${root}/${document}`), target)), target).toBe(true);
    for (const [, path = ""] of text.matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g))
      expect(fs.existsSync(`${root}/${path}`), path).toBe(true);
  }
});
