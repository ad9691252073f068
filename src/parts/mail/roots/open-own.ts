/** Opens the mail of the root in whose name a process works. The first one that writes there claims the folder. */
import { MailchuteError, systemCode } from "../../../core/errors.ts";
import type { Settings } from "../../../core/settings.ts";
import { folderOf } from "../scope/scope.ts";
import { claimsOf, KEY_HEX, type OwnRoot } from "../store/claims.ts";
import { MailFolder, type MailStore, storeOf } from "../store/mail-folder.ts";
import { claimedKey, claimKey } from "./claim.ts";
import { findRoot, knownIds, type Root, rootOfTree } from "./find-root.ts";

export interface OwnMail {
  store: MailStore;
  folder: MailFolder;
}

/** The mail of the scope in which a state tree is. @throws ErrMailboxDir, a system error */
export async function openOwn(
  settings: Settings,
  stateDir: string,
  env: NodeJS.ProcessEnv,
): Promise<OwnMail> {
  return await openOf(storeOf(settings, stateDir, env), await rootOfTree(stateDir));
}

/** The mail of the scope of a directory; outside of a repository that of the state tree. @throws like `openOwn` */
export async function openAt(store: MailStore, dir: string, stateDir: string): Promise<OwnMail> {
  return await openOf(store, await findRoot(dir, stateDir));
}

async function openOf(store: MailStore, root: Root): Promise<OwnMail> {
  const { dataDir } = store;
  const { dir, scope } = root;
  const { project } = scope;
  const known = claimedKey(dataDir, root);
  const isFree = known !== undefined || (await isPlainFree(store, root));
  const [id = ""] = knownIds(root);
  const plain = folderOf(project);
  const own: OwnRoot = {
    project,
    key: known ?? (isFree ? plain : `${plain}~${id.slice(0, KEY_HEX[0])}`),
    dir,
    claim: () => claimKey(dataDir, root, isFree),
  };
  const owned = { ...store, own };
  return { store: owned, folder: new MailFolder(owned, scope) };
}

/** True if the root may claim the folder of its name. Sorts what an earlier version left there. */
async function isPlainFree(store: MailStore, root: Root): Promise<boolean> {
  const [first] = claimsOf(store.dataDir, root.scope.project);
  if (first === undefined) return true;
  if (first.key !== folderOf(root.scope.project)) return true;
  if (first.claim !== undefined) return false;
  try {
    const { sortOlder } = await import("./older-records.ts");
    return await sortOlder(store, root, Date.now());
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    // Nothing can be written, as in the sandbox of a run: it reads what is there.
    return true;
  }
}

function isUnwritable(error: unknown): boolean {
  const code = error instanceof MailchuteError ? error.code : systemCode(error);
  return ["ErrMailboxDir", "EACCES", "EPERM", "EROFS"].includes(code);
}
