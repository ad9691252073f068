/** A Redis server of our own, on the disk that is measured. */
import { spawn } from "node:child_process";
import net from "node:net";
import { join } from "node:path";
import { findProgram } from "../machine.mjs";
import { stopProcess, until } from "../processes.mjs";

/** @param appendfsync `everysec` or `always`. @returns {Promise<{connection: object, close: () => Promise<void>}>} */
export async function openRedis(dir, appendfsync) {
  const path = join(dir, "redis.sock");
  const server = spawn(
    findProgram("redis-server"),
    // A socket file is the fastest way to it.
    ["--port", "0", "--unixsocket", path, "--dir", dir, "--save", "", "--appendonly", "yes"].concat(
      ["--appendfsync", appendfsync, "--maxmemory-policy", "noeviction"],
    ),
    { stdio: "ignore" },
  );
  await until(() => answers(path), "redis-server", { limitMs: 10_000, everyMs: 10 });
  return { connection: { path }, close: () => stopProcess(server) };
}

function answers(path) {
  return new Promise((resolve) => {
    const socket = net.connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
