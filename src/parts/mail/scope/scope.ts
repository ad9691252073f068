/**
 * A scope is a project and a branch. Agents, messages, logs and tasks belong to one scope, and agents of different scopes may have the
 * same name. This file knows how scopes and agents are written: as an address, and as a folder. Pure.
 */
import { createHash } from "node:crypto";
import { basename } from "node:path";

export interface Scope {
  project: string;
  branch: string;
}

/** An agent, or `human`, in its scope. The name is in lower case. Project and branch keep their case. */
export interface Address extends Scope {
  name: string;
}

const DEFAULT_BRANCH = "main";
/** The scope of a directory that is in no repository. */
export const OUTSIDE: Scope = { project: "unknown", branch: DEFAULT_BRANCH };
/** The name of the person in each scope. */
export const HUMAN = "human";

const NAME_CHARS_MAX = 96;
const SCOPE_CHARS_MAX = 255;
/** Longer names of folders are cut, because a file name has at most 255 bytes. */
const FOLDER_CHARS_MAX = 100;
const HASH_CHARS = 16;

/** @param branch "" for a repository that names none */
export function scopeOf(repositoryRoot: string, branch: string): Scope {
  const project = basename(repositoryRoot) || repositoryRoot;
  return { project, branch: branch === "" ? DEFAULT_BRANCH : branch };
}

export function sameScope(a: Scope, b: Scope): boolean {
  return a.project === b.project && a.branch === b.branch;
}

/** `project:branch:agent`. */
export function formatAddress({ project, branch, name }: Address): string {
  return `${project}:${branch}:${name}`;
}

/**
 * Reads `agent`, `branch:agent` or `project:branch:agent`.
 * @param scope supplies the parts that the text leaves out
 * @returns undefined when it is no address: see `explainBadAddress`
 */
export function parseAddress(text: string, scope: Scope): Address | undefined {
  const parts = text.split(":");
  const name = (parts.pop() ?? "").toLowerCase();
  const branch = parts.pop() ?? scope.branch;
  // Git allows no colon in the name of a branch, but a directory may have one.
  const project = parts.length === 0 ? scope.project : parts.join(":");
  if (explainBadName(name) !== undefined) return undefined;
  return explainBadScope({ project, branch }) === undefined ? { project, branch, name } : undefined;
}

/** Reads `project:branch`, as in `MAILCHUTE_SCOPE`. @returns undefined when the text is no scope */
export function parseScope(text: string): Scope | undefined {
  const at = text.lastIndexOf(":");
  const scope = { project: text.slice(0, Math.max(0, at)), branch: text.slice(at + 1) };
  return explainBadScope(scope) === undefined ? scope : undefined;
}

/** Why an agent cannot have this name; undefined when it can. @param name in lower case */
export function explainBadName(name: string): string | undefined {
  if (name.length > NAME_CHARS_MAX) return `a name has at most ${NAME_CHARS_MAX} characters`;
  return /^[a-z0-9_](?:[a-z0-9._/-]*[a-z0-9_])?$/.test(name)
    ? undefined
    : "a name has letters, digits, '.', '_', '/' and '-', and begins and ends with a letter, a digit or '_'";
}

/** Why this is no scope; undefined when it is one. */
export function explainBadScope({ project, branch }: Scope): string | undefined {
  for (const [what, text] of Object.entries({ project, branch })) {
    if (text === "") return `the ${what} is empty`;
    if (text.length > SCOPE_CHARS_MAX)
      return `the ${what} has more than ${SCOPE_CHARS_MAX} characters`;
    if (/[\0-\x1f\x7f]/.test(text)) return `the ${what} has a control character`;
  }
  return branch.includes(":") ? "a branch has no ':'" : undefined;
}

/**
 * The name as one folder or file. Letters, digits, `.`, `_` and `-` stay; each other byte becomes `%` and two hex digits. So
 * `feature/login` becomes `feature%2Flogin`. A long name is cut and its hash is appended.
 */
export function folderOf(name: string): string {
  const escaped = [...Buffer.from(name, "utf8")]
    .map((byte, at) => (isPlainByte(byte, at) ? String.fromCharCode(byte) : hex(byte)))
    .join("");
  if (escaped.length <= FOLDER_CHARS_MAX) return escaped;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${escaped.slice(0, FOLDER_CHARS_MAX - HASH_CHARS - 1)}~${hash}`;
}

/** A dot at the beginning would hide the folder. */
function isPlainByte(byte: number, at: number): boolean {
  return /[A-Za-z0-9._-]/.test(String.fromCharCode(byte)) && !(at === 0 && byte === 0x2e);
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}
