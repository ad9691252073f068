/**
 * Which root has which folder of mail: `scopes/<key>/root.json`. A root is a repository, or a state tree outside of one. The first root
 * of a name has the folder of that name, a second one `<project>~<8 hex>`. Reads only: `roots/claim.ts` writes.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { isText, type Of, oneOf, orElse, shape } from "../../../core/shape.ts";
import { Documents } from "../../../host/document-store.ts";
import { listDir } from "../../../host/list-dir.ts";
import { randomToken } from "../../../mailbox/files/random.ts";
import { folderOf, type Scope } from "../scope/scope.ts";

/** The root of a folder. */
const claim = shape({
  v: orElse(oneOf(1), 1),
  /** The id of the root: see `host/own-id.ts`. */
  id: isText,
  /** The project as people write it. */
  project: isText,
  /** Where the root was when it was last used. For people only. */
  path: orElse(isText, ""),
});
export type Claim = Of<typeof claim>;

/** The root in whose name a process works. Its own project needs no other name. */
export interface OwnRoot {
  project: string;
  /** The name of its folder in `scopes/`. */
  key: string;
  /** The git directory that its worktrees share, or the state tree. */
  dir: string;
  /** Claims the folder before the first file is written there. @returns its name, which may be another one by now */
  claim?: () => string;
}

/** A folder in `scopes/`. */
export interface Place {
  key: string;
  project: string;
  /** How other projects write it: the project, with `~<8 hex>` if it is not the first of its name. */
  name: string;
}

const STAGED_CHARS = 16;
export const CLAIM = "root";
/** How many hex digits of the id are in the name of a folder; more if another root has the same ones. */
export const KEY_HEX = [8, 16, 32] as const;
/** A project with the hex digits that tell it from others of its name. */
const QUALIFIED = /^(.+)~([0-9a-f]{8,32})$/s;

interface Claimed {
  key: string;
  /** Undefined: an earlier version made the folder, or its root is not known. */
  claim: Claim | undefined;
}

/** The folders of this project, the plain one first. */
export function claimsOf(dataDir: string, project: string): Claimed[] {
  const plain = folderOf(project);
  return listDir(join(dataDir, "scopes"))
    .filter((key) => key === plain || key.startsWith(`${plain}~`))
    .sort()
    .map((key) => ({ key, claim: readClaim(dataDir, key) }))
    .filter(({ key, claim }) => (claim === undefined ? key === plain : claim.project === project));
}

/** The claim of one folder in `scopes/`. */
export const claimsIn = (dataDir: string, key: string): Documents<Claim> =>
  new Documents(join(dataDir, "scopes"), key, claim, {
    isDurable: true,
    depth: 2,
    stagedAs: randomToken(STAGED_CHARS),
  });

export const readClaim = (dataDir: string, key: string): Claim | undefined =>
  claimsIn(dataDir, key).read(CLAIM);

/**
 * The folder of a scope's project, as `own` writes it: its own project is its own, whatever others have the same name.
 * @param isRecorded a message or an answer names it: there a plain name is that of the first root
 * @throws ErrInvalidMessage when several roots have this name, and nothing is recorded
 */
export function placeOf(
  dataDir: string,
  { branch, project }: Scope,
  own?: OwnRoot,
  isRecorded = false,
): Place {
  if (own?.project === project) return placeAt(own.key, project);
  const [, base = "", hex = ""] = QUALIFIED.exec(project) ?? [];
  const named = hex === "" ? [] : claimsOf(dataDir, base).filter(hasHex(base, hex));
  if (named.length === 1 && named[0] !== undefined) return placeAt(named[0].key, base);
  const all = claimsOf(dataDir, project);
  if (all.length < 2 || isRecorded) return placeAt(all[0]?.key ?? folderOf(project), project);
  throw new ErrInvalidMessage(
    `${project}:${branch} is the name of several scopes: ${all.map((one) => explain(dataDir, one)).join(", ")}`,
    { phase: "scope", hint: `write which one: ${refOf(all[0] as Claimed)}:${branch}` },
  );
}

function hasHex(base: string, hex: string): (one: Claimed) => boolean {
  return ({ key, claim }) =>
    key === `${folderOf(base)}~${hex}` || claim?.id.startsWith(hex) === true;
}

/** How a folder's project is written from everywhere, also if others have its name. */
function refOf({ key, claim }: Claimed): string {
  if (claim === undefined) return key;
  const { id, project } = claim;
  return project + (key.slice(folderOf(project).length) || `~${id.slice(0, KEY_HEX[0])}`);
}

/** Its name, and the path of its root. */
function explain(dataDir: string, one: Claimed): string {
  const { claim, key } = one;
  const path = claim?.path ?? join(dataDir, "scopes", key);
  return `${refOf(one)} (${path}${fs.existsSync(path) ? "" : ", which is not there now"})`;
}

export function placeAt(key: string, project: string): Place {
  const plain = folderOf(project);
  return { key, project, name: key === plain ? project : project + key.slice(plain.length) };
}

/**
 * How the scope of one folder writes that of another: its own project by its name, another root of the same name with the digits that
 * tell it apart.
 */
export function nameFrom(dataDir: string, here: Place, there: Place): string {
  if (here.key === there.key) return there.project;
  if (there.project !== here.project || there.name !== there.project) return there.name;
  return refOf({ key: there.key, claim: readClaim(dataDir, there.key) });
}
