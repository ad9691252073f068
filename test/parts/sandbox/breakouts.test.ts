/** A run behind walls tries to get out in each way that we know. Each attempt says whether it got out, and we look from outside, too. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { saidBy, type WalledPlace, walledPlace } from "./place.ts";

const SECRET = "a-secret-that-must-not-get-out";

/** Runs inside. Prints a line of JSON: the ways in which it got out. */
function breakOut(at: Record<string, string>): void {
  const fs = process.getBuiltinModule("node:fs");
  const net = process.getBuiltinModule("node:net");
  const { spawnSync, spawn } = process.getBuiltinModule("node:child_process");
  const out: string[] = [];
  const tries: Record<string, () => unknown> = {
    "writes into the repository": () => fs.writeFileSync(`${at["repo"]}/README.md`, "x"),
    "writes into the home directory": () => fs.writeFileSync(`${at["home"]}/.bashrc`, "x"),
    "removes the home directory": () => fs.rmSync(`${at["home"]}/kept`),
    "reads a key": () => fs.readFileSync(`${at["home"]}/.ssh/id`, "utf8"),
    "reads a login": () => fs.readFileSync(`${at["home"]}/.netrc`, "utf8").trim() || fail(),
    "reads the key of the pages": () => fs.readFileSync(`${at["state"]}/web/link-key.json`),
    "reads what read_deny names": () => fs.readFileSync(`${at["home"]}/private/note`),
    "reads the environment of the pool": () => fs.readFileSync(`/proc/${at["pool"]}/environ`),
    "reads the memory of another process": () => fs.openSync(`/proc/${at["other"]}/mem`, "r"),
    "ends another process": () => process.kill(Number(at["other"]), "SIGKILL"),
    "writes a setting of the kernel": () => fs.writeFileSync("/proc/sys/kernel/domainname", "x"),
    "writes a setting of the machine": () => fs.writeFileSync("/etc/mailchute-was-here", "x"),
    "writes into the state tree": () => fs.writeFileSync(`${at["state"]}/config.yaml`, "x"),
    "submits a task": () =>
      fs.writeFileSync(`${at["state"]}/mailbox/inbox/mine.json`, '{"exec":["true"]}'),
    "writes into another worktree": () => fs.writeFileSync(`${at["worktree"]}/README.md`, "x"),
    "reads another worktree": () => fs.readFileSync(`${at["worktree"]}/README.md`),
    "writes a hook": () => fs.writeFileSync(`${at["repo"]}/.git/hooks/post-commit`, "x"),
    "changes the settings of git": () => ran("git", "config", "core.pager", "touch /tmp/x"),
    "leads git elsewhere": () => fs.writeFileSync(`${at["gitdir"]}/commondir`, "/tmp"),
    "uses a set user id": () => ran(`${at["home"]}/cat-as-root`, `${at["home"]}/of-root`),
    "makes a device": () => ran("mknod", "device", "b", "8", "0"),
    "takes a cover away": () =>
      ran("unshare", "-Urm", "sh", "-c", `umount ${at["home"]}/.ssh && cat ${at["home"]}/.ssh/id`),
    "makes it writable again": () =>
      ran("unshare", "-Urm", "sh", "-c", `mount -o remount,bind,rw / && echo > ${at["home"]}/x`),
    "gives a key a second name": () => fs.linkSync(`${at["home"]}/.ssh/id`, "key"),
  };
  function fail(): never {
    throw new Error("nothing");
  }
  function ran(program: string, ...args: string[]): void {
    if (spawnSync(program, args, { stdio: "ignore" }).status !== 0) fail();
  }
  for (const [name, act] of Object.entries(tries))
    try {
      act();
      out.push(name);
    } catch {
      // It is held.
    }
  // Branches of the person and objects: changed in its own view alone. The test looks from outside.
  spawnSync("git", ["update-ref", "-d", "refs/heads/main"]);
  spawnSync("sh", ["-c", `rm -rf ${at["repo"]}/.git/objects ${at["repo"]}/.git/refs`]);
  // A daemon that writes when the run has ended.
  spawn("sh", ["-c", "sleep 3; echo late > late"], { detached: true, stdio: "ignore" }).unref();
  const reach = (name: string, options: object): Promise<void> =>
    new Promise((resolve) => {
      const socket = net.connect(options as { port: number }, () => {
        out.push(name);
        socket.destroy();
        resolve();
      });
      socket.on("error", () => resolve());
    });
  void Promise.all([
    reach("reaches a port of the machine", { port: Number(at["port"]), host: "127.0.0.1" }),
    reach("reaches a socket in the home directory", { path: `${at["home"]}/socket` }),
    reach("reaches a socket in /tmp", { path: at["tmpsocket"] }),
    reach("reaches a socket without a path", { path: `\0${at["abstract"]}` }),
  ]).then(() => console.log(JSON.stringify({ out, tries: Object.keys(tries).length })));
}

/** Ways that lead out for a user who may do nothing special. */
const OPEN = [
  "writes into the repository",
  "writes into the home directory",
  "removes the home directory",
  "reads a key",
  "reads a login",
  "reads what read_deny names",
  "reads the key of the pages",
  "reads the environment of the pool",
  "writes into the state tree",
  "submits a task",
  "writes into another worktree",
  "reads another worktree",
  "writes a hook",
  "changes the settings of git",
  "leads git elsewhere",
  "gives a key a second name",
  "uses a set user id",
  "reaches a port of the machine",
  "reaches a socket in the home directory",
  "reaches a socket in /tmp",
  "reaches a socket without a path",
];

it("of 28 ways out of a sandbox none succeeds", async ({ skip }) => {
  const place = walledPlace("{read_deny: [~/private], network: none}", { POOL_SECRET: SECRET });
  if (typeof place === "string") return skip(place);
  const { out, other } = await imprison(place);
  expect(out).toEqual([]);
  const { pool, home, repository } = place;
  expect(other.exitCode).toBeNull();
  expect(fs.readFileSync(join(home, "kept"), "utf8")).toBe(SECRET);
  expect(fs.existsSync("/etc/mailchute-was-here")).toBe(false);
  const git = (...args: string[]): string => repository.git("-c", "safe.directory=*", ...args);
  expect(git("rev-parse", "main")).toMatch(/^[0-9a-f]{40}$/);
  expect(git("fsck", "--full")).not.toContain("missing");
  // All its processes have ended with it, and so has the daemon.
  await waitFor(() => !isThere("sleep 3; echo late"), { what: "the end of the daemon" });
  expect(fs.existsSync(join(pool.state, "worktrees", "prisoner", "late"))).toBe(false);
});

it("without a sandbox the same ways lead out, so the test can fail", async ({ skip }) => {
  const place = walledPlace("open", { POOL_SECRET: SECRET });
  if (typeof place === "string") return skip(place);
  const { out } = await imprison(place);
  expect(out).toEqual(expect.arrayContaining(OPEN));
});

/** Lets a run try to get out. */
async function imprison({
  pool,
  home,
  repository,
  own,
  submit,
}: WalledPlace): Promise<{ out: string[]; other: ChildProcess }> {
  for (const dir of [".ssh", "private"]) fs.mkdirSync(join(home, dir));
  for (const file of [".ssh/id", ".netrc", "private/note", "kept"])
    fs.writeFileSync(join(home, file), SECRET);
  const servers = await Promise.all([
    listen({ port: 0, host: "127.0.0.1" }),
    listen({ path: join(home, "socket") }),
    listen({ path: `/tmp/mailchute-test-${process.pid}.sock` }),
    listen({ path: `\0mailchute-test-${process.pid}` }),
  ]);
  fs.chmodSync(`/tmp/mailchute-test-${process.pid}.sock`, 0o777);
  const other = spawn("sleep", ["600"]);
  onTestFinished(() => void other.kill());
  fs.mkdirSync(join(pool.state, "web"));
  fs.writeFileSync(join(pool.state, "web", "link-key.json"), SECRET);
  own();
  // These two stay with root, where the test is root.
  fs.writeFileSync(join(home, "of-root"), SECRET, { mode: 0o600 });
  fs.copyFileSync("/bin/cat", join(home, "cat-as-root"));
  fs.chmodSync(join(home, "cat-as-root"), 0o4755);
  await pool.start();
  submit("neighbour", "require('fs').writeFileSync('mine', 'x')");
  await pool.result("neighbour");
  const worktrees = join(pool.state, "worktrees");
  const [{ port }] = servers.map((one) => one.address()) as [net.AddressInfo];
  const at = {
    home,
    repo: repository.dir,
    state: pool.state,
    pool: String(pool.supervisor()?.pid),
    other: String(other.pid),
    worktree: join(worktrees, "neighbour"),
    gitdir: join(repository.dir, ".git", "worktrees", "prisoner"),
    port: String(port),
    tmpsocket: `/tmp/mailchute-test-${process.pid}.sock`,
    abstract: `mailchute-test-${process.pid}`,
  };
  submit("prisoner", `(${breakOut.toString()})(${JSON.stringify(at)})`);
  // In the open it breaks what its own end needs.
  const said = await waitFor(() => saidBy(pool, "prisoner"), { what: "what the run says" });
  const { out, tries } = JSON.parse(said);
  expect(tries).toBe(24);
  return { out, other };
}

function isThere(words: string): boolean {
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(words);
      } catch {
        return false;
      }
    });
}

async function listen(where: object): Promise<net.Server> {
  const server = net.createServer((socket) => socket.on("error", () => {}).end("hello"));
  await new Promise<void>((resolve) => server.listen(where, resolve));
  onTestFinished(() => void server.close());
  return server;
}
