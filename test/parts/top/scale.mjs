#!/usr/bin/env node
/**
 * scale.mjs [--busy] [--million]: what `mailchute top` takes beside a busy pool, and on a tree of 1,000,000 tasks. By default both.
 *
 *   --busy      50 tasks run and speak all the time: at most 2 % of a core, and at least 2 frames a second: it slows itself
 *   --million   the first screen within 2 seconds, then at most 2 % of a core, at most 200 MB
 *   --seconds N how long each is measured (default 20)     --dir DIR  where the trees stand (default: /dev/shm)
 *
 * It needs tmux, and ends with 1 when a limit is not held. The machine must have nothing else to do.
 */
import "../../../scripts/own-folders.mjs";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { LAUNCHER, Pool } from "../../../bench/pool.mjs";
import { until } from "../../../bench/processes.mjs";
import { fillTree } from "../../support/million-tasks.mjs";

const { values } = parseArgs({
  options: {
    busy: { type: "boolean" },
    million: { type: "boolean" },
    seconds: { type: "string", default: "20" },
    dir: { type: "string", default: "/dev/shm" },
  },
});
const isAll = values.busy !== true && values.million !== true;
const root = fs.mkdtempSync(join(values.dir, "mailchute-top-"));
const faults = [];
const ROWS = 50;
/** What happens once, such as counting a million names, is over (ms). */
const WARM_MS = 8000;
/** A terminal gets this before each frame. */
const FRAME = "\x1b[?2026h";

/** Prints a figure, and keeps it when its limit is not held. */
function tell(name, value, limit, unit, isLeast = false) {
  const isHeld = isLeast ? value >= limit : value <= limit;
  const what = isLeast ? "at least" : "at most";
  console.log(
    `${isHeld ? "ok  " : "FAIL"}  ${name}: ${value.toFixed(2)} ${unit} (${what} ${limit})`,
  );
  if (!isHeld) faults.push(name);
}

const server = `mailchute-top-scale-${process.pid}`;
const tmux = (...args) =>
  execFileSync("tmux", ["-L", server, "-f", "/dev/null", ...args], { encoding: "utf8" });

/** Opens `top` in a terminal of 200 × 60, and measures it until it is closed. */
async function measureTop(state, name) {
  const began = performance.now();
  const words = [process.execPath, LAUNCHER, "top", "--state", state];
  const command = `LC_ALL=C.UTF-8 exec ${words.map((word) => `'${word}'`).join(" ")}`;
  tmux("new-session", "-d", "-x", "200", "-y", "60", command);
  try {
    const pid = Number(tmux("display-message", "-p", "#{pane_pid}"));
    const seen = join(root, `${name}.out`);
    tmux("pipe-pane", `cat > '${seen}'`);
    await until(() => tmux("capture-pane", "-p").includes("1 RUNNING"), "the first screen", {
      everyMs: 20,
    });
    const firstMs = performance.now() - began;
    await wait(WARM_MS);
    const text = () => (fs.existsSync(seen) ? fs.readFileSync(seen, "utf8") : "");
    const framesOf = () => text().split(FRAME).length - 1;
    const [framesBefore, cpuBefore, beganMs] = [framesOf(), cpuS(pid), performance.now()];
    await wait(1000 * Number(values.seconds));
    const tookS = (performance.now() - beganMs) / 1000;
    const screen = tmux("capture-pane", "-p");
    return {
      firstMs,
      screen,
      share: (100 * (cpuS(pid) - cpuBefore)) / tookS,
      frames: (framesOf() - framesBefore) / tookS,
      memoryMb: memoryMb(pid),
    };
  } finally {
    tmux("kill-server");
  }
}

function cpuS(pid) {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The most that it has had. */
function memoryMb(pid) {
  const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s*(\d+)/m.exec(status)[1]) / 1024;
}

async function measureBusy() {
  const dir = join(root, "busy");
  const pool = new Pool(dir, { workers: ROWS, processes: 1, grace_ms: 200 });
  const speak =
    'n=0; while :; do n=$((n + 1)); echo "::progress $((n % 100)) step $n"; sleep 0.5; done';
  for (let n = 0; n < ROWS; n++) pool.drop(`speaks-${n}`, { exec: ["sh", "-c", speak] });
  pool.start();
  try {
    const processing = join(pool.state, "mailbox", "processing");
    const isOn = () =>
      fs.existsSync(processing) &&
      fs.readdirSync(processing).filter((name) => name.includes("~w-")).length === ROWS;
    await until(isOn, `${ROWS} running tasks`);
    const { share, frames, screen } = await measureTop(pool.state, "busy");
    if (!screen.includes("step ")) throw new Error(`the screen shows no progress:\n${screen}`);
    tell(`${ROWS} rows: share of a core`, share, 2, "%");
    tell(`${ROWS} rows: frames`, frames, 2, "a second", true);
  } finally {
    await pool.stop();
  }
}

async function measureMillion() {
  const pool = new Pool(join(root, "million"));
  fillTree(pool.state, join(root, "sources"));
  const { firstMs, share, memoryMb: mb, screen } = await measureTop(pool.state, "million");
  // Large trays are counted a piece in each look.
  if (!/waiting 150,000 .* done \d+,\d{3}\+? /.test(screen))
    throw new Error(`the screen has no counts:\n${screen}`);
  tell("1,000,000 tasks: until the first screen", firstMs, 2000, "ms");
  tell("1,000,000 tasks: share of a core", share, 2, "%");
  tell("1,000,000 tasks: memory", mb, 200, "MB");
}

try {
  if (isAll || values.busy) await measureBusy();
  if (isAll || values.million) await measureMillion();
} finally {
  fs.rmSync(root, { recursive: true, force: true });
}
process.exitCode = faults.length === 0 ? 0 : 1;
process.exit();
