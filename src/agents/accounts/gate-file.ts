/**
 * The gate of an account as a file in the user's state directory, shared by all state trees of that user:
 * `mailchute/accounts/<account>.json`. It survives the supervisor, the workers and the machine's restart. To open the gate, delete
 * the file.
 */
import { join } from "node:path";
import { isObject } from "../../core/json-object.ts";
import { readDocument, replaceDocument } from "../../host/documents.ts";
import { lockFile } from "../../host/file-lock.ts";
import { judgeOwner } from "../../host/identity.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { USER_STATE_DEPTH, userStateDir } from "../../host/user-state.ts";
import {
  closeGate,
  type Entry,
  enterGate,
  type GateDocument,
  leaveGate,
  noteWindow,
  openGate,
  passGate,
  type QuotaWindow,
  type Refusal,
} from "./gate-rules.ts";

/** The directory of this user's accounts. @param env the environment of the process */
export function accountsDir(env: NodeJS.ProcessEnv = process.env): string {
  return join(userStateDir(env), "accounts");
}

export class GateFile {
  readonly path: string;

  /** @param reservePct this much of each window is left to the owner of the account */
  constructor(
    private readonly dir: string,
    private readonly account: string,
    private readonly reservePct = 0,
  ) {
    this.path = join(dir, `${account}.json`);
  }

  /** Reads the gate without a lock. A missing or broken file means that the gate is open. */
  read(): GateDocument {
    const open = openGate(this.account);
    const found = { ...open, ...readDocument<object>(this.path) };
    return isGate(found) ? found : open;
  }

  /** Whether a run could start now. Changes nothing. */
  look(nowMs: number): Entry {
    return enterGate(this.read(), "", nowMs, isAlive, this.reservePct);
  }

  /** Whether a run may start. @param owner the owner of its lease @param nowMs epoch ms */
  async enter(owner: string, nowMs: number): Promise<Entry> {
    const gate = this.read();
    const first = enterGate(gate, owner, nowMs, isAlive, this.reservePct);
    // Most runs find the gate open, or closed for hours. Then no lock is needed.
    if (gate.status === "open" || !first.may) return first;
    let entry: Entry = first;
    await this.change((now) => {
      entry = enterGate(now, owner, nowMs, isAlive, this.reservePct);
      return entry.gate;
    });
    return entry;
  }

  async pass(owner: string): Promise<void> {
    if (this.read().probe?.owner === owner) await this.change((gate) => passGate(gate, owner));
  }

  async leave(owner: string): Promise<void> {
    if (this.read().probe?.owner === owner) await this.change((gate) => leaveGate(gate, owner));
  }

  /** Closes the gate until that time, because the service refused a run. @returns the new state of the gate */
  async close(refusal: Refusal, nowMs: number): Promise<GateDocument> {
    return await this.change((gate) => closeGate(gate, refusal, nowMs, Math.random()));
  }

  /** Notes how full a window of the quota is, as a run was told. */
  async noteWindow(name: string, window: QuotaWindow, nowMs: number): Promise<void> {
    await this.change((gate) => noteWindow(gate, name, window, nowMs));
  }

  private async change(change: (gate: GateDocument) => GateDocument): Promise<GateDocument> {
    makeDirs(this.dir, USER_STATE_DEPTH);
    const release = await lockFile(`${this.path}.lock`);
    try {
      const before = this.read();
      const after = change(before);
      if (after !== before) replaceDocument(this.path, after);
      return after;
    } finally {
      await release?.();
    }
  }
}

const STATUSES: ReadonlySet<unknown> = new Set(["open", "closed", "opening"]);
const NUMBERS = ["until_ms", "closed_at_ms", "closings", "answers"] as const;

function isGate(found: GateDocument): boolean {
  if (found.v !== 1 || !STATUSES.has(found.status)) return false;
  const { probe, windows = {} } = found;
  return (
    NUMBERS.every((name) => Number.isFinite(found[name])) &&
    typeof found.reason === "string" &&
    isObject(windows) &&
    Object.values(windows).every(isWindow) &&
    (probe === null || (typeof probe?.owner === "string" && Number.isFinite(probe.since_ms)))
  );
}

function isWindow(window: unknown): boolean {
  return isObject(window) && ["used_pct", "resets_at_ms"].every((n) => Number.isFinite(window[n]));
}

/** An owner that cannot be judged, such as one in another container, counts as alive until the time of its probe is over. */
function isAlive(owner: string): boolean {
  return judgeOwner(owner) !== "dead";
}
