/**
 * The starts that a rate still allows, shared by all processes of a state tree: one file in a folder, `limits/<name>/`. Its name is
 * the whole state. So one rename charges a start, and of several processes one wins. The start is charged before it happens: if the
 * process dies in between, the start is lost, and no crash adds one.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrIo, systemCode } from "../core/errors.ts";
import { afterStart, allows, emptyUs, type Rate, waitMsOf } from "../core/rate.ts";
import { syncDir } from "./documents.ts";
import { makeDirs } from "./make-dirs.ts";
import { processes } from "./processes/processes.ts";

/** The clock of the bucket (µs since the machine was started). All processes share it, and a change of the date does not move it. */
export interface BucketClock {
  nowUs(): number;
  wallMs(): number;
  /** Identifies the current boot of the machine. */
  boot: string;
}

/** We give up for now after another process has won this many times. */
const TRIES_MAX = 100;
/** Then we try again after this time (ms). */
const CONTENDED_MS = 20;
const NAME = /^([0-9a-z]{1,32})\.(\d{1,16})\.(\d{1,16})$/;

let ownBoot: string | undefined;

/** @throws the system's error when it cannot be read now */
export function systemBucketClock(): BucketClock {
  ownBoot ??=
    processes()
      .bootId()
      .replaceAll(/[^0-9a-f]/g, "")
      .slice(0, 12) || "0";
  return {
    boot: ownBoot,
    nowUs: () => Number(process.hrtime.bigint() / 1000n),
    wallMs: () => Date.now(),
  };
}

interface State {
  file: string;
  boot: string;
  fullUs: number;
  /** The same by the date (epoch ms). */
  fullWallMs: number;
}

export interface Charge {
  /** 0: it may start. */
  waitMs: number;
  /** When it was charged, on the clock of the bucket (µs). */
  atUs: number;
}

export class RateBucket {
  private readonly dir: string;

  /** @param parent the folder of all limits @param isDurable true: the state of a long rate survives a power cut */
  constructor(
    private readonly parent: string,
    name: string,
    private readonly clock: BucketClock,
    private readonly isDurable: boolean,
  ) {
    this.dir = join(parent, name);
  }

  /** When the bucket is full again (µs). @throws a system error when the folder cannot be used */
  read(rate: Rate): number {
    const state = this.list();
    const nowUs = this.clock.nowUs();
    if (state === undefined) return newUs(rate, nowUs);
    const fullUs = this.fullOf(state, rate, nowUs);
    this.rebase(state, fullUs, nowUs);
    return fullUs;
  }

  /** How long no start is allowed; 0: one is allowed now. @throws a system error when the folder cannot be used */
  waitMs(rate: Rate): number {
    const fullUs = this.read(rate);
    const nowUs = this.clock.nowUs();
    return allows(rate, fullUs, nowUs) ? 0 : waitMsOf(rate, fullUs, nowUs);
  }

  /**
   * Takes back the charge of a start that does not happen. If other processes win each time, the start stays charged; none is ever added.
   * @throws a system error when the folder cannot be used
   */
  giveBack(rate: Rate): void {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const state = this.list();
      const nowUs = this.clock.nowUs();
      // A charge from another boot does not count here.
      if (state === undefined || state.boot !== this.clock.boot) return;
      if (this.replace(state, Math.max(0, state.fullUs - rate.intervalUs), nowUs)) return;
    }
  }

  /** Charges a start, if one is allowed now. @throws a system error when the folder cannot be used */
  take(rate: Rate): Charge {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const state = this.list() ?? this.make(rate);
      if (state === undefined) continue;
      const nowUs = this.clock.nowUs();
      const fullUs = this.fullOf(state, rate, nowUs);
      if (!allows(rate, fullUs, nowUs)) {
        if (!this.rebase(state, fullUs, nowUs)) continue;
        return { waitMs: waitMsOf(rate, fullUs, nowUs), atUs: nowUs };
      }
      if (!this.replace(state, afterStart(rate, fullUs, nowUs), nowUs)) continue;
      if (this.isDurable && rate.isLong) syncDir(this.dir);
      return { waitMs: 0, atUs: nowUs };
    }
    if (this.list() === undefined)
      throw new ErrIo(`${this.dir} has other files than ours`, {
        path: this.dir,
        hint: "remove that folder: the rate begins anew",
      });
    return { waitMs: CONTENDED_MS, atUs: this.clock.nowUs() };
  }

  /** Times of another boot mean nothing here: a long rate uses the date instead. The result is never later than for an empty bucket. */
  private fullOf({ boot, fullUs, fullWallMs }: State, rate: Rate, nowUs: number): number {
    const mostUs = emptyUs(rate, nowUs);
    if (boot === this.clock.boot) return Math.min(fullUs, mostUs);
    if (!rate.isLong) return mostUs;
    return Math.min(nowUs + Math.max(0, fullWallMs - this.clock.wallMs()) * 1000, mostUs);
  }

  /**
   * Writes down a new time, which differs from that in the file after a restart of the machine or a change of the rate. So the new wait
   * begins only once. False when another process was faster.
   */
  private rebase(state: State, fullUs: number, nowUs: number): boolean {
    const isSame = state.boot === this.clock.boot && state.fullUs === fullUs;
    return isSame || this.replace(state, fullUs, nowUs);
  }

  private list(): State | undefined {
    let files: string[];
    try {
      files = fs.readdirSync(this.dir);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return undefined;
      throw error;
    }
    let last: State | undefined;
    for (const file of files) {
      const [, boot, fullUs, fullWallMs] = NAME.exec(file) ?? [];
      if (boot === undefined) continue;
      const state = { file, boot, fullUs: Number(fullUs), fullWallMs: Number(fullWallMs) };
      if (last === undefined || state.fullUs > last.fullUs) last = state;
    }
    return last;
  }

  /** Makes the folder with its file in one step, so that there are never two. A new bucket allows one start. */
  private make(rate: Rate): undefined {
    const nowUs = this.clock.nowUs();
    const staging = join(this.parent, ".tmp");
    makeDirs(staging, 2);
    const staged = fs.mkdtempSync(join(staging, "bucket-"));
    try {
      fs.writeFileSync(join(staged, this.nameOf(newUs(rate, nowUs), nowUs)), "");
      // The rename replaces only an empty folder.
      fs.renameSync(staged, this.dir);
    } catch (error) {
      fs.rmSync(staged, { recursive: true, force: true });
      const code = systemCode(error);
      if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    }
  }

  /** False when another process was faster. */
  private replace({ file }: State, fullUs: number, nowUs: number): boolean {
    try {
      fs.renameSync(join(this.dir, file), join(this.dir, this.nameOf(fullUs, nowUs)));
      return true;
    } catch (error) {
      if (systemCode(error) === "ENOENT") return false;
      throw error;
    }
  }

  private nameOf(fullUs: number, nowUs: number): string {
    const wallMs = Math.max(0, Math.ceil(this.clock.wallMs() + (fullUs - nowUs) / 1000));
    return `${this.clock.boot}.${fullUs}.${wallMs}`;
  }
}

function newUs({ burst, intervalUs }: Rate, nowUs: number): number {
  return nowUs + (burst - 1) * intervalUs;
}
