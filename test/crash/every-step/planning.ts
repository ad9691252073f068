/** Operations on the plan, walked like all others: see operations.ts. StartLimits nodes, carrying over what they settled as, people's edits. */
import fs from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/host/system-clock.ts";
import { KvStore } from "../../../src/kv/store.ts";
import { withRoadmapLock } from "../../../src/parts/plan/change-plan.ts";
import { applyEdits, type RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import { RoadmapFile } from "../../../src/parts/plan/file/roadmap-file.ts";
import {
  findNode,
  parseRoadmap,
  type RoadmapDocument,
} from "../../../src/parts/plan/read/document.ts";
import { resetPlan } from "../../../src/parts/plan/reset-plan.ts";
import { escalate } from "../../../src/parts/plan/rules/escalation.ts";
import { taskOfNode } from "../../../src/parts/plan/rules/node-task.ts";
import { cleanDocuments } from "../../../src/supervisor/maintenance/clean-documents.ts";
import { checkFinishedRoadmap } from "../../support/check-roadmap.ts";
import { makeTree, type Operation, runTree } from "./operations.ts";
import {
  acknowledge,
  type Book,
  type Durability,
  type Place,
  type Promised,
  readLines,
} from "./place.ts";

interface Planning {
  name: string;
  durability?: Durability;
  window?: { from: string; to: string };
  /** What a person wrote. */
  plan(place: Place): string;
  /** What is added to it, at once with the statuses of `together`. */
  edits?(place: Place, doc: RoadmapDocument): readonly RoadmapEdit[];
  /** The added nodes are there exactly when these have left, or reached, their status. */
  together?: readonly { id: string; status: string; isReached: boolean }[];
  /** Nodes that end otherwise than done by a run of their own. */
  ends?: Record<string, string>;
  /** How often each was escalated. */
  escalated?: Record<string, number>;
  act?: Operation["act"];
  /** Nodes that have one of these statuses in the end may have it without a run. */
  mayStay?: readonly string[];
  /** What is true at any instant. */
  check?(place: Place): string[];
}

const STATUS = /status: \w+/g;
const withoutStatus = (text: string): string => text.replaceAll(STATUS, "status:");

function wholeText(spec: Planning, place: Place): string {
  const doc = parseRoadmap(spec.plan(place));
  return spec.edits === undefined ? doc.text : applyEdits(doc, spec.edits(place, doc)).text;
}

/** The plan on disk. In the middle of a replacement the old one is aside, with the new one beside it. */
function textOnDisk(place: Place): string | undefined {
  try {
    return fs.readFileSync(place.tree.roadmap, "utf8");
  } catch {
    const tmp = join(place.state, ".tmp");
    const names = listOf(tmp);
    const old = names.find(
      (name) => name.endsWith(".old") && names.includes(name.replace(/old$/, "next")),
    );
    return old === undefined ? undefined : fs.readFileSync(join(tmp, old), "utf8");
  }
}

function listOf(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch {
    return [];
  }
}

/** Its text is that of before or that of after, but for statuses, and what belongs together came together. */
function checkPlanNow(spec: Planning, place: Place): string[] {
  const text = textOnDisk(place);
  if (text === undefined) return ["roadmap.yaml is lost"];
  const before = withoutStatus(spec.plan(place));
  const after = withoutStatus(wholeText(spec, place));
  const now = withoutStatus(text);
  if (now !== before && now !== after) return [`the plan is neither the old nor the new: ${text}`];
  if (before === after) return [];
  const doc = parseRoadmap(text);
  return (spec.together ?? []).flatMap(({ id, status, isReached }) => {
    const isHere = (findNode(doc, id)?.status === status) === isReached;
    return isHere === (now === after)
      ? []
      : [
          `${id} is ${findNode(doc, id)?.status}, and the added nodes are ${isHere ? "missing" : "there"}`,
        ];
  });
}

function checkPlanEnd(spec: Planning, place: Place, isExact: boolean): string[] {
  const { tree } = place;
  let text: string;
  try {
    text = fs.readFileSync(tree.roadmap, "utf8");
  } catch {
    return ["there is no roadmap.yaml"];
  }
  const doc = parseRoadmap(text);
  const faults = doc.problems.map((problem) => `the plan is broken: ${problem.message}`);
  if (withoutStatus(text) !== withoutStatus(wholeText(spec, place)))
    faults.push(`not the plan that was expected: ${text}`);
  const ends = spec.ends ?? {};
  for (const [id, status] of Object.entries(ends)) {
    const is = findNode(doc, id)?.status;
    if (is !== status) faults.push(`${id} is ${is}, not ${status}`);
  }
  const odd = doc.nodes
    .filter(({ id, status }) => id in ends || spec.mayStay?.includes(status) === true)
    .map(({ id }) => id);
  const isOdd = (fault: string): boolean => odd.some((id) => fault.startsWith(`${id}:`));
  const isOfJournals = (fault: string): boolean =>
    /event|lease|released|started|selected/.test(fault);
  faults.push(
    ...checkFinishedRoadmap(place.state).filter(
      (fault) => !isOdd(fault) && (isExact || !isOfJournals(fault)),
    ),
  );
  if (isExact)
    for (const [id, times] of Object.entries(spec.escalated ?? {})) {
      const told = countEvents(place, id, "escalated");
      if (told !== times) faults.push(`${id} was said to be escalated ${told} times`);
    }
  return [...faults, ...checkEnded(place, doc), ...checkLeftovers(place)];
}

/** What each node's evidence and values say is what the plan says. */
function checkEnded(place: Place, doc: RoadmapDocument): string[] {
  return doc.nodes.flatMap(({ id, status }) => {
    const bundle = readJson(join(place.tree.evidence, id, "lifecycle.json"));
    const values = readJson(join(place.tree.kv, `${id}.json`));
    const faults: string[] = [];
    if (bundle !== undefined && bundle["status"] !== status)
      faults.push(`${id}: its evidence says ${String(bundle["status"])}, the plan ${status}`);
    const hasFailed = values !== undefined && "err.summary" in values;
    if (bundle !== undefined && hasFailed !== (status === "failed"))
      faults.push(`${id} is ${status}, and kv ${hasFailed ? "has an" : "has no"} err.summary`);
    return faults;
  });
}

/** After an hour nothing is left of those who died. */
function checkLeftovers(place: Place): string[] {
  cleanDocuments(place.tree, Date.now() + 2 * 60 * 60 * 1000);
  return [place.state, place.tree.kv, place.tree.evidence].flatMap((dir) =>
    listOf(join(dir, ".tmp")).map((name) => `left in ${join(dir, ".tmp")} after an hour: ${name}`),
  );
}

/** Half a line says nothing, whatever stands in it. */
function countEvents(place: Place, id: string, event: string): number {
  return readLines(place.tree.events).filter((line) => {
    try {
      const told = JSON.parse(line) as Record<string, unknown>;
      return told["event"] === event && told["task_id"] === id;
    } catch {
      return false;
    }
  }).length;
}

function readJson(path: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(fs.readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** The tasks that the nodes will become; what is not launched owes nothing. */
function promiseNodes(place: Place, book: Book, doc: RoadmapDocument, spec: Planning): void {
  for (const node of doc.nodes) {
    const { created_at: _createdAt, ...task } = taskOfNode(node, "tester", 0, []);
    const promised: Promised = {
      text: JSON.stringify(task),
      isSafe: false,
      ends: spec.ends?.[node.id] === "failed" ? ["failed"] : ["completed"],
      hasEvents: true,
    };
    book.tasks[node.id] = promised;
  }
  fs.writeFileSync(place.tree.roadmap, spec.plan(place), { mode: 0o600 });
}

function planning(spec: Planning): Operation {
  return {
    name: spec.name,
    isWhole: spec.act === undefined,
    ...(spec.durability === undefined ? {} : { durability: spec.durability }),
    ...(spec.window === undefined ? {} : { window: spec.window }),
    prepare(place) {
      const book = makeTree(place);
      promiseNodes(place, book, parseRoadmap(wholeText(spec, place)), spec);
      return book;
    },
    act: spec.act ?? ((tools) => runTree(tools)),
    checkInstant: (place) => [...checkPlanNow(spec, place), ...(spec.check?.(place) ?? [])],
    checkEnd: (place, journals) => [
      ...checkPlanEnd(spec, place, journals !== "lossy"),
      ...(spec.check?.(place) ?? []),
    ],
  };
}

const payloadOf = (place: Place, more: object = {}): string =>
  JSON.stringify({ do: "ok", runs: place.runs, ...more });

// ── the plans ─────────────────────────────────────────────────────────────────────────────────────────────────────

const EXEC = JSON.stringify([
  "sh",
  "-c",
  `echo '<result>{"status":"success","summary":"ran"}</result>'`,
]);

const launched = (): string => `# What a person thinks of it:   größer, später 🚀
mine: { a: 1 } # stays
nodes:
  # Two that start together.
  - { id: one,   title: 'First', status: open, exec: ${EXEC} } # by and by
  - id: two
    status: open   # says who?
    exec: ${EXEC}

  - id: three
    dependencies: [one, two]
    status: pending
    exec: ${EXEC}
# the end`;

const added = (place: Place) => ({
  id: "added",
  type: "task",
  title: "What was found out on the way",
  payload: { do: "ok", runs: place.runs },
});

const applied = (place: Place): string => `# A plan with   words of its own.
nodes:
  - id: first # begins
    status: open # by hand
    # What it says it wants next:
    payload: ${payloadOf(place, {
      says: {
        status: "success",
        summary: "did it",
        outputs: { answer: 42 },
        next: {
          addNodes: [added(place)],
          setStatus: [{ id: "parked", status: "open" }],
        },
      },
    })}
  - { id: parked, status: blocked, payload: ${payloadOf(place)} } # until we know

  - id: last
    dependencies: [{ id: first }]
    status: open
    payload: ${payloadOf(place)} # done?
mine: # stays
  - 1
`;

const escalated = (place: Place): string => `nodes:
  - { id: big, type: plan, status: done } # was made by hand
  # It cannot be done:
  - id: weak
    parent: big
    max_attempts: 1
    status: open
    payload: ${payloadOf(place, { do: "fail" })}
`;

const steered = (place: Place): string => `nodes:
  - id: one
    status: blocked # until somebody says so
    payload: ${payloadOf(place)}
  - { id: two, status: blocked, payload: ${payloadOf(place)} } # both at once
`;

async function openBoth({ place, durability }: Parameters<Operation["act"]>[0]): Promise<void> {
  const { roadmap } = place.tree;
  const file = new RoadmapFile(roadmap, { durability });
  await withRoadmapLock(roadmap, async () => {
    file.replaced.recoverLeftovers();
    await file.update(
      (text) =>
        applyEdits(parseRoadmap(text), [
          { kind: "status", id: "one", status: "open" },
          { kind: "status", id: "two", status: "open" },
        ]).text,
    );
    await file.replaced.settle();
  });
  acknowledge(place, "opened", "both");
}

const ended = (place: Place): string => `nodes:
  - id: one
    status: done # last night
    payload: ${payloadOf(place)}
  - { id: two, status: failed, dependencies: [one], payload: ${payloadOf(place)} } # both at once
`;

/** A reset that is repeated after a crash has the same key. */
async function resetBoth({ place, trays }: Parameters<Operation["act"]>[0]): Promise<void> {
  await resetPlan({ tree: place.tree, trays }, {}, { key: "nightly", check: () => {} });
  acknowledge(place, "reset", "both");
  const again = await resetPlan(
    { tree: place.tree, trays },
    {},
    { key: "nightly", check: () => {} },
  );
  if (again.open.length > 0) throw new Error("a reset that was done is done once more");
}

/** Both nodes were opened, or none. */
function checkReset(place: Place): string[] {
  const doc = parseRoadmap(textOnDisk(place) ?? "");
  const [isOne, isTwo] = (
    [
      ["one", "done"],
      ["two", "failed"],
    ] as const
  ).map(
    ([id, status]) =>
      findNode(doc, id)?.status !== status || fs.existsSync(join(place.tree.evidence, id)),
  );
  if (isOne !== isTwo)
    return [`one was ${isOne ? "" : "not "}opened, but two ${isTwo ? "" : "not "}`];
  const isSaid = readLines(place.acks).includes("reset both");
  return isSaid && isOne !== true ? ["they were reset, and are not"] : [];
}

/** Both were opened, or none; what was acknowledged is. */
function checkOpened(place: Place): string[] {
  const doc = parseRoadmap(textOnDisk(place) ?? "");
  const [one, two] = ["one", "two"].map((id) => findNode(doc, id)?.status);
  if ((one === "blocked") !== (two === "blocked")) return [`one is ${one}, but two is ${two}`];
  const isOpen = readLines(place.acks).includes("opened both");
  return isOpen && one === "blocked" ? ["they were opened, and are not"] : [];
}

const BY_HAND = { run: null, lease: null, attempt: 0, by: "cli" };

async function putValues({ place, durability }: Parameters<Operation["act"]>[0]): Promise<void> {
  const kv = new KvStore(place.tree.kv, systemClock, durability);
  await kv.change("one", { puts: { left: 1, right: 1 } }, BY_HAND);
  acknowledge(place, "put", "1");
  await kv.change("one", { puts: { left: 2 }, removes: ["right"] }, BY_HAND);
  acknowledge(place, "put", "2");
  kv.close();
}

/** Both changes are there whole or not at all, in their order. */
function checkValues(place: Place): string[] {
  const values = readJson(join(place.tree.kv, "one.json")) ?? {};
  const [left, right] = ["left", "right"].map(
    (key) => (values[key] as { value?: unknown } | undefined)?.value,
  );
  const states = ["undefined undefined", "1 1", "2 undefined"];
  const state = states.indexOf(`${String(left)} ${String(right)}`);
  const acked = readLines(place.acks).filter((line) => line.startsWith("put ")).length;
  if (state === -1) return [`kv is half changed: ${String(left)}, ${String(right)}`];
  if (state < acked) return [`kv is at change ${state}, but ${acked} were acknowledged`];
  const told = readLines(join(place.tree.kv, "history.jsonl")).filter((line) =>
    line.includes('"key":"left"'),
  );
  return told.length < state ? [`the history has ${told.length} of ${state} changes`] : [];
}

/** What the run of `first` said is in kv, as soon as the plan says that it is done. */
function checkAnswer(place: Place): string[] {
  if (findNode(parseRoadmap(textOnDisk(place) ?? ""), "first")?.status !== "done") return [];
  const answer = readJson(join(place.tree.kv, "first.json"))?.["answer"];
  const value = (answer as { value?: unknown } | undefined)?.value;
  return value === 42 ? [] : [`kv says ${String(value)}, not 42`];
}

function launching(name: string, durability: Durability): Operation {
  return planning({
    name,
    durability,
    // From the staging of the plan that says so to the acceptance of what was submitted.
    window: { from: "^open \\.tmp/roadmap\\.yaml", to: "^rename mailbox/inbox/two\\.json" },
    plan: launched,
  });
}

function applying(name: string, durability: Durability): Operation {
  return planning({
    name,
    durability,
    // From the claim of the node's task to the acceptance of the task that follows from it.
    window: {
      from: "^rename mailbox/processing/first@",
      to: "^rename mailbox/inbox/added\\.json",
    },
    plan: applied,
    edits: (place) => [{ kind: "add", node: { ...added(place), status: "open" } }],
    together: [
      { id: "first", status: "done", isReached: true },
      { id: "parked", status: "blocked", isReached: false },
    ],
    check: checkAnswer,
  });
}

export const PLANNING: readonly Operation[] = [
  launching("roadmap-launch", "process"),
  launching("roadmap-launch-power", "power"),
  applying("roadmap-apply", "process"),
  applying("roadmap-apply-power", "power"),
  planning({
    name: "roadmap-escalate",
    window: {
      from: "^rename mailbox/processing/weak@",
      to: "^rename mailbox/inbox/plan-escalate-weak\\.json",
    },
    plan: escalated,
    edits: (_place, doc) => {
      const weak = findNode(doc, "weak");
      return weak === undefined ? [] : escalate(weak, (id) => findNode(doc, id)).edits;
    },
    together: [{ id: "weak", status: "failed", isReached: true }],
    ends: { big: "done", weak: "failed" },
    escalated: { weak: 1 },
  }),
  planning({
    name: "roadmap-set-status",
    durability: "power",
    plan: steered,
    act: openBoth,
    mayStay: ["blocked"],
    check: checkOpened,
  }),
  planning({
    name: "roadmap-reset",
    durability: "power",
    plan: ended,
    act: resetBoth,
    mayStay: ["done", "failed"],
    check: checkReset,
  }),
  planning({
    name: "kv-put",
    plan: steered,
    act: putValues,
    mayStay: ["blocked"],
    check: checkValues,
  }),
];
