/** Reads the log of a run at another machine, part by part, through the bridge there. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { Context } from "../../../cli/shell/command-spec.ts";
import type { RemoteLog, RunElsewhere } from "../../../cli/shell/remote-log.ts";
import { ErrIo, messageOf } from "../../../core/errors.ts";
import type { NatsBroker } from "../nats/broker.ts";
import type { Dispatch } from "../protocol/dispatch.ts";
import type { LogFile, LogPart } from "../protocol/messages.ts";
import { treeName } from "../tree/tree-name.ts";
import { connectTo, placeOf } from "./place.ts";

/** Of a longer log only the end is fetched (bytes). */
const FETCHED_BYTES_MAX = 64 * 1024 * 1024;

/** @throws ErrIo when no server answers */
export async function openRemoteLog(
  ctx: Context,
  { id, machine, submission, attempt }: RunElsewhere,
  isStderr: boolean,
): Promise<RemoteLog> {
  const place = await placeOf(ctx);
  const tree = treeName(place.tree.dir, place.name);
  const dispatch = { tree, task: id, submission, attempt };
  const broker = await connectTo(place, tree, () => {}).catch((error: unknown) => {
    throw silent(machine, place.settings.cluster.servers.join(", "), error);
  });
  return new LogCopy(broker, machine, dispatch, isStderr, (text) => ctx.out.note(text));
}

function silent(machine: string, path: string, error: unknown): ErrIo {
  return new ErrIo(`the logs are at ${machine}, which does not answer: ${messageOf(error)}`, {
    path,
    phase: "logs",
    hint: "its bridge must run, and the servers must be reached: mailchute cluster ls",
  });
}

class LogCopy implements RemoteLog {
  readonly dir: string;
  private readonly broker: NatsBroker;
  private readonly machine: string;
  private readonly dispatch: Dispatch;
  private readonly isStderr: boolean;
  private readonly note: (text: string) => void;
  private readonly root = fs.mkdtempSync(join(os.tmpdir(), "mailchute-logs-"));
  /** How much of the log was fetched (bytes); undefined: nothing yet. */
  private at: number | undefined;
  private hasSession = false;

  constructor(
    broker: NatsBroker,
    machine: string,
    dispatch: Dispatch,
    isStderr: boolean,
    note: (text: string) => void,
  ) {
    this.broker = broker;
    this.machine = machine;
    this.dispatch = dispatch;
    this.isStderr = isStderr;
    this.note = note;
    const { task, submission, attempt } = dispatch;
    this.dir = join(this.root, `${task}@${submission}.${attempt}.0`);
    fs.mkdirSync(this.dir);
    process.once("SIGINT", this.leave);
  }

  async pull(): Promise<"is on" | "has ended" | "gone"> {
    // It says which kind of agent runs there, and is there from the beginning of its run.
    if (!this.hasSession && !this.isStderr) {
      const session = await this.part("session.json", 0);
      this.hasSession = session.size > 0;
      if (this.hasSession) this.append("session.json", session);
    }
    const file = this.isStderr ? "stderr.log" : this.hasSession ? "events.jsonl" : "stdout.log";
    for (;;) {
      const part = await this.part(file, this.at ?? -FETCHED_BYTES_MAX);
      if (!part.is_found) return "gone";
      const bytes = this.append(file, part);
      if (this.at === undefined && part.from > 0)
        this.note(`it has ${part.size} bytes; this shows the end from byte ${part.from}`);
      this.at = part.from + bytes;
      if (bytes === 0) return part.has_ended ? "has ended" : "is on";
    }
  }

  async close(): Promise<void> {
    process.removeListener("SIGINT", this.leave);
    fs.rmSync(this.root, { recursive: true, force: true });
    await this.broker.close();
  }

  /** @returns how many bytes came */
  private append(file: LogFile, { data }: LogPart): number {
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > 0) fs.appendFileSync(join(this.dir, file), bytes, { mode: 0o600 });
    return bytes.length;
  }

  private async part(file: LogFile, from: number): Promise<LogPart> {
    const { dispatch, machine } = this;
    const request = randomBytes(8).toString("hex");
    try {
      return await this.broker.askLog(machine, { request, dispatch, file, from });
    } catch (error) {
      throw silent(machine, this.dispatch.tree, error);
    }
  }

  private readonly leave = (): void => {
    fs.rmSync(this.root, { recursive: true, force: true });
    process.kill(process.pid, "SIGINT");
  };
}
