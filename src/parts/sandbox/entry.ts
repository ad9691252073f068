/** Runs in the program's own network: passes connections on to the socket of `network.ts`, and starts the program. */
import net from "node:net";
import os from "node:os";
import { spawn } from "../../host/spawn.ts";
import { PROXY_PORT } from "./bubblewrap.ts";

const [socketPath = "", program = "", ...args] = process.argv.slice(2);
/** A shell adds this to the number of a signal. */
const SIGNAL_BASE = 128;

const server = net.createServer((inside) => {
  const outside = net.connect(socketPath);
  inside.on("error", () => outside.destroy());
  outside.on("error", () => inside.destroy());
  inside.pipe(outside).pipe(inside);
});
server.listen(PROXY_PORT, "127.0.0.1", () => {
  const child = spawn(program, args, { stdio: "inherit" });
  // The program gets the signals of its group itself, and decides when it ends.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  child.on("error", (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    process.exit(code ?? SIGNAL_BASE + (signal === null ? 0 : os.constants.signals[signal]));
  });
});
