/** A PostgreSQL server of our own, on the disk that is measured, as another user where we are root. */
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { findProgram, isRoot } from "../machine.mjs";
import { stopProcess, until } from "../processes.mjs";

/** @returns {Promise<{url: (synchronousCommit: "on" | "off") => string, close: () => Promise<void>}>} */
export async function openPostgres(dir) {
  const data = join(dir, "postgres");
  fs.mkdirSync(data, { mode: 0o700 });
  const user = isRoot ? findUser() : {};
  if (isRoot) fs.chownSync(data, user.uid, user.gid);
  const options = { cwd: "/", env: { PATH: process.env.PATH, LC_ALL: "C" }, ...user };
  const init = ["-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-sync"];
  execFileSync(findProgram("initdb"), init, { ...options, stdio: ["ignore", "ignore", "pipe"] });
  const server = spawn(
    findProgram("postgres"),
    ["-D", data, "-k", data, "-c", "listen_addresses="].concat([
      "-c",
      "shared_buffers=256MB",
      "-c",
      "max_wal_size=4GB",
    ]),
    { ...options, stdio: "ignore" },
  );
  const url = (synchronousCommit) =>
    `postgresql://bench@/postgres?host=${encodeURIComponent(data)}&options=${encodeURIComponent(`-c synchronous_commit=${synchronousCommit}`)}`;
  const { default: pg } = await import("pg");
  await until(() => answers(pg, url("on")), "postgres", { limitMs: 20_000, everyMs: 50 });
  // Fast shutdown: SIGTERM waits for connections to end.
  return { url, close: () => stopProcess(server, "SIGINT") };
}

async function answers(pg, connectionString) {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}

/** PostgreSQL refuses root. */
function findUser() {
  const users = fs
    .readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const found =
    users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody");
  if (found === undefined) throw new Error("no user postgres or nobody to run the server as");
  return { uid: Number(found[2]), gid: Number(found[3]) };
}
