#!/usr/bin/env node
/**
 * wave0.mjs [STATE]: runs the roadmap of a state tree to its end, and keeps what it says in analytics/wave0_startup.log.
 * The tree is STATE, $MAILCHUTE_STATE, or the sample in state/. Ends as `mailchute run --drain` does.
 */
import "./own-folders.mjs";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const [named] = readFlags(import.meta.url, { allowPositionals: true }).positionals;
const state = resolve(named ?? process.env.MAILCHUTE_STATE ?? join(root, "state"));
const analytics = join(state, "analytics");
for (const dir of [state, analytics]) if (!fs.existsSync(dir)) fs.mkdirSync(dir, { mode: 0o700 });
const log = fs.createWriteStream(join(analytics, "wave0_startup.log"), {
  flags: "a",
  mode: 0o600,
});

const child = spawn(
  process.execPath,
  [join(root, "bin", "mailchute.js"), "run", "--drain", "--state", state],
  {
    stdio: ["ignore", "pipe", "pipe"],
  },
);
for (const [from, to] of [
  [child.stdout, process.stdout],
  [child.stderr, process.stderr],
]) {
  from.on("data", (text) => {
    log.write(text);
    to.write(text);
  });
}
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.on("close", (code) => {
  log.end();
  process.exitCode = code ?? 1;
});
