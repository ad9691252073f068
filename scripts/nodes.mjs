#!/usr/bin/env node
/**
 * Runs the ordinary tests on each supported Node, which the npm package `node` brings.
 *
 *   npm run test:nodes                     Node 20, 22, 24 and 26: about five minutes each on two processors
 *   npm run test:nodes -- 24 26            these only
 *   npm run test:nodes -- 26 test/mailbox  these tests only
 *
 * The programs are kept in `$MAILCHUTE_NODES_CACHE`, or below node_modules. The last line is "N passed, N failed".
 */
import "./own-folders.mjs";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const VERSIONS = ["20", "22", "24", "26"];
const CACHE =
  process.env["MAILCHUTE_NODES_CACHE"] ?? join(root, "node_modules", ".cache", "mailchute-nodes");

const words = process.argv.slice(2);
const asked = words.filter((word) => /^\d+$/.test(word));
const paths = words.filter((word) => !asked.includes(word));

/** @returns the folder of the program, which is installed if it is missing */
function install(version) {
  const dir = join(CACHE, version);
  const bin = join(dir, "node_modules", "node", "bin");
  if (!fs.existsSync(join(bin, "node"))) {
    const args = ["install", "--prefix", dir, "--no-audit", "--no-fund", "--silent"];
    const { status } = spawnSync("npm", [...args, `node@${version}`], { stdio: "inherit" });
    if (status !== 0) throw new Error(`npm cannot install node@${version}`);
  }
  return bin;
}

const total = { passed: 0, failed: 0 };
for (const version of asked.length > 0 ? asked : VERSIONS) {
  const bin = install(version);
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"]}` };
  const program = join(bin, "node");
  const { stdout: exact } = spawnSync(program, ["--version"], { encoding: "utf8" });
  console.log(`# ${exact.trim()}`);
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const { status, stdout } = spawnSync(
    program,
    [vitest, "run", "--project", "mailchute", ...paths],
    {
      cwd: root,
      env,
      encoding: "utf8",
      maxBuffer: 2 ** 30,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const counts = /(\d+) passed, (\d+) failed, \d+ skipped\s*$/.exec(stdout);
  const failed = counts === null ? 1 : Number(counts[2]);
  if (status !== 0) process.stdout.write(stdout);
  console.log(`# ${exact.trim()}: ${counts?.[0].trim() ?? "the tests did not run to their end"}`);
  total.passed += Number(counts?.[1] ?? 0);
  total.failed += status === 0 ? 0 : Math.max(1, failed);
}
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
