/** Checks the documents of a state tree when they are read, because people and other programs can change them, too. */
import {
  type ControlDocument,
  INITIAL_CONTROL,
  type SupervisorDocument,
  type WorkerDocument,
} from "./documents.ts";
import { isObject } from "./json-object.ts";
import { WORKERS_MAX } from "./limits.ts";
import { parseRate } from "./rate.ts";

type Saved = Record<string, unknown> | undefined;
type Check = (value: unknown) => boolean;

/** Reads `control.json`. A member without a valid value gets the value of a new tree. */
export function controlOf(saved: Saved): ControlDocument {
  const control: Record<string, unknown> = { ...INITIAL_CONTROL };
  for (const [key, isGood] of Object.entries(CONTROL_MEMBERS))
    if (isGood(saved?.[key])) control[key] = saved?.[key];
  return control as unknown as ControlDocument;
}

/** Reads `supervisor.json`. Undefined when it names no process; then no supervisor is known. An invalid report is left out. */
export function supervisorOf(saved: Saved): SupervisorDocument | undefined {
  if (!isResident(saved)) return undefined;
  const { nonce = "", status = "", waiting = {} } = saved;
  if (!isText(nonce) || !isText(status) || !isObject(waiting)) return undefined;
  const document = { ...saved };
  for (const [key, isGood] of Object.entries(REPORTS))
    if (!isGood(saved[key])) delete document[key];
  return document as unknown as SupervisorDocument;
}

/** Reads `workers/<id>.json`. Undefined when it names no worker process. */
export function workerOf(saved: Saved): WorkerDocument | undefined {
  if (!isResident(saved)) return undefined;
  if (typeof saved["id"] !== "string" || !isCount(saved["slots"])) return undefined;
  return saved as unknown as WorkerDocument;
}

function isResident(saved: Saved): saved is Record<string, unknown> {
  const pid = saved?.["pid"];
  return (
    Number.isInteger(pid) &&
    (pid as number) > 0 &&
    typeof saved?.["place"] === "string" &&
    typeof saved["start_ticks"] === "number"
  );
}

const isBoolean: Check = (value) => typeof value === "boolean";
const isText: Check = (value) => typeof value === "string";
const isTexts: Check = (value) => Array.isArray(value) && value.every(isText);
const isCount: Check = (value) => Number.isInteger(value) && (value as number) >= 0;
const isWorkers: Check = (value) => isCount(value) && (value as number) <= WORKERS_MAX;
const isLastWord: Check = (value) =>
  isObject(value) &&
  Number.isFinite(value["arrivedMs"]) &&
  isText(value["name"]) &&
  isText(value["id"]);
const isLimitChange: Check = (value) =>
  isObject(value) &&
  (value["slots"] === undefined || isWorkers(value["slots"])) &&
  (value["paused"] === undefined || isBoolean(value["paused"])) &&
  (value["rate"] === undefined || isRate(value["rate"])) &&
  (value["burst"] === undefined || (isCount(value["burst"]) && value["burst"] !== 0));
const isRate: Check = (value) => isText(value) && parseRate(value as string) !== undefined;
const orNull =
  (isGood: Check): Check =>
  (value) =>
    value === null || isGood(value);

const isListOf =
  (...members: string[]): Check =>
  (value) =>
    Array.isArray(value) &&
    value.every((one) => isObject(one) && members.every((member) => isText(one[member])));
const isHolds: Check = (value) =>
  isObject(value) && isListOf("id")(value["asking"]) && isListOf("id", "why")(value["held"]);

const REPORTS: Record<string, Check> = {
  plan_holds: orNull(isHolds),
  roadmap: orNull((value) => isObject(value) && Object.values(value).every(isCount)),
  troubles: isListOf("what", "do"),
  field_warnings: isListOf("what", "do"),
  handlers: isTexts,
};

const CONTROL_MEMBERS: Record<keyof ControlDocument, Check> = {
  paused: isBoolean,
  paused_at: orNull(isText),
  paused_by: orNull(isText),
  launched: isTexts,
  replan_paused: isBoolean,
  max_workers: orNull(isWorkers),
  max_workers_by: orNull(isText),
  max_workers_over: orNull(isWorkers),
  slots: (value) => isObject(value) && Object.values(value).every(isCount),
  applied: isTexts,
  last_words: (value) => isObject(value) && Object.values(value).every(isLastWord),
  limit_changes: (value) => isObject(value) && Object.values(value).every(isLimitChange),
};
