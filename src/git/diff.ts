/**
 * Reads what changes between two commits: files, hunks, lines. git starts no program for that, and obeys no file of the commits but the
 * marks of generated files. What is read is bounded; a file above a limit is named, and says why its lines are missing.
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { type Hunk, parsePatch } from "./parse-patch.ts";
import { askGit, type GitCall, gitLines, gitList } from "./run-git.ts";

/** Why lines are missing. `name`: the name is no UTF-8, so git cannot be asked for the file. */
export type Folded = "binary" | "generated" | "large" | "many" | "name";

export interface FileDiff {
  path: string;
  /** Its path before it was renamed; else null. */
  was: string | null;
  status: "added" | "removed" | "changed" | "renamed" | "type changed";
  /** The modes as git writes them; "000000" for no file. */
  modes: [old: string, now: string];
  /** The ids of its contents; zeros for no file. */
  ids: [old: string, now: string];
  /** Null for a file that is no text. */
  insertions: number | null;
  deletions: number | null;
  folded: Folded | null;
  hunks: Hunk[];
}

export interface DiffLimits {
  /** Files with lines. */
  files: number;
  /** Changed lines of all files, and of one. */
  lines: number;
  fileLines: number;
  /** The two contents of a file together. */
  fileBytes: number;
}

/** Why the lines of a file are not shown, for people. */
export const FOLDED: Readonly<Record<Folded, string>> = {
  binary: "no text",
  generated: "written by a program",
  large: "too long to show among others",
  many: "after as many lines as are shown at once",
  name: "its name is no UTF-8",
};

/** What else has changed than lines: `new`, `was a.ts`, `mode 100644 → 100755`. */
export function notesOn({ status, was, modes: [old, now] }: FileDiff): string[] {
  const isBoth = status !== "added" && status !== "removed";
  return [
    ...(status === "added" ? ["new"] : status === "changed" ? [] : [status]),
    ...(was === null ? [] : [`was ${was}`]),
    ...(isBoth && old !== now ? [`mode ${old} → ${now}`] : []),
  ];
}

const STATUS: Readonly<Record<string, FileDiff["status"]>> = {
  A: "added",
  D: "removed",
  R: "renamed",
  T: "type changed",
};
const LIMIT_MS = 30_000;
/** All names that one call of git gets as arguments (characters). */
const NAMES_MAX = 300_000;
/** Longer lines are cut (characters). */
const LINE_MAX = 1000;
/** Files that programs write for programs. */
const LOCKS =
  /(?:^|\/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|deno\.lock|Cargo\.lock|Gemfile\.lock|Pipfile\.lock|poetry\.lock|pdm\.lock|uv\.lock|composer\.lock|mix\.lock|flake\.lock|go\.sum|[^/]+\.min\.(?:js|css))$/;

/** @param only the path of one file, which is not folded as generated. @throws ErrGit */
export async function readDiff(
  call: GitCall,
  [from, to]: readonly [from: string, to: string],
  limits: DiffLimits,
  only?: string,
): Promise<FileDiff[]> {
  const git = { ...call, limitMs: LIMIT_MS };
  const all = await listFiles(git, from, to);
  const files = only === undefined ? all : all.filter(({ path }) => path === only);
  await foldSome(git, from, files, limits, only !== undefined);
  const open = files.filter(({ folded }) => folded === null);
  if (open.length === 0) return files;
  const names = open.flatMap(({ path, was }) => (was === null ? [path] : [was, path]));
  const args = ["--no-color", "--unified=3", "--full-index", "--submodule=short", ...COMPARE];
  const literal = { ...git, env: { ...git.env, GIT_LITERAL_PATHSPECS: "1" } };
  const asked = ["diff-tree", "--patch", ...args, from, to, "--", ...names];
  const sections = parsePatch((await askGit(literal, ...asked)).out.toString(), LINE_MAX);
  for (const file of open) {
    // A file that became a link is one that is removed and one that is added.
    const own = sections.splice(0, file.status === "type changed" ? 2 : 1);
    const isOwn = own.every(({ ids = [] }) =>
      ids.every((id) => file.ids.includes(id) || isNone(id)),
    );
    if (own.length === 0 || !isOwn) throw new Error(`git has no patch of ${file.path}`);
    file.hunks = own.flatMap(({ hunks }) => hunks);
  }
  return files;
}

/** The id of a file that is not there. */
function isNone(id: string): boolean {
  return /^0+$/.test(id);
}

/** The same for the list and for the lines. A submodule counts, whatever the repository says about it. */
const COMPARE = ["-r", "-M", "--ignore-submodules=none"];

/** The changed files without their lines. @throws ErrGit */
export async function listFiles(call: GitCall, from: string, to: string): Promise<FileDiff[]> {
  const asked = ["diff-tree", "--raw", "--numstat", "-z", "--no-abbrev", ...COMPARE, from, to];
  const parts = (await askGit(call, ...asked)).out.toString().split("\0");
  const files: FileDiff[] = [];
  let at = 0;
  const next = (): string => parts[at++] ?? "";
  while (parts[at]?.startsWith(":") === true) {
    const [old = "", now = "", oldId = "", nowId = "", letter = ""] = next().slice(1).split(" ");
    const first = next();
    const isTwo = letter.startsWith("R");
    files.push({
      path: isTwo ? next() : first,
      was: isTwo ? first : null,
      status: STATUS[letter.charAt(0)] ?? "changed",
      modes: [old, now],
      ids: [oldId, nowId],
      insertions: null,
      deletions: null,
      folded: null,
      hunks: [],
    });
  }
  for (const file of files) {
    const [insertions = "-", deletions = "-", path = ""] = next().split("\t");
    if (path === "") at += 2;
    if (insertions === "-") file.folded = "binary";
    else [file.insertions, file.deletions] = [Number(insertions), Number(deletions)];
  }
  return files;
}

/** Says of each file whether its lines are left out. */
async function foldSome(
  call: GitCall,
  from: string,
  files: readonly FileDiff[],
  limits: DiffLimits,
  isOne: boolean,
): Promise<void> {
  const texts = files.filter(({ folded }) => folded === null);
  const some = texts.slice(0, limits.files);
  const isGenerated = isOne ? new Set() : await generatedOf(call, from, some);
  const bytes = await bytesOf(call, some);
  let [lines, names] = [0, 0];
  const foldedAs = (file: FileDiff): Folded | null => {
    const { path, was, insertions, deletions } = file;
    if (`${path}${was}`.includes("\uFFFD")) return "name";
    if (isGenerated.has(path)) return "generated";
    const changed = (insertions ?? 0) + (deletions ?? 0);
    if (changed > limits.fileLines || (bytes.get(file) ?? 0) > limits.fileBytes) return "large";
    const isFull = lines + changed > limits.lines || names > NAMES_MAX;
    if (isFull || !bytes.has(file)) return "many";
    lines += changed;
    names += path.length + (was ?? "").length;
    return null;
  };
  for (const file of texts) file.folded = foldedAs(file);
}

/** The bytes of both contents of each file. */
async function bytesOf(call: GitCall, files: readonly FileDiff[]): Promise<Map<FileDiff, number>> {
  const input = files.flatMap(({ ids }) => ids.map((id) => `${id}\n`)).join("");
  const asked = ["cat-file", "--batch-check=%(objectsize)"];
  const sizes = files.length === 0 ? [] : await gitLines({ ...call, input }, ...asked);
  // The id of no file, or of a submodule, "is missing".
  const size = (at: number): number => (/^\d+$/.test(sizes[at] ?? "") ? Number(sizes[at]) : 0);
  return new Map(files.map((file, n) => [file, size(2 * n) + size(2 * n + 1)]));
}

/**
 * Lock files, and those that `.gitattributes` calls `linguist-generated`. The marks of the commit before the work count, so that no work
 * can fold itself.
 */
async function generatedOf(
  call: GitCall,
  from: string,
  files: readonly FileDiff[],
): Promise<Set<unknown>> {
  const found = new Set(files.flatMap(({ path }) => (LOCKS.test(path) ? [path] : [])));
  const grep = ["grep", "-l", "-I", "linguist-generated", from, "--"];
  const attributes = ":(top,glob)**/.gitattributes";
  if ((await gitLines({ ...call, answers: [1] }, ...grep, attributes)).length === 0) return found;
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-attributes-"));
  try {
    const env = { ...call.env, GIT_INDEX_FILE: join(dir, "index") };
    await askGit({ ...call, env }, "read-tree", from);
    const input = files.map(({ path }) => `${path}\0`).join("");
    const asked = ["check-attr", "--cached", "-z", "--stdin", "linguist-generated"];
    const parts = await gitList({ ...call, env, input }, ...asked);
    for (let at = 0; at < parts.length; at += 3)
      if (["set", "true"].includes(parts[at + 2] ?? "")) found.add(parts[at] ?? "");
    return found;
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

/** What pictures begin with, and their types. No picture here is a program, as an SVG is. */
const PICTURES: readonly [begins: RegExp, type: string][] = [
  [/^\x89PNG\r\n\x1a\n/, "image/png"],
  [/^\xff\xd8\xff/, "image/jpeg"],
  [/^GIF8[79]a/, "image/gif"],
  [/^RIFF.{4}WEBP/s, "image/webp"],
];

/** A picture among the objects; undefined when it is none, or larger than the limit. @throws ErrGit */
export async function readPicture(
  call: GitCall,
  id: string,
  bytesMax: number,
): Promise<{ type: string; bytes: Buffer } | undefined> {
  const bytes = await bytesOfBlob(call, id);
  if (bytes === undefined || bytes > bytesMax) return undefined;
  const { out } = await askGit(call, "cat-file", "blob", id);
  const head = out.subarray(0, 16).toString("latin1");
  const [, type] = PICTURES.find(([begins]) => begins.test(head)) ?? [];
  return type === undefined ? undefined : { type, bytes: out };
}

async function bytesOfBlob(call: GitCall, id: string): Promise<number | undefined> {
  const asked = ["cat-file", "--batch-check=%(objecttype) %(objectsize)"];
  const [line = ""] = await gitLines({ ...call, input: `${id}\n` }, ...asked);
  const [, bytes] = /^blob (\d+)$/.exec(line) ?? [];
  return bytes === undefined ? undefined : Number(bytes);
}
