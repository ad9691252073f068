/** Builds the machines of every-step/ and runs one of them with this process's arguments and terminal. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildOnce } from "./build.mjs";

/** @param {string} program its file in every-step/. This process ends as it ends */
export function launch(program) {
  const path = join(buildOnce(), "test/crash/every-step", program);
  const hook = fileURLToPath(new URL("hook.cjs", import.meta.url));
  const child = spawn(process.execPath, [path, ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, MAILCHUTE_CRASH_HOOK: hook },
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}
