/**
 * Claims the folder of a root: `scopes/<project>/root.json`, for a second root of that name `scopes/<project>~<8 hex>/root.json`. The
 * file is linked, so two roots never have one folder, and it is never removed: a root that is away keeps its folder.
 */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../../core/errors.ts";
import { replaceDocument } from "../../../host/documents.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { writeAnew } from "../../../host/regular-file.ts";
import { randomToken } from "../../../mailbox/files/random.ts";
import { folderOf } from "../scope/scope.ts";
import { CLAIM, type Claim, claimsOf, KEY_HEX, readClaim } from "../store/claims.ts";
import { makeDataDir } from "../store/mail-folder.ts";
import { knownIds, makeId, type Root } from "./find-root.ts";

/** `scopes`, `<key>` and `.tmp`. */
const DEPTH = 3;
const STAGED_CHARS = 16;

/** The folder that the root has claimed; undefined when it has none. Reads only. */
export function claimedKey(dataDir: string, root: Root): string | undefined {
  const claims = claimsOf(dataDir, root.scope.project);
  for (const id of knownIds(root)) {
    const found = claims.find(({ claim }) => claim?.id === id);
    if (found !== undefined) return found.key;
  }
  return undefined;
}

/**
 * Makes the id of the root, and claims a folder if it has none.
 * @param canBePlain false: only a folder with digits of the id
 * @returns the name of the folder. @throws ErrMailboxDir, a system error
 */
export function claimKey(dataDir: string, root: Root, canBePlain: boolean): string {
  makeDataDir(dataDir);
  const id = makeId(root);
  const { path, scope } = root;
  const claim: Claim = { v: 1, id, project: scope.project, path };
  const known = claimedKey(dataDir, root);
  if (known !== undefined) {
    renew(dataDir, known, claim);
    return known;
  }
  const plain = folderOf(scope.project);
  const more = KEY_HEX.map((chars) => `${plain}~${id.slice(0, chars)}`);
  for (const key of canBePlain ? [plain, ...more] : more) {
    publish(dataDir, key, claim);
    if (readClaim(dataDir, key)?.id === id) return key;
  }
  throw new Error(`two roots have the id ${id}`);
}

/** Notes the present id and path of a root that has the folder. */
function renew(dataDir: string, key: string, claim: Claim): void {
  const known = readClaim(dataDir, key);
  if (known?.id === claim.id && known.path === claim.path) return;
  replaceDocument(join(dataDir, "scopes", key, CLAIM), claim, { isDurable: true });
}

/** Does nothing when the folder is claimed. @throws a system error */
function publish(dataDir: string, key: string, claim: Claim): void {
  const dir = join(dataDir, "scopes", key);
  const staged = join(dir, ".tmp", randomToken(STAGED_CHARS));
  makeDirs(join(dir, ".tmp"), DEPTH);
  try {
    writeAnew(staged, `${JSON.stringify(claim, null, 2)}\n`, { isDurable: true });
    fs.linkSync(staged, join(dir, CLAIM));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  } finally {
    fs.rmSync(staged, { force: true });
  }
}
