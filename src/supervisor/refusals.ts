/** Refusing files of the inbox: a resend of the very same task goes, anything else moves to `failed/` with its reason. */
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { errorName } from "../core/names.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { dropIdentical, dropIdenticalBatch } from "../mailbox/duplicates.ts";
import { beginQuarantine, finishQuarantine, type Refusal } from "../mailbox/quarantine.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { Alerts } from "./alerts.ts";

export class Refusals {
  private readonly trays: Trays;
  private readonly telemetry: Telemetry;
  private readonly alerts: Alerts;
  private readonly filing = new Set<Promise<void>>();
  /** Files refused since the start; resends are none. */
  count = 0;

  constructor(trays: Trays, telemetry: Telemetry, alerts: Alerts) {
    this.trays = trays;
    this.telemetry = telemetry;
    this.alerts = alerts;
  }

  refuse(refusal: Refusal): void {
    if (this.dropResend(refusal)) return;
    const marker = beginQuarantine(this.trays, refusal);
    if (marker === undefined) return;
    this.count++;
    // What fails here, recovery does again.
    const filing = finishQuarantine(this.trays, marker, refusal.isIdTaken)
      .then((filedAs) => this.note(refusal, filedAs))
      .catch((error: unknown) => this.alerts.report("refuse", messageOf(error)))
      .finally(() => this.filing.delete(filing));
    this.filing.add(filing);
  }

  /** Resolves when what was refused is filed. */
  async idle(): Promise<void> {
    await Promise.all(this.filing);
  }

  private dropResend({ code, id, name }: Refusal): boolean {
    if (code !== "ErrTaskExists" || id === undefined || typeof name !== "string") return false;
    const isDropped = name.endsWith(".ndjson")
      ? dropIdenticalBatch(this.trays, name, id)
      : dropIdentical(this.trays, name, id);
    if (isDropped)
      this.telemetry.event(
        "duplicate",
        { task_id: id, agent_id: "", attempt: 0, lease: "" },
        { error: "the same bytes again: nothing to do" },
      );
    return isDropped;
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
