/** For each gate: what the starter answers on its live state, and what `why` says from the files, is the same. */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { accountsDir, GateFile } from "../../src/agents/accounts/gate-file.ts";
import { type Attached, attachedIn, gateOfPerson } from "../../src/agents/attached.ts";
import { BreakerFile } from "../../src/agents/breaker/breaker-file.ts";
import { openIdReaders } from "../../src/app/id-readers.ts";
import { PARTS } from "../../src/app/supervisor.ts";
import { closedPool, POOL_GATES, type PoolGate } from "../../src/core/gates.ts";
import { landingGateOf } from "../../src/core/landing.ts";
import { formatName } from "../../src/core/names.ts";
import { type AgentSettings, DEFAULT_SETTINGS, type Settings } from "../../src/core/settings.ts";
import { type StateTree, stateTree } from "../../src/core/state-tree.ts";
import { laneOf } from "../../src/core/waiting-task.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { newSubmission } from "../../src/mailbox/claim/claim.ts";
import type { Fault } from "../../src/parts/groups/gates.ts";
import { openWatch } from "../../src/parts/mail/delivery/mail-watch.ts";
import { ROOM_GATE } from "../../src/parts/worktrees/disk-room.ts";
import { QuestionStore } from "../../src/questions/question-store.ts";
import { assemble, type Services } from "../../src/supervisor/assemble.ts";
import { openEnvironment } from "../../src/supervisor/environment/environment.ts";
import { Lifecycle } from "../../src/supervisor/environment/lifecycle.ts";
import type { Part } from "../../src/supervisor/environment/part.ts";
import type { Parts } from "../../src/supervisor/environment/parts.ts";
import type { PartHost } from "../../src/supervisor/part.ts";
import { DiskLimit } from "../../src/supervisor/queue/disk-limit.ts";
import { WhyOpen } from "../../src/view/why-open.ts";
import { programPath } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

vi.mock("../../src/parts/mail/delivery/mail-watch.ts", { spy: true });

/** On a slow machine this gate is still closed in the first ticks, before the gate of the case. */
const READING = "the inbox is being read";

interface Pool {
  tree: StateTree;
  host: PartHost;
  lifecycle: Lifecycle;
  services: Services;
}

/** How one gate is closed for the task `t`. */
interface Case {
  settings?: Partial<Settings>;
  task?: object;
  /** Called before the supervisor starts. */
  put?: (tree: StateTree) => unknown;
  /** Called after its start. */
  close?: (pool: Pool) => unknown;
  /** The words of the reason. */
  says: RegExp;
  /** It is closed only before the first tick. */
  isFirst?: true;
}

const CODER: AgentSettings = { name: "coder", kind: "claude", default: true };
const OF_CODER = { prompt: "x", agent: "coder" };
const coder = { settings: { agents: [CODER] }, task: OF_CODER };
const LEASE = "s1.1";

const write = (path: string, content: unknown): void => {
  fs.mkdirSync(join(path, ".."), { recursive: true });
  fs.writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
};
/** A file in `processing/`. */
const accepted = (tree: StateTree, id: string, task: object, hold?: string): void => {
  const name = newSubmission(systemClock, id, 1);
  const file = formatName(hold === undefined ? name : { ...name, stage: "hold", token: hold });
  write(join(tree.mailbox, "processing", file), { exec: ["true"], ...task });
};
const inWork = (task: object) => (tree: StateTree) => accepted(tree, "other", task);

const OF_POOL: Record<PoolGate, Case> = {
  supervisor: {
    close: ({ lifecycle, services }) => {
      lifecycle.ask(false);
      return services.shutdown.run("stop", services.ordered);
    },
    says: /no supervisor runs/,
  },
  stopping: { close: ({ lifecycle }) => lifecycle.ask(false), says: /is stopping/ },
  mailbox: { settings: { mailbox_enabled: false }, says: /mailbox is off/ },
  disk: {
    close: ({ services }) => {
      const path = "/";
      const shortage = { path, free_bytes: 1, wanted_bytes: 2 };
      const disk = services.ordered.find((one) => one instanceof DiskLimit);
      Object.assign(disk ?? {}, { room: { shortageAt: () => shortage } });
    },
    says: /^intake stopped: disk/,
  },
  reading: {
    close: ({ host }) => host.limits.start(host.env.trays.clock.monotonicMs()),
    says: /inbox is being read/,
    isFirst: true,
  },
  slots: {
    close: ({ host }) => host.control.change({ max_workers: 0 }),
    says: /slots is set to 0/,
  },
  pause: {
    close: ({ host }) =>
      host.control.change({ paused: true, paused_at: "2026-01-01T00:00:00Z", paused_by: "c" }),
    says: /^claiming is paused since 2026-01-01T00:00:00Z by command c$/,
  },
  draining: { close: ({ lifecycle }) => lifecycle.finishWork(1e15), says: /drains/ },
  replan: {
    put: (tree) => write(tree.roadmap, "nodes: [{id: plan-000, type: plan, exec: ['true']}]\n"),
    close: ({ host }) => host.control.change({ replan_paused: true }),
    says: /^the plan is made anew/,
  },
};

const OF_TASK: Record<"blocked" | "unmatched" | "delayed", Case> = {
  blocked: { task: { metadata: { dependencies: ["typo"] } }, says: /^waits for typo/ },
  unmatched: { task: { exec: undefined, agent: "nobody" }, says: /^cannot run: no agent/ },
  delayed: { task: { not_before: 4_000_000_000 }, says: /^waits for its time/ },
};

const gpu = { groups: { gpu: { slots: 1 } } };
const OF_GROUPS: Record<Fault | "heavy" | "owns" | "rate", Case> = {
  paused: {
    settings: gpu,
    task: { group: "gpu" },
    close: ({ host }) => host.control.change({ limit_changes: { "group:gpu": { paused: true } } }),
    says: /^group gpu is paused/,
  },
  unknown: { task: { limits: ["typo"] }, says: /^limit typo is not in config.yaml/ },
  shut: {
    settings: { agents: [{ ...CODER, slots: 0 }] },
    task: OF_CODER,
    says: /^agent coder has 0 slots/,
  },
  full: {
    settings: { limits: { api: 1 }, groups: { gpu: { limits: ["api"] } } },
    task: { group: "gpu" },
    put: inWork({ limits: ["api"] }),
    says: /^limit api: 1 of 1 running$/,
  },
  heavy: {
    settings: { groups: { gpu: { slots: 2 } } },
    task: { group: "gpu" },
    put: (tree) => {
      inWork({ group: "gpu" })(tree);
      const heavy = { exec: ["true"], group: "gpu", weight: 2, priority: 1 };
      write(join(tree.mailbox, "inbox", "h.json"), heavy);
    },
    says: /^group gpu: 1 of 2 running; h comes first and takes 2$/,
  },
  owns: {
    task: { owns: { write: ["a.txt"] } },
    put: inWork({ owns: { write: ["a.txt"] } }),
    says: /^files in use: other writes a.txt/,
  },
  rate: {
    settings: { limits: { api: { rate: "1/h" } } },
    task: { limits: ["api"] },
    close: ({ host }) =>
      partsOf(host).noteStart(laneOf({ agentId: "exec", needs: "1 api" }), "before"),
    says: /^limit api: its rate of 1\/h is used up/,
  },
};

const CLOSED_GATE = { plugins: [{ path: programPath("closed-gate.mjs") }] };

/** By the name of the part; `groups` has its own table. */
const OF_PARTS: Record<string, Case> = {
  accounts: {
    ...coder,
    put: () =>
      new GateFile(accountsDir(), "default").close(
        { untilMs: Date.now() + 1e8, window: "five_hour", reason: "limit reached" },
        Date.now(),
      ),
    says: /^account default: no run before/,
  },
  attach: {
    ...coder,
    put: (tree) => {
      const kept: Attached = { v: 1, id: "t", state: "kept", owner: "x", since_ms: 0 };
      attachedIn(tree.dir).replace("t", kept);
      accepted(tree, "t", {}, gateOfPerson(kept)?.gate ?? "");
    },
    says: /^a person keeps it since 1970/,
  },
  breaker: {
    ...coder,
    put: (tree) =>
      new BreakerFile(tree.dir, "coder").note("b", {
        kind: "failed",
        failure: "agent",
        code: "ErrAuth",
        message: "401",
      } as never),
    says: /^agent coder is paused since/,
  },
  cluster: {
    settings: { agents: [{ name: "far", kind: "remote", where: "gpu" }] },
    task: { payload: 1, agent: "far" },
    says: /^no bridge runs here/,
  },
  landing: {
    put: (tree) => {
      const wait = { why: "a lock", on: null, until_ms: Date.now() + 1e8 };
      write(join(tree.dir, "landings", "a.order.json"), { v: 1, task_id: "a", lease: LEASE });
      write(join(tree.dir, "landings", "a.state.json"), { v: 1, lease: LEASE, fix: null, wait });
      accepted(tree, "t", {}, landingGateOf("a"));
    },
    says: /^the landing of a waits: a lock/,
  },
  mail: {
    settings: { agents: [CODER], mail_enabled: true },
    task: OF_CODER,
    // The first look does not end.
    put: () => vi.mocked(openWatch).mockReturnValueOnce(new Promise(() => {})),
    says: /^the mail of the agents is being read/,
  },
  memory: {
    settings: { agents: [{ ...CODER, usual_memory_bytes: 2 ** 50 }] },
    task: OF_CODER,
    put: inWork({}),
    close: ({ host }) => partsOf(host).noteStart("coder", "other"),
    says: /^agent coder: its runs take 1024 TiB of memory/,
  },
  plugins: {
    settings: CLOSED_GATE,
    task: { group: "closed" },
    close: async ({ host }) => {
      const isLoaded = () => partsOf(host).closed(laneOf({ agentId: "exec" })) === undefined;
      await waitFor(isLoaded, { what: "the plugin" });
    },
    says: /^the gate of the plugin is closed$/,
  },
  questions: {
    ...coder,
    put: (tree) => {
      const more = { context: "", who: "", expects: "limit", asked_at_ms: 1, ends_at_ms: null };
      const asked = { id: "budget.day.1", agents: ["*"], question: "May it go on?", ...more };
      new QuestionStore(tree.dir).ask(asked as never);
    },
    // One task of each lane is let through as a trial.
    close: ({ host }) => partsOf(host).noteStart("coder", "trial"),
    says: /^May it go on\?/,
  },
  worktreeRoom: {
    put: (tree) => {
      const room = join(tree.dir, "worktrees", ".room");
      write(join(room, "wanted"), 2 ** 50);
      write(join(room, "tidied"), "");
      accepted(tree, "t", {}, ROOM_GATE);
    },
    says: /^a worktree usually takes 1024 TiB/,
  },
};

function partsOf(host: PartHost): Parts {
  return host.limits.parts;
}

/** Never becomes ready, so nothing starts. */
class NoWorker extends EventEmitter {
  readonly pid = process.pid;
  readonly connected = true;
  send({ type }: { type: string }): void {
    if (type === "stop") this.kill();
  }
  kill(): void {
    setImmediate(() => this.emit("exit", 0, null));
  }
  disconnect(): void {}
  unref(): void {}
}

async function open(one: Case): Promise<Pool> {
  vi.stubEnv("XDG_STATE_HOME", tempDir());
  const tree = stateTree(tempDir());
  const settings: Settings = { ...DEFAULT_SETTINGS, durability: "process", ...one.settings };
  const options = { tree, settings, startWorker: () => new NoWorker() };
  const env = openEnvironment(options, () => {});
  for (const tray of ["inbox", "processing"])
    fs.mkdirSync(join(tree.mailbox, tray), { recursive: true });
  await one.put?.(tree);
  if (!fs.readdirSync(join(tree.mailbox, "processing")).some((name) => name.startsWith("t@")))
    write(join(tree.mailbox, "inbox", "t.json"), { exec: ["true"], ...exec(one.task) });
  const lifecycle = new Lifecycle(() => {});
  let found: PartHost | undefined;
  const spy = (host: PartHost): Part => {
    found = host;
    return {
      ports: {},
      start: async () => {},
      work() {},
      nextMs: () => 1e15,
      finish: async () => {},
      close() {},
    };
  };
  const services = assemble(env, options, lifecycle, [...PARTS, spy]);
  if (found === undefined) throw new Error("no part was made");
  await services.startup.run();
  return { tree, host: found, lifecycle, services };
}

/** A task with an agent has no `exec`. */
function exec(task: object = {}): object {
  return "agent" in task ? { exec: undefined, ...task } : task;
}

/** The starter's answer on its live state: the reason, or the state of a task that cannot be chosen; undefined when it may start. */
function answerOf({ host }: Pool, isOver: boolean): string | undefined {
  const { backlog } = host.queue;
  const task = backlog.get("t") ?? { id: "t", attempt: 1, agentId: "exec" };
  const state = backlog.stateOfId("t") ?? "";
  const isHeld = "gate" in task && task.gate !== undefined;
  if (!isHeld && Object.hasOwn(OF_TASK, state)) return state;
  const live = host.limits.pool(host.env.trays.clock.monotonicMs());
  const pool = isOver ? { ...live, supervisor: "stopped" as const } : live;
  return closedPool(pool, task)?.why ?? partsOf(host).closed(laneOf(task))?.()?.why;
}

type Explain = (tree: StateTree, agents: readonly AgentSettings[]) => Promise<string | undefined>;

/** The reason that `why` tells. */
const whyOf: Explain = async (tree, agents) => {
  const why = new WhyOpen(tree, agents, Date.now(), openIdReaders(tree, agents));
  await why.refresh();
  const found = why.explain("t");
  if (found === undefined || /^waits (?:its turn|for a worker)$/.test(found.text)) return undefined;
  return found.text.replace(/^waits: /, "").replace(` (${found.do})`, "");
};

/** What both say while the gate is closed. */
async function ask(one: Case, code: string, explain: Explain): Promise<[unknown, unknown]> {
  const pool = await open(one);
  const { host, services } = pool;
  const { agents } = host.env.settings;
  try {
    const tick = (): void => {
      const nowMs = host.env.trays.clock.monotonicMs();
      host.env.facts.emit("status:changed");
      for (const service of services.ordered) service.work({ nowMs, dueMs: nowMs });
    };
    await one.close?.(pool);
    if (code === "supervisor") return [answerOf(pool, true), await explain(pool.tree, agents)];
    if (code === "reading") {
      const { started_at: at } = JSON.parse(fs.readFileSync(pool.tree.supervisor, "utf8"));
      vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(at) });
    } else tick();
    if (one.isFirst !== true) {
      const isClosed = (): boolean => {
        tick();
        const answer = answerOf(pool, false);
        return answer !== undefined && answer !== READING;
      };
      await waitFor(isClosed, { what: `the gate ${code} to close` });
      // A gate that the starter had not asked about is told from now on.
      tick();
    }
    return [answerOf(pool, false), await explain(pool.tree, agents)];
  } finally {
    vi.useRealTimers();
    if (code !== "supervisor") await services.shutdown.run("stop", services.ordered);
  }
}

/** A time may be computed anew. */
function timeless(text: unknown): string {
  return String(text).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
}

const CASES: [name: string, one: Case][] = Object.entries({
  ...OF_POOL,
  ...OF_TASK,
  ...OF_GROUPS,
  ...OF_PARTS,
});

afterEach(() => vi.unstubAllEnvs());

it.each(CASES)("the starter and why give the same reason: %s", async (code, one) => {
  const [starter, why] = await ask(one, code, whyOf);
  expect(why).toMatch(one.says);
  if (Object.hasOwn(OF_TASK, code)) expect(starter).toBe(code);
  else expect(timeless(why)).toBe(timeless(starter));
});

it("each gate has a case", async () => {
  expect(Object.keys(OF_POOL)).toEqual(Object.keys(POOL_GATES));
  const pool = await open({ settings: { mail_enabled: true, ...CLOSED_GATE }, says: / / });
  const gated = PARTS.filter((make) => {
    const { startLimit } = make({ ...pool.host, commands: new Map() }).ports ?? {};
    return startLimit !== undefined && ("gates" in startLimit || "closed" in startLimit);
  });
  await pool.services.shutdown.run("stop", pool.services.ordered);
  expect(gated.map(({ name }) => name).sort()).toEqual([...Object.keys(OF_PARTS), "groups"].sort());
});

it.each([
  ["a part", "breaker", OF_PARTS["breaker"], { gates: [] }],
  ["the disk", "disk", OF_POOL.disk, { intake_stopped: null }],
] as const)(
  "a reader that does not know the gate of %s is caught",
  async (_what, code, one, lacks) => {
    const broken: Explain = (tree, agents) => {
      const told = JSON.parse(fs.readFileSync(tree.supervisor, "utf8"));
      write(tree.supervisor, { ...told, ...lacks });
      return whyOf(tree, agents);
    };
    const [starter, why] = await ask(one ?? OF_POOL.disk, code, broken);
    expect(starter).toMatch(one?.says ?? /./);
    expect(why).not.toBe(starter);
  },
);
