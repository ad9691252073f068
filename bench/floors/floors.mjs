/** Builds and runs the bare loops, the bare pool and the bare enqueue. */
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram } from "../machine.mjs";
import { BODY } from "../pool.mjs";
import { runProgram, stopProcess } from "../processes.mjs";

const sourceOf = (name) => fileURLToPath(new URL(name, import.meta.url));
let built;

/** @param mode `submit`, `protocol` or `minimal`. @returns {Promise<{submit: number, drain: number}>} tasks/s */
export async function runLoop(language, dir, count, mode) {
  const args = [dir, String(count), mode];
  const { stdout } =
    language === "node"
      ? await runProgram(process.execPath, [sourceOf("loop.mjs"), ...args])
      : await runProgram(build(), args);
  const { submit_s, drain_s } = JSON.parse(stdout);
  return { submit: count / submit_s, drain: count / drain_s };
}

function makeBareTrays(dir) {
  for (const tray of ["inbox", "processing", "outbox", ".tmp"]) fs.mkdirSync(join(dir, tray));
}

/**
 * Fills an inbox as the pool's own is filled, and drains it.
 * @param mode `drain`, or `power` with the syncs of that durability
 * @returns {Promise<number>} tasks/s
 */
export async function runBarePool(dir, count, mode = "drain") {
  makeBareTrays(dir);
  for (let i = 0; i < count; i++) fs.writeFileSync(join(dir, "inbox", `t${i}.json`), BODY);
  const { stdout } = await runProgram(process.execPath, [sourceOf("bare-pool.mjs"), dir, mode]);
  const settled = fs.readdirSync(join(dir, "outbox")).length;
  if (settled !== count) throw new Error(`${settled} of ${count} tasks have settled`);
  return count / JSON.parse(stdout).drain_s;
}

/** Submits the lines of a file. @returns {Promise<number>} tasks/s */
export async function runBareEnqueue(dir, file, count) {
  makeBareTrays(dir);
  const { stdout } = await runProgram(process.execPath, [sourceOf("bare-enqueue.mjs"), file, dir]);
  const submitted = fs.readdirSync(join(dir, "inbox")).length;
  if (submitted !== count) throw new Error(`${submitted} of ${count} tasks were submitted`);
  return count / JSON.parse(stdout).submit_s;
}

/** Starts one that waits for files, and gives its inbox. @returns {Promise<{inbox: string, stop: () => Promise<void>}>} */
export async function startBarePool(dir) {
  makeBareTrays(dir);
  const child = spawn(process.execPath, [sourceOf("bare-pool.mjs"), dir, "watch"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve, reject) => {
    child.stdout.once("data", resolve);
    child.once("exit", () => reject(new Error("the bare pool has ended")));
  });
  return { inbox: join(dir, "inbox"), stop: () => stopProcess(child) };
}

function build() {
  if (built !== undefined) return built;
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-loop-"));
  process.once("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  built = join(dir, "loop");
  execFileSync(findProgram("cc"), ["-O2", "-o", built, sourceOf("loop.c")], { stdio: "inherit" });
  return built;
}
