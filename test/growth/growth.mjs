#!/usr/bin/env node
/**
 * growth.mjs [NAME...]: what users meet as a tree grows: each of these once small and once ten times as large. Names: records (in outbox/,
 * with retention), nodes (of a plan that is edited while it runs), schedules, groups, streams (of agents).
 *
 *   --small N   how many there are in the small one (default: 100,000 records, 1,000 nodes, 100 schedules, 50 groups, 20 streams)
 *   --dir DIR   where the trees stand (default: /dev/shm)
 *
 * Prints the time of all and the processor time of the supervisor for each. Ends with 1 when one of them costs more than 1.5 times as much in
 * the large tree. The machine must have nothing else to do.
 */
import "../../scripts/own-folders.mjs";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readFlags } from "../../scripts/flags.mjs";

const { values, positionals } = readFlags(import.meta.url, {
  options: { small: { type: "string" }, dir: { type: "string", default: "/dev/shm" } },
  allowPositionals: true,
});
const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const WORSE_MAX = 1.5;
const DAY_S = 86_400;
const root = fs.mkdtempSync(join(values.dir, "mailchute-growth-"));

/** A tree of its own with this configuration. */
function newTree(config) {
  const state = fs.mkdtempSync(join(root, "tree-"));
  for (const name of ["inbox", "outbox"])
    fs.mkdirSync(join(state, "mailbox", name), { recursive: true });
  fs.writeFileSync(
    join(state, "config.yaml"),
    JSON.stringify({ durability: "process", processes: 2, workers: 16, ...config }),
  );
  return state;
}

/** The supervisor. `cpuMs` is what it has used so far. */
function start(state, ...args) {
  const child = spawn(process.execPath, [LAUNCHER, "run", "--state", state, ...args], {
    stdio: ["ignore", "ignore", fs.openSync(join(root, "err"), "w")],
  });
  const began = performance.now();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let used = 0;
  const cpuMs = () => {
    try {
      const [ns] = fs.readFileSync(`/proc/${child.pid}/schedstat`, "utf8").split(" ");
      used = Number(ns) / 1e6;
    } catch {
      // It has ended: what was read last counts.
    }
    return used;
  };
  return { child, ended, cpuMs, ms: () => performance.now() - began };
}

const results = (state) => fs.readdirSync(join(state, "mailbox", "outbox")).length;
/** Throws when not so many tasks have completed. */
function demand(state, most) {
  const done = results(state);
  if (done < most)
    throw new Error(`${done} of ${most} done: ${fs.readFileSync(join(root, "err"), "utf8")}`);
}

/** Waits until `isDone`, which is asked often, or until the supervisor has ended. @returns what all of it took */
async function play(supervisor, isDone = () => false) {
  let isOver = false;
  void supervisor.ended.then(() => (isOver = true));
  while (!isOver && !isDone()) {
    supervisor.cpuMs();
    await wait(20);
  }
  const figures = { ms: supervisor.ms(), cpuMs: supervisor.cpuMs() };
  if (!isOver) supervisor.child.kill("SIGTERM");
  await supervisor.ended;
  return figures;
}

const dropAll = (state, count, taskOf) => {
  for (let n = 0; n < count; n++)
    fs.writeFileSync(join(state, "mailbox", "inbox", `t${n}.json`), JSON.stringify(taskOf(n)));
};
/** A function that does nothing, as agent `noop`. */
function withFunction(state) {
  fs.writeFileSync(join(state, "noop.mjs"), "export default () => 1;\n");
  return state;
}
const NOOP = { agents: [{ name: "noop", kind: "module", module: "noop.mjs" }] };

const GROWTHS = {
  /** Old records are removed; the figures are those of one record. */
  records: {
    small: 100_000,
    async play(count) {
      const state = newTree({ retention: { outbox_days: 1 } });
      const outbox = join(state, "mailbox", "outbox");
      const at = Math.floor(Date.now() / 1000) - 3 * DAY_S;
      for (let n = 0; n < count; n++) {
        const file = join(outbox, `old-${n}_result.json`);
        const record = { task_id: `old-${n}`, status: "completed", completed_at: at };
        fs.writeFileSync(file, JSON.stringify(record));
        fs.utimesSync(file, at, at);
      }
      let askMs = 0;
      const isEmpty = () => {
        const dir = fs.opendirSync(outbox);
        const first = dir.readSync();
        dir.closeSync();
        return first === null;
      };
      const figures = await play(start(state), () => {
        if (performance.now() < askMs) return false;
        askMs = performance.now() + 500;
        return isEmpty();
      });
      if (!isEmpty()) throw new Error("the supervisor ended before all was removed");
      return { units: count, ...figures };
    },
  },
  /** All nodes run, and each second a person changes the title of one. */
  nodes: {
    small: 1000,
    async play(count) {
      const state = withFunction(newTree(NOOP));
      const file = join(state, "roadmap.yaml");
      const node = (n) => `  - { id: n${n}, title: first, agent: noop }\n`;
      fs.writeFileSync(
        file,
        `nodes:\n${Array.from({ length: count }, (_, n) => node(n)).join("")}`,
      );
      let editMs = performance.now() + 1000;
      let edits = 0;
      const figures = await play(start(state, "--drain"), () => {
        if (performance.now() < editMs) return false;
        editMs = performance.now() + 1000;
        const text = fs.readFileSync(file, "utf8");
        const changed = text.replace(`id: n${count - 1}, title: `, `id: n${count - 1}, title: x`);
        fs.writeFileSync(`${file}.new`, changed);
        fs.renameSync(`${file}.new`, file);
        edits++;
        return false;
      });
      demand(state, count);
      return { units: count, ...figures, note: `${edits} edits` };
    },
  },
  /** Each fires every ten seconds; the figures are those of a task. */
  schedules: {
    small: 100,
    async play(count) {
      const state = withFunction(newTree(NOOP));
      const dir = join(state, "schedules");
      fs.mkdirSync(dir);
      for (let n = 0; n < count; n++)
        fs.writeFileSync(
          join(dir, `s${n}.yaml`),
          JSON.stringify({
            every: "10s",
            jitter: "9s",
            overlap: "allow",
            task: { agent: "noop", payload: n },
          }),
        );
      const figures = await play(start(state), () => results(state) >= 2 * count);
      return { units: 2 * count, cpuMs: figures.cpuMs };
    },
  },
  /** As many tasks in both, spread over the groups. */
  groups: {
    small: 50,
    async play(count) {
      const groups = Array.from({ length: count }, (_, n) => [`g${n}`, { slots: 2 }]);
      const state = withFunction(newTree({ ...NOOP, groups: Object.fromEntries(groups) }));
      dropAll(state, 10_000, (n) => ({ agent: "noop", payload: n, group: `g${n % count}` }));
      const figures = await play(start(state, "--drain"));
      demand(state, 10_000);
      return { units: 10_000, ...figures };
    },
  },
  /** Programs that write a line of JSON ten times a second for 15 s. */
  streams: {
    small: 20,
    async play(count) {
      const state = newTree({ workers: count, free_memory_min: 0 });
      const script = `i=0; while [ $i -lt 150 ]; do echo '{"type":"text","n":'$i'}'; sleep 0.1; i=$((i+1)); done`;
      dropAll(state, count, () => ({ exec: ["sh", "-c", script] }));
      const { cpuMs } = await play(start(state, "--drain"));
      demand(state, count);
      return { units: count, cpuMs };
    },
  },
};

let isRight = true;
try {
  for (const [name, growth] of Object.entries(GROWTHS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    const sizes = [1, 10].map((times) => times * Number(values.small ?? growth.small));
    const [few, many] = [await growth.play(sizes[0]), await growth.play(sizes[1])];
    for (const what of ["ms", "cpuMs"]) {
      if (few[what] === undefined) continue;
      const [one, ten] = [few, many].map((end) => (1000 * end[what]) / end.units);
      const isHeld = ten <= WORSE_MAX * one;
      isRight &&= isHeld;
      console.log(
        `${isHeld ? "ok  " : "FAIL"}  ${name} ${sizes.join(" -> ")}, ${what === "ms" ? "time" : "supervisor"}: ${one.toFixed(0)} -> ${ten.toFixed(0)} µs each (${(ten / one).toFixed(2)})${many.note ? `, ${many.note}` : ""}`,
      );
    }
  }
} finally {
  fs.rmSync(root, { recursive: true, force: true });
}
process.exitCode = isRight ? 0 : 1;
