/** Ids that are made from other ids: each legal id has a legal one of each kind, and no two share one. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { questionId } from "../../src/agents/budget/limits.ts";
import { derivedId } from "../../src/core/derived-id.ts";
import { fixIdOf, landingIdOf, reviewIdOf } from "../../src/core/landing.ts";
import { ID_CHARS_MAX } from "../../src/core/limits.ts";
import { explainBadId, foldId, isId } from "../../src/core/names.ts";
import { callbackIdOf } from "../../src/parts/callbacks/callback-task.ts";
import { dispatchId } from "../../src/parts/cluster/protocol/dispatch.ts";
import { escalationId } from "../../src/parts/plan/rules/escalation.ts";
import { firingId } from "../../src/parts/schedules/firing.ts";
import { type SeededRandom, seededRandom } from "../support/seeded-random.ts";

const SUBMISSION = "pbdk3ug3261127";
const SEED = Number(process.env["MAILCHUTE_SEED"] ?? Date.now() % 1_000_000);
const IDS = 3000;

type Derive = (id: string, ending: string) => string;

/** Everything that makes an id from the id of a task or the name of a schedule. */
const MAKERS: Readonly<Record<string, (id: string) => string>> = {
  landing: landingIdOf,
  "first fix": (id) => fixIdOf(id, 1),
  "tenth fix": (id) => fixIdOf(id, 10),
  review: (id) => reviewIdOf(id, "0123456789abcdef"),
  callback: (id) =>
    callbackIdOf({ id, submission: SUBMISSION, attempt: 1, stage: "w", token: "x" }, "on_success"),
  schedule: (id) => firingId(id, 1_795_817_325_000),
  dispatch: (task) =>
    dispatchId({ tree: "box.abcd1234", task, submission: SUBMISSION, attempt: 1 }),
  question: (id) =>
    questionId({ key: `task.${id}.${SUBMISSION}` } as never, "usd", 1, (text) => hex(text)),
  escalation: escalationId,
};

const hex = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** The legal id nearest to edges: long ones, dots and dashes at the end, and ids that differ only there. */
function randomId(random: SeededRandom): string {
  const chars = ["a", "Z", "0", "9", ".", "_", "-"];
  const length = random.below(3) === 0 ? 70 + random.below(27) : 1 + random.below(6);
  for (;;) {
    let id = random.pick(["a", "Z", "0", "9"]);
    while (id.length < length) id += random.pick(chars);
    if (random.below(3) === 0) id = `${id.slice(0, -1) || "a"}.`;
    if (isId(id)) return id;
  }
}

function faultsOf(make: (id: string) => string): string[] {
  const random = seededRandom(SEED);
  const faults: string[] = [];
  const made = new Map<string, string>();
  for (let n = 0; n < IDS; n++) {
    const id = randomId(random);
    const result = make(id);
    const why = explainBadId(result);
    if (why !== undefined) faults.push(`${id} -> ${result}: ${why}`);
    const other = made.get(foldId(result));
    if (other !== undefined && other !== foldId(id)) faults.push(`${id} and ${other} -> ${result}`);
    made.set(foldId(result), foldId(id));
  }
  return faults.slice(0, 3);
}

it.each(Object.entries(MAKERS))(
  `makes a legal id of its own for every id: %s (seed ${SEED})`,
  (_, make) => {
    expect(faultsOf(make)).toEqual([]);
  },
);

const BROKEN: Readonly<Record<string, Derive>> = {
  "appends only": (id, ending) => id + ending,
  "cuts a long id": (id, ending) =>
    id.slice(0, ID_CHARS_MAX - ending.length).replace(/\.$/, "-") + ending,
  "drops the dot": (id, ending) => derivedId(id.replace(/\.$/, ""), ending),
};

it.each(Object.entries(BROKEN))("finds a way that is wrong: %s", (_, derive) => {
  expect(faultsOf((id) => derive(id, ".land"))).not.toEqual([]);
});

it("keeps the plain form wherever that is an id", () => {
  expect(derivedId("v1", ".land")).toBe("v1.land");
  expect(derivedId("v1.", ".land")).toMatch(/^v1\.-[0-9a-f]{16}\.land$/);
});
