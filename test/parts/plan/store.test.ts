/** The plan in force, between our edits and what people save. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { NodeStatus } from "../../../src/core/roadmap.ts";
import type { RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import type { EarlierRuns } from "../../../src/parts/plan/engine/earlier-runs.ts";
import { PlanStore } from "../../../src/parts/plan/engine/store.ts";
import { RoadmapFile } from "../../../src/parts/plan/file/roadmap-file.ts";
import { RoadmapLoader } from "../../../src/parts/plan/read/loader.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const PLAN = "nodes:\n  - { id: base, status: done }\n  - { id: task, status: in_progress }\n";
/** What a run of `task` may ask for. */
const END: RoadmapEdit[] = [
  { kind: "add", node: { id: "first" } },
  { kind: "add", node: { id: "second", dependencies: ["base"] } },
  { kind: "status", id: "task", status: "done" },
];

interface Bench {
  store: PlanStore;
  path: string;
  refused: string[];
  /** When a command has set them open. */
  opened: Map<string, number>;
  /** This much time passes at once (ms). */
  skip: (ms: number) => void;
  /** Somebody saves another text, and it comes into force with ours in it. */
  save: (text: string) => Promise<void>;
}

async function newBench(
  text = PLAN,
  live: readonly string[] = [],
  loader = new RoadmapLoader(),
): Promise<Bench> {
  const dir = tempDir();
  fs.writeFileSync(join(dir, "roadmap.yaml"), text);
  return benchIn(dir, { live, loader });
}

interface BenchOptions {
  live?: readonly string[];
  loader?: RoadmapLoader;
  earlier?: EarlierRuns;
  /** How the last run of each open node ended. */
  afterRun?: NodeStatus;
}

async function benchIn(dir: string, o: BenchOptions): Promise<Bench> {
  const { live = [], loader = new RoadmapLoader(), earlier, afterRun } = o;
  const path = join(dir, "roadmap.yaml");
  const refused: string[] = [];
  const opened = new Map<string, number>();
  let adoptions = 0;
  let skippedMs = 0;
  const nowMs = (): number => performance.now() + skippedMs;
  const store = new PlanStore(
    new RoadmapFile(path, { durability: "process" }),
    loader,
    join(dir, "pending.json"),
    nowMs,
    {
      onAdopted: () => adoptions++,
      onRefused: (problems) => refused.push(...problems.map((one) => one.message)),
      onEndRefused: (id, why) => refused.push(`${id}: ${why}`),
      openedAgoMs: (id) => {
        const atMs = opened.get(id);
        return atMs === undefined ? undefined : performance.now() - atMs;
      },
      statusAfterRun: () => afterRun,
      isLive: (id) => live.includes(id),
      report: (_key, message) => refused.push(message),
      wake: () => {},
    },
  );
  await store.start(earlier);
  onTestFinished(() => store.close());
  const save = async (text: string): Promise<void> => {
    const before = adoptions;
    fs.writeFileSync(`${path}.new`, text);
    fs.renameSync(`${path}.new`, path);
    const look = (): boolean => {
      store.look(nowMs());
      return adoptions > before;
    };
    await waitFor(look, { what: "the saved plan to be in force" });
  };
  const skip = (ms: number): void => {
    skippedMs += ms;
  };
  return { store, path, refused, opened, skip, save };
}

test("the budget of a plan stays in force when a person saves while a status is to be written", async () => {
  const text = `budget: { soft_usd: 2 }\n${PLAN}`;
  const at = await newBench(text);
  at.store.setStatus("task", "done");
  await at.save(`# mine\n${text}`);
  expect(at.store.find("task")?.status).toBe("done");
  expect(at.store.doc?.budget).toEqual({ name: "plan", budget: { soft_usd: 2 } });
});

test("what follows from an end comes into another text as a whole", async () => {
  const { store, path, refused, save } = await newBench();
  store.edit(END, "task");
  await save(`# mine\n${PLAN}`);
  await waitFor(() => store.flush(), { what: "the plan to be written" });
  expect(refused).toEqual([]);
  expect(store.nodes.map((node) => node.id)).toEqual(["base", "task", "first", "second"]);
  expect(fs.readFileSync(path, "utf8")).toMatch(/^# mine\n/);
});

test("when a person's text no longer allows one of its edits, none is made and it is said once", async () => {
  const { store, refused, save } = await newBench();
  store.edit(END, "task");
  await save("nodes:\n  - { id: task, status: in_progress }\n");
  expect(store.nodes.map(({ id, status }) => [id, status])).toEqual([["task", "in_progress"]]);
  expect(refused).toEqual([expect.stringMatching(/^task: .*base/)]);
  expect(store.hasPending).toBe(false);
  // It does not come back with the next text either.
  await save("nodes:\n  - { id: task, status: in_progress, title: mine }\n");
  expect(store.nodes).toHaveLength(1);
  expect(refused).toHaveLength(1);
});

test("a node that a person has added with the same id is theirs, and all else is made", async () => {
  const { store, refused, save } = await newBench();
  store.edit(END, "task");
  await save(`${PLAN}  - { id: first, title: mine }\n`);
  expect(refused).toEqual([]);
  expect(store.find("first")?.title).toBe("mine");
  expect(store.find("second")).toBeDefined();
  expect(store.find("task")?.status).toBe("done");
});

test("a text that could not be read as a plan once is read again, and is not replaced before", async () => {
  const loader = new RoadmapLoader();
  const { store, path, refused, save } = await newBench(PLAN, [], loader);
  const load = loader.load.bind(loader);
  let failures = 0;
  loader.load = async (text) => {
    if (failures++ > 0) return load(text);
    throw new Error("the thread died");
  };
  store.edit(END, "task");
  // Their own change of the very item: nothing of ours can be put in before their text is read.
  const isIn = save(`${PLAN.replace("id: task,", "id: task, title: mine,")}  - { id: added }\n`);
  await waitFor(() => refused.length > 0, { what: "the failure to be told" });
  store.flush();
  await isIn;
  await waitFor(() => store.flush(), { what: "the plan to be written" });
  expect(refused).toEqual([expect.stringMatching(/the thread died/)]);
  expect(fs.readFileSync(path, "utf8")).toMatch(/title: mine[\s\S]*id: added[\s\S]*id: first/);
});

/** Sets both nodes of `PLAIN` by way of a launch. */
async function newRan(status: NodeStatus): Promise<Bench> {
  const bench = await newBench(PLAIN);
  for (const id of ["one", "two"]) {
    for (const next of ["in_progress", status] as const) {
      bench.store.setStatus(id, next);
      expect(bench.store.flush()).toBe(true);
    }
  }
  return bench;
}

const PLAIN =
  'nodes:\n  - { id: one, status: open, exec: ["false"] }\n  - { id: two, status: open, exec: ["false"] }\n';

test.each(["failed", "needs_human"] as const)(
  "nodes that are %s and are saved as open are open, however many and however soon",
  async (status) => {
    const { store, refused, save } = await newRan(status);
    await save(PLAIN);
    expect(store.nodes.map((node) => node.status)).toEqual(["open", "open"]);
    expect(refused).toEqual([]);
  },
);

test("done nodes that an old copy opens stay done, and it is told with what to do", async () => {
  const { store, refused, save } = await newRan("done");
  await save(PLAIN);
  expect(store.nodes.map((node) => node.status)).toEqual(["done", "done"]);
  expect(refused).toEqual([
    expect.stringMatching(
      /old copy: one stays done, two stays done; to run a node again: .*set-status/,
    ),
  ]);
});

const PAIR = "nodes:\n  - { id: one, status: open }\n  - { id: two, status: open }\n";

/** A person reads the plan while `two` runs and before `one` does; `one` is done by the time that text is saved. */
async function newReadEarly(): Promise<Bench & { copy: string }> {
  const bench = await newBench(PAIR);
  const { store, path } = bench;
  const set = (id: string, status: NodeStatus): void => {
    store.setStatus(id, status);
    expect(store.flush()).toBe(true);
  };
  set("two", "in_progress");
  const copy = fs.readFileSync(path, "utf8");
  set("one", "in_progress");
  set("one", "done");
  return { ...bench, copy };
}

test("what we write into an old copy does not make it look new: a done node in it stays done", async () => {
  const { store, path, copy, save } = await newReadEarly();
  // It is not written yet when the copy is saved, and goes into that.
  store.setStatus("two", "done");
  await save(`# mine\n${copy}`);
  expect(store.nodes.map((node) => node.status)).toEqual(["done", "done"]);
  await waitFor(() => store.flush(), { what: "the plan to be written" });
  expect(fs.readFileSync(path, "utf8")).toBe(`# mine\n${PAIR.replaceAll("open", "done")}`);
});

test("nor after a kill: the next supervisor knows what was written into the text that it finds", async () => {
  const loader = new RoadmapLoader();
  const { store, path } = await newBench(PAIR, [], loader);
  const set = async (id: string, status: NodeStatus): Promise<void> => {
    store.setStatus(id, status);
    await waitFor(() => store.flush(), { what: `${id} to be ${status} in the file` });
  };
  const copy = fs.readFileSync(path, "utf8");
  await set("one", "in_progress");
  await set("one", "done");
  // The supervisor is killed before it has parsed the copy. It has launched a node in it, and written its end.
  const load = loader.load.bind(loader);
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  loader.load = async (text) => {
    await waitFor(() => isOver, { what: "the end of the test" });
    return load(text);
  };
  fs.writeFileSync(`${path}.new`, `# mine\n${copy}`);
  fs.renameSync(`${path}.new`, path);
  store.look(performance.now());
  await set("two", "in_progress");
  await set("two", "done");
  const left = join(dirname(path), "killed");
  fs.mkdirSync(left);
  for (const name of ["roadmap.yaml", "pending.json"])
    fs.cpSync(join(dirname(path), name), join(left, name));
  expect(fs.readFileSync(join(left, "roadmap.yaml"), "utf8")).toBe(
    "# mine\nnodes:\n  - { id: one, status: open }\n  - { id: two, status: done }\n",
  );
  const runs = [
    { id: "one", isCompleted: true, startedAgoMs: 2000, endedAgoMs: 1500 },
    { id: "two", isCompleted: true, startedAgoMs: 1000, endedAgoMs: 500 },
  ];
  const next = await benchIn(left, { earlier: { runs, wasKilled: true }, afterRun: "done" });
  expect(next.store.nodes.map((node) => node.status)).toEqual(["done", "done"]);
  // Once the text is corrected, the note has done its work.
  await waitFor(() => next.store.flush(), { what: "the plan to be written" });
  expect(fs.existsSync(join(left, "pending.json"))).toBe(false);
});

test("a text that waited long to be loaded is as old as its save", async () => {
  const loader = new RoadmapLoader();
  const { store, skip, save } = await newBench(PAIR, [], loader);
  for (const next of ["in_progress", "done"] as const) {
    store.setStatus("one", next);
    expect(store.flush()).toBe(true);
  }
  const load = loader.load.bind(loader);
  loader.load = (text) => {
    skip(10_000);
    return load(text);
  };
  await save(`# mine\n${PAIR}`);
  expect(store.find("one")?.status).toBe("done");
});

test("done nodes that are saved as open with another text are open: no old copy shows that", async () => {
  const { store, path, refused, save } = await newRan("done");
  const now = fs.readFileSync(path, "utf8");
  await save(now.replaceAll("done", "open").replaceAll("false", "true"));
  expect(store.nodes.map((node) => node.status)).toEqual(["open", "open"]);
  expect(refused).toEqual([]);
});

test("a node in flight that is saved as open stays in progress, and it is told how to begin it anew", async () => {
  const { store, refused, save } = await newBench(PLAN, ["task"]);
  await save(PLAN.replace("in_progress", "open"));
  expect(store.find("task")?.status).toBe("in_progress");
  expect(refused).toEqual([expect.stringMatching(/^task is open .* cancel --requeue task$/)]);
});

test("done nodes that commands have set open are open, however soon, and what else an old copy opens stays done", async () => {
  const { store, refused, opened, save } = await newRan("done");
  opened.set("two", performance.now());
  await save(PLAIN);
  expect(store.nodes.map((node) => node.status)).toEqual(["done", "open"]);
  expect(refused).toEqual([expect.stringMatching(/old copy: one stays done;/)]);
  // The command is of before what we set since: an old copy is one again.
  for (const next of ["in_progress", "done"] as const) store.setStatus("two", next);
  await waitFor(() => store.flush(), { what: "the plan to be written" });
  await save(PLAIN);
  expect(store.nodes.map((node) => node.status)).toEqual(["done", "done"]);
});
