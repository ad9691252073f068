/**
 * The folder of a scope, `<data>/scopes/<project>/<branch>/`. `<data>` is one directory for all repositories of a user, or a state
 * tree. Makes the folder and its subfolders. `scope.json` holds the unescaped names of the scope. Of two roots with the same project the
 * second one has `<project>~<8 hex>`: see `claims.ts`.
 */
import os from "node:os";
import { join, resolve } from "node:path";
import { ErrMailboxDir, messageOf } from "../../../core/errors.ts";
import { DAY_MS } from "../../../core/retention.ts";
import type { Settings } from "../../../core/settings.ts";
import { isText, oneOf, type Shape, shape } from "../../../core/shape.ts";
import { Documents } from "../../../host/document-store.ts";
import { createText } from "../../../host/documents.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { findHome } from "../../../host/user-state.ts";
import { randomToken } from "../../../mailbox/files/random.ts";
import { checkStateDir } from "../../../mailbox/files/trays.ts";
import { folderOf, formatAddress, parseAddress, type Scope, sameScope } from "../scope/scope.ts";
import { nameFrom, type OwnRoot, type Place, placeAt, placeOf } from "./claims.ts";

/** How many folders of `~/.local/share/mailchute` may be missing: all except the home directory. */
const DATA_DEPTH = 3;
/** How many folders in the data directory may be missing: `scopes`, `<project>`, `<branch>` and a folder in it. */
const SCOPE_DEPTH = 4;
const STAGED_CHARS = 16;
export const scopeDocument = shape({ v: oneOf(1), project: isText, branch: isText });

/** Where mail is kept, and the rules for it. */
export interface MailStore {
  /** The absolute path of the data directory. */
  dataDir: string;
  isDurable: boolean;
  /** How long read messages are kept (ms). Left out: for ever. */
  keepMs?: number;
  /** Other projects whose agents may write to the agents of a scope; "*": all projects. Left out: none. */
  accepts?: readonly string[];
  /** Name or address of the agent that is told how tasks of other agents end. No other agent can have this name. */
  orchestrator?: string;
  /** The root in whose name this process works. Left out: none, and projects are known by their names alone. */
  own?: OwnRoot;
}

/** Where the mail of a state tree is kept. */
export function storeOf(settings: Settings, stateDir: string, env: NodeJS.ProcessEnv): MailStore {
  const { accept_mail_from: accepts, data, durability, orchestrator, retention } = settings;
  return {
    dataDir: dataDirOf(data, stateDir, env),
    isDurable: durability === "power",
    keepMs: retention.journal_days * DAY_MS,
    accepts,
    orchestrator,
  };
}

/**
 * @param data the setting `data`; "" when it is not set
 * @param base the directory that a relative `data` is resolved against
 */
export function dataDirOf(data: string, base: string, env: NodeJS.ProcessEnv): string {
  if (data !== "") return resolve(base, data);
  const shared = env["XDG_DATA_HOME"] ?? "";
  const home = join(findHome(env) ?? os.homedir(), ".local", "share");
  // The standard (XDG) says that a relative path must be ignored.
  return join(shared.startsWith("/") ? shared : home, "mailchute");
}

/** Makes the data directory if it is missing. @throws ErrMailboxDir when it cannot be made or trusted */
export function makeDataDir(dataDir: string): void {
  try {
    makeDirs(dataDir, DATA_DEPTH);
  } catch (error) {
    throw new ErrMailboxDir(`cannot make the directory of the mail: ${messageOf(error)}`, {
      path: dataDir,
      phase: "open",
      cause: error,
      hint: "check its rights and the disk, or name another one with MAILCHUTE_DATA",
    });
  }
  checkStateDir(dataDir, []);
}

export class MailFolder {
  readonly scope: Scope;
  readonly isDurable: boolean;
  readonly keepMs: number;
  /** The root of the scope if this process works in its name; else undefined. */
  readonly own: OwnRoot | undefined;
  private readonly found: Place;
  private readonly branchKey: string;
  /** The address of the orchestrator; undefined when there is none. */
  readonly orchestrator: string | undefined;
  private readonly dataDir: string;
  private readonly accepts: readonly string[];
  private isChecked = false;

  /**
   * @param isRecorded the scope is that of a recorded address: see `placeOf`
   * @throws ErrInvalidMessage when several roots have the name of the scope's project
   */
  constructor(store: MailStore, named: Scope, isRecorded = false) {
    const { dataDir, isDurable, keepMs = Number.POSITIVE_INFINITY, orchestrator, own } = store;
    const place = placeOf(dataDir, named, own, isRecorded);
    const scope = { project: place.project, branch: named.branch };
    this.accepts = store.accepts ?? [];
    this.found = place;
    this.branchKey = folderOf(scope.branch);
    this.own = own?.key === place.key ? own : undefined;
    this.scope = scope;
    this.dataDir = dataDir;
    this.isDurable = isDurable;
    this.keepMs = keepMs;
    const address = parseAddress(orchestrator ?? "", scope);
    this.orchestrator = address && formatAddress(address);
  }

  /** Its place, which is not sure before `make`: another root of the name may claim it first. */
  get place(): Place {
    return this.own === undefined ? this.found : placeAt(this.own.key, this.own.project);
  }

  get dir(): string {
    return join(this.dataDir, "scopes", this.own?.key ?? this.found.key, this.branchKey);
  }

  /** The scope as it is written from everywhere: see `Place`. */
  get reference(): Scope {
    return { project: this.place.name, branch: this.scope.branch };
  }

  /** How messages in this folder write the scope of another folder. */
  nameOf(other: MailFolder): Scope {
    return { ...other.scope, project: nameFrom(this.dataDir, this.place, other.place) };
  }

  /** True if agents of this project may write to the agents of this scope. */
  accepted(project: string): boolean {
    return (
      project === this.scope.project || this.accepts.some((one) => one === project || one === "*")
    );
  }

  path(...names: string[]): string {
    return join(this.dir, ...names);
  }

  /** Makes a subfolder if it is missing. @throws ErrMailboxDir, a system error */
  makeDir(...names: string[]): void {
    this.make();
    makeDirs(this.path(...names), SCOPE_DEPTH);
  }

  /** Makes the folder if it is missing. @throws ErrMailboxDir, a system error */
  make(): void {
    if (this.isChecked) return;
    makeDataDir(this.dataDir);
    const { own } = this;
    if (own?.claim !== undefined) own.key = own.claim();
    delete own?.claim;
    makeDirs(this.dir, SCOPE_DEPTH);
    this.note();
    this.isChecked = true;
  }

  /** Stages a file and links it to its name in the folder. @returns false when that name is taken. @throws a system error */
  publish(text: string | Buffer, ...names: string[]): boolean {
    this.make();
    this.makeDir(...names.slice(0, -1));
    return createText(this.path(...names), text, this.staging());
  }

  /** Documents in one of its folders, or in the folder itself. Call `make` before you write. */
  documents<T extends object>(shape: Shape<T>, folder = ""): Documents<T> {
    return new Documents(this.dir, folder, shape, this.staging());
  }

  private staging(): { stagingDir: string; isDurable: boolean; stagedAs: string } {
    const stagedAs = randomToken(STAGED_CHARS);
    return { stagingDir: this.path(".tmp"), isDurable: this.isDurable, stagedAs };
  }

  /** Writes or checks `scope.json`. On some file systems `Main` and `main` are one folder: then the second scope is refused. */
  private note(): void {
    const documents = this.documents(scopeDocument);
    const known = documents.load("scope");
    if (known === undefined) {
      const { project, branch } = this.scope;
      documents.replace("scope", { v: 1, project, branch });
    } else if (!sameScope(known, this.scope))
      throw new ErrMailboxDir(`it is the folder of ${known.project}:${known.branch}`, {
        path: this.dir,
        phase: "open",
        hint: "this file system takes both names for one; rename the branch or the project",
      });
  }
}
