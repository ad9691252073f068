#!/usr/bin/env node
/**
 * scale.mjs [--drain] [--million]: `mailchute web` beside a busy pool, and on a tree of 1,000,000 tasks. By default both.
 *
 *   --drain     drains 20,000 tasks with and without 50 open streams, taking turns: the medians differ by at most 5 %
 *   --million   the first of each page within a second, at most 200 MB, at most 200 kB compressed for a first visit
 *   --rounds N  of --drain (default 5)     --dir DIR  where the trees stand (default: /dev/shm)
 *
 * It ends with 1 when a limit is not held. For --drain the machine must have nothing else to do.
 */
import "../../../scripts/own-folders.mjs";
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { LAUNCHER, Pool } from "../../../bench/pool.mjs";
import { fillTree } from "../../support/million-tasks.mjs";

const ASSETS = fileURLToPath(new URL("../../../dist/parts/web/assets", import.meta.url));
const { values } = parseArgs({
  options: {
    drain: { type: "boolean" },
    million: { type: "boolean" },
    rounds: { type: "string", default: "5" },
    dir: { type: "string", default: "/dev/shm" },
  },
});
const isAll = values.drain !== true && values.million !== true;
const root = fs.mkdtempSync(join(values.dir, "mailchute-web-"));
const faults = [];

/** Prints a figure, and keeps it when its limit is not held. */
function tell(name, value, limit, unit) {
  const isHeld = value <= limit;
  console.log(`${isHeld ? "ok  " : "FAIL"}  ${name}: ${value.toFixed(1)} ${unit} (limit ${limit})`);
  if (!isHeld) faults.push(name);
}

class Web {
  static async open(state) {
    const args = [LAUNCHER, "web", "--port", "0", "--json", "--state", state];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = await new Promise((resolve) => {
      createInterface(child.stdout).once("line", (...got) => resolve(got));
    });
    const { link, port } = JSON.parse(line);
    const web = new Web();
    Object.assign(web, { child, port });
    const origin = `http://127.0.0.1:${port}`;
    const answer = await fetch(`${origin}/api/session`, {
      method: "POST",
      headers: { "content-type": "application/json", origin },
      body: JSON.stringify({ code: link.split("#code=")[1] }),
    });
    const { key } = await answer.json();
    const [cookie] = answer.headers.get("set-cookie").split(";");
    web.headers = { cookie, "x-mailchute-key": key };
    return web;
  }

  async page(path) {
    const beganMs = performance.now();
    const url = `http://127.0.0.1:${this.port}/api/page?path=${encodeURIComponent(path)}`;
    const answer = await fetch(url, { headers: this.headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return { ms: performance.now() - beganMs, text };
  }

  /** @returns the answer, which the caller has to read */
  follow(path) {
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.port, agent: false, headers: this.headers };
      const url = `/api/stream?path=${encodeURIComponent(path)}`;
      http.get({ ...options, path: url }, resolve).on("error", reject);
    });
  }

  /** The most memory that it has had (MB). */
  get memoryMb() {
    const status = fs.readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    return Number(/^VmHWM:\s*(\d+)/m.exec(status)[1]) / 1024;
  }

  get cpuS() {
    const stat = fs.readFileSync(`/proc/${this.child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  async close() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill();
    await ended;
  }
}

const TASKS = 20_000;
const STREAMS = 50;

async function drainOnce(name, isWatched) {
  const pool = new Pool(join(root, name));
  pool.fill(TASKS);
  let web;
  let events = 0;
  if (isWatched) {
    web = await Web.open(pool.state);
    const pages = ["/", "/tasks", "/tasks?state=done", "/tasks/t1", "/tasks/t19999"];
    for (let n = 0; n < STREAMS; n++) {
      const stream = await web.follow(pages[n % pages.length]);
      stream.on("error", () => undefined).on("data", () => events++);
    }
  }
  const beforeS = web?.cpuS ?? 0;
  const { rate } = await pool.drain(TASKS);
  const cpuS = (web?.cpuS ?? 0) - beforeS;
  await web?.close();
  fs.rmSync(join(root, name), { recursive: true });
  return { rate, events, cpuS };
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

async function measureDrain() {
  const [alone, watched] = [[], []];
  for (let round = 0; round < Number(values.rounds); round++) {
    const order = round % 2 === 0 ? [false, true] : [true, false];
    for (const isWatched of order) {
      const { rate, events, cpuS } = await drainOnce(`r${round}${isWatched}`, isWatched);
      (isWatched ? watched : alone).push(rate);
      const more = isWatched ? `, ${events} events, ${cpuS.toFixed(2)} s of a core` : "";
      console.log(`      ${isWatched ? "watched" : "alone  "} ${rate.toFixed(0)} tasks/s${more}`);
    }
  }
  const fall = 100 * (1 - median(watched) / median(alone));
  tell(`fall of the drain by ${STREAMS} open streams`, fall, 5, "%");
}

async function measureMillion() {
  const pool = new Pool(join(root, "million"));
  fillTree(pool.state, join(root, "sources"));
  const began = performance.now();
  const web = await Web.open(pool.state);
  tell("from the start to an open session", performance.now() - began, 2000, "ms");
  let largest = 0;
  for (const path of [
    "/",
    "/tasks",
    "/tasks?state=done",
    "/tasks?state=failed",
    "/tasks?state=done&q=outbox-7999",
    "/tasks/outbox-5",
    "/tasks/none",
  ]) {
    const beforeS = web.cpuS;
    const { ms, text } = await web.page(path);
    console.log(`      ${path}: ${(1000 * (web.cpuS - beforeS)).toFixed(0)} ms of a core`);
    // To search is to look at each name.
    tell(`first ${path}`, ms, path.includes("q=") ? 3000 : 1000, "ms");
    largest = Math.max(largest, gzipSync(text).length);
  }
  // Files come while pages are followed.
  const streams = await Promise.all(["/", "/tasks?state=done", "/tasks"].map((p) => web.follow(p)));
  for (const stream of streams) stream.on("error", () => undefined).resume();
  for (let n = 0; n < 100; n++) {
    pool.drop(`fresh-${n}`, { prompt: "x" });
    await wait(100);
  }
  tell("memory", web.memoryMb, 200, "MB");
  const own = fs
    .readdirSync(ASSETS)
    .map((name) => gzipSync(fs.readFileSync(join(ASSETS, name))).length);
  const bytes = own.reduce((sum, one) => sum + one, largest);
  tell("a first visit, compressed", bytes / 1000, 200, "kB");
  await web.close();
}

try {
  if (isAll || values.million) await measureMillion();
  if (isAll || values.drain) await measureDrain();
} finally {
  fs.rmSync(root, { recursive: true, force: true });
}
process.exitCode = faults.length === 0 ? 0 : 1;
process.exit();
