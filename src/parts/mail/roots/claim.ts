/**
 * Claims the folder of a root: `scopes/<project>/root.json`, for a second root of that name `scopes/<project>~<8 hex>/root.json`. The
 * file is linked, so two roots never have one folder, and it is never removed: a root that is away keeps its folder.
 */
import { folderOf } from "../scope/scope.ts";
import { CLAIM, type Claim, claimsIn, claimsOf, KEY_HEX, readClaim } from "../store/claims.ts";
import { makeDataDir } from "../store/mail-folder.ts";
import { knownIds, makeId, type Root } from "./find-root.ts";

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
    claimsIn(dataDir, key).create(CLAIM, claim);
    if (readClaim(dataDir, key)?.id === id) return key;
  }
  throw new Error(`two roots have the id ${id}`);
}

/** Notes the present id and path of a root that has the folder. */
function renew(dataDir: string, key: string, claim: Claim): void {
  const known = readClaim(dataDir, key);
  if (known?.id === claim.id && known.path === claim.path) return;
  claimsIn(dataDir, key).replace(CLAIM, claim);
}
