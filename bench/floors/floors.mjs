/** Builds and runs the bare loops. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram } from "../machine.mjs";
import { runProgram } from "../processes.mjs";

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

function build() {
  if (built !== undefined) return built;
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-loop-"));
  process.once("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  built = join(dir, "loop");
  execFileSync(findProgram("cc"), ["-O2", "-o", built, sourceOf("loop.c")], { stdio: "inherit" });
  return built;
}
