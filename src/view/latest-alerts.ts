/**
 * The latest alerts from the end of `alerts.jsonl`, except those that other lists of the overview show. Reads again only when the
 * file has changed.
 */
import { parseObject } from "../core/json-object.ts";
import type { StateTree } from "../core/state-tree.ts";
import { readEnd } from "../host/regular-file.ts";
import { Kept, stampOf } from "./kept.ts";
import { textOf } from "./scan.ts";

const END_BYTES = 128 * 1024;
const ALERTS_MAX = 50;
/** Failures, questions and tasks without an agent have lists of their own. */
const TOLD_ELSEWHERE: ReadonlySet<unknown> = new Set(["task_failed", "question", "no_agent"]);

export interface AlertView {
  /** Such as `trouble`. */
  kind: string;
  message: string;
  /** Epoch ms. */
  at_ms: number;
}

export class LatestAlerts {
  private readonly path: string;
  private readonly kept = new Kept<AlertView[]>();

  constructor({ alerts }: Pick<StateTree, "alerts">) {
    this.path = alerts;
  }

  /** The latest first. @param sinceMs epoch ms: older ones are left out */
  look(sinceMs: number): AlertView[] {
    const alerts = this.kept.get(stampOf(this.path), () => readAlerts(this.path));
    return alerts.filter((alert) => alert.at_ms >= sinceMs);
  }
}

function readAlerts(path: string): AlertView[] {
  const alerts = readEnd(path, END_BYTES)
    .split("\n")
    .flatMap((line): AlertView[] => {
      const record = parseObject(line);
      if (record === undefined || typeof record["t"] !== "number") return [];
      const { alert, message, t } = record;
      if (TOLD_ELSEWHERE.has(alert)) return [];
      return [{ kind: textOf(alert, "alert"), message: textOf(message), at_ms: t as number }];
    });
  return alerts.slice(-ALERTS_MAX).reverse();
}
