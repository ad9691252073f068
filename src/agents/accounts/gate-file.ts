/**
 * The gate of an account as a file in the user's state directory, shared by all state trees of that user:
 * `mailchute/accounts/<account>.json`. It survives the supervisor, the workers and the machine's restart. To open the gate, delete
 * the file.
 */
import { join } from "node:path";
import { Documents } from "../../host/document-store.ts";
import { judgeOwner } from "../../host/identity.ts";
import { USER_STATE_DEPTH, userStateDir } from "../../host/user-state.ts";
import {
  closeGate,
  type Entry,
  enterGate,
  type GateDocument,
  gate,
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
  private readonly all: Documents<GateDocument>;

  /** @param reservePct this much of each window is left to the owner of the account */
  constructor(
    dir: string,
    private readonly account: string,
    private readonly reservePct = 0,
  ) {
    this.all = new Documents(dir, "", gate, { depth: USER_STATE_DEPTH });
  }

  get path(): string {
    return this.all.path(this.account);
  }

  /** Reads the gate without a lock. A missing or broken file means that the gate is open. */
  read(): GateDocument {
    return this.all.read(this.account) ?? openGate(this.account);
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
    const open = openGate(this.account);
    const after = await this.all.update(this.account, (before = open) => {
      const after = change(before);
      return after === open ? undefined : after;
    });
    return after ?? open;
  }
}

/** An owner that cannot be judged, such as one in another container, counts as alive until the time of its probe is over. */
function isAlive(owner: string): boolean {
  return judgeOwner(owner) !== "dead";
}
