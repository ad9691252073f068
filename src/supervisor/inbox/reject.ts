/** Rejects files of the inbox: a resend of the same task is deleted, any other file moves to `failed/` with its reason. */
import { join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import { errorName } from "../../core/names.ts";
import type { Alerts } from "../../journal/alerts.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { recordPaths } from "../../mailbox/find/locate.ts";
import {
  beginQuarantine,
  finishQuarantine,
  type Refusal,
} from "../../mailbox/settle/quarantine.ts";
import { dropIdentical, dropIdenticalBatch, type Resend } from "../../mailbox/submit/duplicates.ts";
import type { Environment } from "../environment/environment.ts";

export class Rejections {
  private readonly trays: Trays;
  private readonly telemetry: Telemetry;
  private readonly alerts: Alerts;
  private readonly filing = new Set<Promise<void>>();
  /** How many files were refused since the start; resends do not count. */
  count = 0;

  /** @param hasSettled whether a task with this id, ignoring case, has settled */
  constructor(
    env: Pick<Environment, "trays" | "telemetry" | "alerts">,
    private readonly hasSettled: (id: string) => boolean | "unsure",
  ) {
    this.trays = env.trays;
    this.telemetry = env.telemetry;
    this.alerts = env.alerts;
  }

  refuse(refusal: Refusal): void {
    const marker = beginQuarantine(this.trays, refusal);
    if (marker === undefined) return;
    this.count++;
    // If this fails, recovery does it again.
    const filing = finishQuarantine(this.trays, marker, refusal.isIdTaken)
      .then((filedAs) => this.note(refusal, filedAs))
      .catch((error: unknown) => this.alerts.report("refuse", messageOf(error)))
      .finally(() => this.filing.delete(filing));
    this.filing.add(filing);
  }

  /** Resolves when all refused files have been moved to `failed/`. */
  async idle(): Promise<void> {
    await Promise.all(this.filing);
  }

  /** Deletes `inbox/<name>`, whose id is in use, if it is the same task again. "unsure": it is not known yet; ask again. */
  dropResend(name: string, id: string): Exclude<Resend, "free"> {
    const resend = name.endsWith(".ndjson")
      ? dropIdenticalBatch(this.trays, id)
      : dropIdentical(this.trays, id);
    if (resend === "dropped") this.noteResend(name, id);
    // No task has exactly this id, so a task has it in another case, or had it at the last check.
    if (resend === "free") return this.hasSettled(id) === true ? "other" : "unsure";
    return resend;
  }

  /** Reports a resend, because the sender may have wanted the task to run again. */
  private noteResend(name: string, id: string): void {
    const [how, again] = this.standing(id);
    this.telemetry.event(
      "duplicate",
      { task_id: id, agent_id: "", attempt: 0, lease: "" },
      { error: `the same task again, which ${how}: nothing to do`, file: name },
    );
    this.alerts.alert(
      "duplicate",
      `${name} was dropped again unchanged, and its task ${how}: no new run starts${again}`,
    );
  }

  /** The state of the task with this id, and how to run it again. */
  private standing(id: string): readonly [string, string] {
    const [completed, failed] = recordPaths(this.trays, id);
    const or = "; to run it again";
    if (this.trays.storage.look(completed) !== undefined)
      return ["has completed", `${or}: \`mailchute retry ${id} --completed\`, or another id`];
    if (this.trays.storage.look(failed) !== undefined)
      return ["has failed", `${or}: \`mailchute retry ${id}\``];
    return ["waits or runs", ""];
  }

  private note(refusal: Refusal, filedAs: string): void {
    const details = {
      error: refusal.reason,
      code: refusal.code,
      file: join("failed", errorName(filedAs)),
    };
    this.telemetry.event(
      "quarantined",
      { task_id: refusal.id ?? filedAs, agent_id: "", attempt: 0, lease: "" },
      details,
    );
    this.alerts.notice(`refused ${String(refusal.name)}: ${refusal.reason}`);
  }
}
