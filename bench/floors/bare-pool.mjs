/**
 * What a pool of the same form costs when it decides nothing: one process that looks at the inbox and hands out, two that
 * run; the protocol's calls, JSON read and written, journal lines, messages. Left out is all that makes it safe and
 * steerable: no check of a task, no look whether an id is taken, no order, no leases to renew, no metrics, no commands.
 *
 *   node bare-pool.mjs DIR drain    drains DIR/inbox; prints one JSON object: seconds from the first offer to the last end
 *   node bare-pool.mjs DIR power    the same with the syncs of durability `power`
 *   node bare-pool.mjs DIR watch    runs what comes, until it is killed; `ready` on stdout when it does, and a line in
 *                                   DIR/starts for each start of a handler: title, process.hrtime (ns)
 */
import { fork } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const [dir, mode, workerNumber] = process.argv.slice(2);
const WORKERS = 2;
/** Tasks that a worker has at once, and those it was handed beyond that; as with the settings of these rows. */
const SLOTS = mode === "power" ? 128 : 8;
const AHEAD = 64;
const SYNCS_MAX = 128;
const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_NOATIME } = fs.constants;
const READ = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME;
const processing = (name) => `${dir}/processing/${name}`;

function readTask(path) {
  const fd = fs.openSync(path, READ);
  const { size } = fs.fstatSync(fd);
  const bytes = Buffer.allocUnsafe(size + 1);
  const length = fs.readSync(fd, bytes, 0, size + 1, 0);
  fs.closeSync(fd);
  const text = bytes.toString("utf8", 0, length);
  return { text, task: JSON.parse(text) };
}

class Journal {
  constructor(name) {
    this.fd = fs.openSync(`${dir}/${name}.jsonl`, "a", 0o600);
    this.text = "";
  }

  add(event, id, name) {
    const t = Date.now();
    this.text += `${JSON.stringify({ event, task_id: id, agent_id: "bench", attempt: 1, lease: name, t, at: new Date(t).toISOString(), source: `w-${process.pid}` })}\n`;
  }

  flush() {
    if (this.text !== "") fs.writeSync(this.fd, this.text);
    this.text = "";
  }
}

function supervise() {
  const events = new Journal("events");
  const waiting = mode === "watch" ? [] : fs.readdirSync(`${dir}/inbox`);
  const seen = new Set();
  let next = 0;
  let done = 0;
  let ready = 0;
  let firstMs = 0;
  const workers = Array.from({ length: WORKERS }, (_, n) => {
    const child = fork(fileURLToPath(import.meta.url), [dir, mode, String(n)]);
    const worker = { child, offered: 0 };
    child.on("message", ({ ended }) => {
      worker.offered -= ended;
      done += ended;
      if (ended === 0 && ++ready === WORKERS) begin();
      else if (mode !== "watch" && done === waiting.length) end();
      else if (ended > 0) offer();
    });
    return worker;
  });

  function begin() {
    if (mode === "watch") {
      fs.watch(`${dir}/inbox`, (_event, name) => {
        // The rename that takes it away rings, too.
        if (seen.has(name)) return;
        seen.add(name);
        waiting.push(name);
        offer();
      });
      console.log("ready");
    } else {
      offer();
    }
  }

  function offer() {
    firstMs ||= performance.now();
    for (const worker of workers) {
      const names = [];
      const from = next;
      for (; next < waiting.length && worker.offered + names.length < SLOTS + AHEAD; next++) {
        const id = waiting[next].slice(0, -5);
        readTask(`${dir}/inbox/${waiting[next]}`);
        const name = `${id}@abcdefgh.1~ready.json`;
        events.add("selected", id, name);
        names.push(name);
      }
      events.flush();
      names.forEach((name, n) => {
        fs.renameSync(`${dir}/inbox/${waiting[from + n]}`, processing(name));
      });
      worker.offered += names.length;
      if (names.length > 0) worker.child.send({ names });
    }
  }

  function end() {
    console.log(JSON.stringify({ drain_s: (performance.now() - firstMs) / 1000 }));
    for (const { child } of workers) child.disconnect();
  }
}

function syncPath(path) {
  return new Promise((resolve, reject) => {
    const fd = fs.openSync(path, "r");
    fs.fsync(fd, (error) => {
      fs.closeSync(fd);
      if (error === null) resolve();
      else reject(error);
    });
  });
}

async function syncPaths(paths) {
  const left = paths.values();
  const lane = async () => {
    for (const path of left) await syncPath(path);
  };
  await Promise.all(Array.from({ length: SYNCS_MAX }, lane));
}

function noteStart(task) {
  const ns = process.hrtime.bigint();
  fs.appendFileSync(`${dir}/starts`, `${task.title} ${ns}\n`);
}

function work() {
  const events = new Journal("events");
  const leases = new Journal("leases");
  const queue = [];
  let finished = [];
  let runningCount = 0;
  let isDue = false;
  let isSettling = false;
  const handler = mode === "watch" ? noteStart : () => null;

  async function turn() {
    isDue = false;
    const runs = [];
    while (runs.length + runningCount < SLOTS && queue.length > 0) {
      const name = queue.shift();
      const id = name.slice(0, name.indexOf("@"));
      const claimed = name.replace("~ready", `~w-0123456789ab-abc-abcd-${workerNumber}`);
      fs.renameSync(processing(name), processing(claimed));
      const { text, task } = readTask(processing(claimed));
      leases.add("active", id, claimed);
      events.add("assigned", id, claimed);
      events.add("started", id, claimed);
      runs.push({ id, claimed, text, task });
    }
    runningCount += runs.length;
    leases.flush();
    events.flush();
    const outputs = await Promise.all(runs.map(async ({ task }) => handler(task)));
    for (const [n, run] of runs.entries())
      finished.push(Object.assign(run, { output: outputs[n] }));
    await settle();
    wake();
  }

  /** With `power` one group waits for the disk while the next one gathers. */
  async function settle() {
    if (isSettling) return;
    isSettling = true;
    while (finished.length > 0) {
      const runs = finished;
      finished = [];
      for (const run of runs) {
        run.marker = run.claimed.replace("~w-", "~ok-");
        run.staged = `${dir}/.tmp/${run.marker}`;
        const record = JSON.stringify({ task_id: run.id, status: "completed", output: run.output });
        const fd = fs.openSync(run.staged, "wx", 0o600);
        fs.writeSync(fd, Buffer.from(`${record.slice(0, -1)},"task":${run.text}}\n`));
        fs.closeSync(fd);
      }
      if (mode === "power") await syncPaths(runs.map(({ staged }) => staged));
      for (const { claimed, marker } of runs)
        fs.renameSync(processing(claimed), processing(marker));
      for (const { id, claimed, staged } of runs) {
        fs.linkSync(staged, `${dir}/outbox/${id}_result.json`);
        leases.add("released", id, claimed);
        events.add("completed", id, claimed);
      }
      if (mode === "power") await syncPath(`${dir}/outbox`);
      leases.flush();
      events.flush();
      for (const { marker, staged } of runs) {
        fs.unlinkSync(processing(marker));
        fs.unlinkSync(staged);
      }
      runningCount -= runs.length;
      process.send({ ended: runs.length });
      wake();
    }
    isSettling = false;
  }

  function wake() {
    if (isDue || queue.length === 0 || runningCount >= SLOTS) return;
    isDue = true;
    setImmediate(turn);
  }

  process.on("message", ({ names }) => {
    queue.push(...names);
    wake();
  });
  process.send({ ended: 0 });
}

if (workerNumber === undefined) supervise();
else work();
