/** Builds the machine that cuts the power at every step, and runs it: `node test/crash/power.mjs [ARGS]`. Needs root. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildOnce } from "./build.mjs";

const dir = buildOnce();
const child = spawn(
  process.execPath,
  [join(dir, "test/crash/every-step/power.js"), ...process.argv.slice(2)],
  {
    stdio: "inherit",
    env: {
      ...process.env,
      MAILCHUTE_CRASH_HOOK: fileURLToPath(new URL("hook.cjs", import.meta.url)),
    },
  },
);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
