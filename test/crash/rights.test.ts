/** Another user of the machine: cannot read, change, forge or learn more than the modes allow. And a pool of somebody who is not root. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const OWNER = 65_534;
const STRANGER = 65_533;

/** Only root can be several users; each of them must be able to run this checkout. */
function canBeOthers(): boolean {
  const launcher = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  const can = (uid: number): boolean =>
    spawnSync(process.execPath, [launcher, "--version"], { uid, gid: uid, cwd: "/" }).status === 0;
  if (isRoot && can(OWNER) && can(STRANGER)) return true;
  process.stderr.write(
    `\nSKIPPED: rights of other users: needs root, and a checkout that uid ${OWNER} can run\n`,
  );
  return false;
}

const isOff = !canBeOthers();

/** Runs `sh -c SCRIPT` as the stranger. @returns what it printed, errors too */
function asStranger(script: string, ...args: string[]): string {
  const { stdout, stderr } = spawnSync("sh", ["-c", script, "sh", ...args], {
    uid: STRANGER,
    gid: STRANGER,
    cwd: "/",
    encoding: "utf8",
  });
  return stdout + stderr;
}

/** What the stranger could do that it should not. @param paths directories end in a slash */
function attack(pool: Pool, paths: readonly string[]): string[] {
  const program = programPath("stranger.mjs");
  // On the same file system: hard links lead to no other.
  const home = fs.mkdtempSync(join(os.tmpdir(), "mailchute-stranger-"));
  fs.chmodSync(home, 0o777);
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [program, home, pool.state, pool.pids().join(","), ...paths],
    { uid: STRANGER, gid: STRANGER, cwd: "/", encoding: "utf8" },
  );
  fs.rmSync(home, { recursive: true });
  expect(stderr).toBe("");
  const found = JSON.parse(stdout) as string[];
  const hasProtection = fs.readFileSync("/proc/sys/fs/protected_hardlinks", "utf8").trim() === "1";
  return found.filter((what) => hasProtection || !what.startsWith("hard link to "));
}

function pathsBelow(dir: string): string[] {
  return fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name) + (entry.isDirectory() ? "/" : ""));
}

/** As its owner drops it. */
function drop(pool: Pool, id: string, task: object, uid = OWNER): void {
  const staged = join(pool.dir, `${id}.json`);
  fs.writeFileSync(staged, JSON.stringify(task), { mode: 0o644 });
  fs.chownSync(staged, uid, uid);
  fs.renameSync(staged, join(pool.inbox, `${id}.json`));
}

/** A pool at work, with something of everything in its tree. */
async function busyPool(): Promise<Pool> {
  const pool = newPool({ uid: OWNER });
  await pool.start();
  drop(pool, "good", { exec: ["echo", "secret"] });
  drop(pool, "bad", { exec: ["false"], max_attempts: 1 });
  drop(pool, "refused", { id: "other", exec: ["true"] });
  drop(pool, "later", { exec: ["true"], not_before: 4_000_000_000 });
  drop(pool, "runs", { exec: ["sleep", "60"], env: { TOKEN: "secret" } });
  await pool.result("good");
  await pool.error("bad");
  await pool.error("refused");
  expect((await pool.run(["set-workers", "3", "--wait"])).code).toBe(0);
  await waitFor(() => fs.readdirSync(pool.processing).some((file) => file.includes("~w-")), {
    what: "a task that runs",
  });
  return pool;
}

describe.skipIf(isOff)("another user", () => {
  it("reaches nothing of a state tree, its processes or their environment", async () => {
    const pool = await busyPool();
    // Only the tree's own modes protect it.
    fs.chmodSync(pool.dir, 0o755);
    const paths = [`${pool.state}/`, ...pathsBelow(pool.state)];
    expect(paths.filter((path) => path.includes("~w-"))).toHaveLength(1);
    expect(attack(pool, paths)).toEqual([]);
  });

  it("reaches no file of it when the directories above the trays were opened", async () => {
    const pool = await busyPool();
    for (const dir of [pool.dir, pool.state, pool.mailbox, join(pool.state, "control")])
      fs.chmodSync(dir, 0o755);
    // The test wrote it; the settings of a pool are made by `init` with 0600.
    const below = pathsBelow(pool.state).filter((path) => !path.endsWith("config.yaml"));
    const found = attack(pool, [`${pool.state}/`, ...below]);
    // What was opened can be listed; and the lock, which is empty.
    const mayBe = /^(?:list|watch) (?:mailbox|control|supervisor\.lock)?$/;
    expect(found.filter((what) => !mayBe.test(what))).toEqual([]);
  });

  it("may drop into an open inbox with a sticky bit, and nothing of it runs", async () => {
    const pool = newPool({ uid: OWNER });
    for (const dir of [pool.dir, pool.state, pool.mailbox]) fs.chmodSync(dir, 0o755);
    fs.chmodSync(pool.inbox, 0o1777);
    const mark = join(pool.dir, "it-ran");
    const readable = join(pool.dir, "readable.json");
    fs.writeFileSync(readable, JSON.stringify({ exec: ["touch", mark] }), { mode: 0o644 });
    fs.chownSync(readable, OWNER, OWNER);
    drop(pool, "waits", { exec: ["true"], not_before: 4_000_000_000 });
    const said = asStranger(
      `cd "$1" && printf '%s' "$2" > own.json && ln -s "$3" link.json; ln "$3" hard.json
       mv waits.json mine.json; rm -f waits.json; echo x >> waits.json; touch waits.json; mkdir dir.json; mkfifo pipe.json`,
      pool.inbox,
      fs.readFileSync(readable, "utf8"),
      readable,
    );
    expect(said).toContain("mv: cannot move 'waits.json'");
    expect(said).toContain("rm: cannot remove 'waits.json'");
    await pool.start();
    expect((await pool.error("own")).error).toContain(`belongs to uid ${STRANGER}`);
    expect((await pool.error("link")).error).toContain("not a regular file");
    expect((await pool.error("pipe")).error).toContain("not a regular file");
    // Where the kernel lets strangers make such a link, its second name gives it away.
    if (!said.includes("hard link")) await pool.error("hard");
    drop(pool, "good", { exec: ["true"] });
    await pool.result("good");
    // A directory of somebody else cannot be moved: it stays where it is, and is reported.
    expect(fs.readdirSync(pool.inbox).sort()).toEqual(["dir.json", "waits.json"]);
    expect(JSON.stringify(pool.alerts())).toContain("dir.json");
    expect(fs.existsSync(mark)).toBe(false);
    const ran = pool.events().filter((event) => event["event"] === "started");
    expect(ran.map((event) => event["task_id"])).toEqual(["good"]);
  });

  it("gives no commands, also where the control inbox was opened", async () => {
    const pool = newPool({ uid: OWNER });
    await pool.start();
    const control = join(pool.state, "control");
    for (const dir of [pool.dir, pool.state, control]) fs.chmodSync(dir, 0o755);
    fs.chmodSync(join(control, "inbox"), 0o1777);
    asStranger(`printf '{"command":"pause"}' > "$1/inbox/halt.json"`, control);
    const answer = join(control, "failed", "halt_error.json");
    await waitFor(() => fs.existsSync(answer), { what: "a refusal" });
    expect(fs.readFileSync(answer, "utf8")).toContain(`belongs to uid ${STRANGER}`);
    drop(pool, "good", { exec: ["true"] });
    await pool.result("good");
  });
});

describe.skipIf(isOff)("what others may change is not run from", () => {
  async function expectRefused(pool: Pool, path: string, reason: string): Promise<void> {
    const runs = [pool.run(["run", "--drain"]), pool.run(["worker"])];
    for (const { code, stderr } of await Promise.all(runs)) {
      expect(stderr).toContain("ErrMailboxDir");
      expect(stderr).toContain(`${path} ${reason}`);
      expect(stderr).toMatch(/chmod|chown/);
      expect(code).toBe(73);
    }
  }

  it.each(["mailbox", "inbox", "processing", "outbox", "failed", "tmp", "state"] as const)(
    "%s belongs to another user",
    async (which) => {
      const pool = newPool({ uid: OWNER });
      fs.chownSync(pool[which], STRANGER, STRANGER);
      fs.chmodSync(pool[which], 0o777 & ~0o002);
      await expectRefused(pool, pool[which], `belongs to uid ${STRANGER}`);
    },
  );

  it.each([0o777, 0o1777])(
    "the state directory has mode %o: a plan could be put there",
    async (mode) => {
      const pool = newPool({ uid: OWNER });
      fs.chmodSync(pool.state, mode);
      await expectRefused(pool, pool.state, "is writable by every user");
    },
  );

  it("root's pool in a directory of another user, unless the settings allow that uid", async () => {
    const refused = newPool();
    fs.chownSync(refused.inbox, OWNER, OWNER);
    await expectRefused(refused, refused.inbox, `belongs to uid ${OWNER}`);
    const allowed = newPool({ config: `${QUICK_CONFIG}uids: [${OWNER}]\n` });
    for (const dir of [allowed.state, allowed.inbox]) fs.chownSync(dir, OWNER, OWNER);
    drop(allowed, "guest", { exec: ["id", "-u"] });
    expect((await allowed.run(["run", "--drain"])).code).toBe(0);
    expect((await allowed.result("guest")).output).toBe("0\n");
  });
});

describe.skipIf(isOff)("a pool of a user who is not root", () => {
  it("works whole: runs, retries, gives up, recovers from kills, drains", async () => {
    const pool = newPool({ uid: OWNER });
    const supervisor = await pool.start();
    const ids = ["good", "flaky", "fails", "long", "last"];
    const flag = join(pool.dir, "flag");
    drop(pool, "good", { exec: ["id", "-u"] });
    drop(pool, "flaky", { exec: ["sh", "-c", `test -e ${flag} || { touch ${flag}; exit 1; }`] });
    drop(pool, "fails", { exec: ["false"], max_attempts: 2 });
    expect((await pool.result("good")).output).toBe(`${OWNER}\n`);
    expect((await pool.result("flaky")).attempts).toBe(2);
    expect((await pool.error("fails")).attempts).toBe(2);
    const go = join(pool.dir, "go");
    const begun = join(pool.dir, "begun");
    const program = `echo run >> ${begun}; until test -e ${go}; do sleep 0.1; done`;
    drop(pool, "long", { exec: ["sh", "-c", program] });
    const holder = (): number | undefined =>
      pool.workers().find((worker) => worker.supervisor_pid === supervisor.pid)?.pid;
    // A run counts from the start of its program.
    const isRunning = (run: number): boolean =>
      fs.existsSync(begun) && fs.readFileSync(begun, "utf8").split("run").length > run;
    await waitFor(() => isRunning(1), { what: "the first run" });
    process.kill(holder() ?? 0, "SIGKILL");
    await waitFor(() => isRunning(2), { what: "the second run" });
    await pool.killAll();
    fs.writeFileSync(go, "");
    drop(pool, "last", { exec: ["true"] });
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
    expect((await pool.result("long")).attempts).toBe(3);
    expect(checkState(pool.state, ids, { hadCrashes: true })).toEqual([]);
    for (const path of pathsBelow(pool.state)) expect(fs.statSync(path).uid, path).toBe(OWNER);
  });

  it("runs files of an allowed user, whose times it cannot set: a retry waits in the worker's hands", async () => {
    const pool = newPool({ uid: OWNER, config: `${QUICK_CONFIG}uids: [${STRANGER}]\n` });
    drop(pool, "good", { exec: ["true"] }, STRANGER);
    drop(pool, "fails", { exec: ["false"], max_attempts: 3 }, STRANGER);
    // "Try later" uses up no attempt: without a wait it would run as fast as it can.
    const flag = join(pool.dir, "flag");
    const later = `test -e ${flag} && exit 0; touch ${flag}; exit 75`;
    drop(pool, "later", { exec: ["sh", "-c", later], max_attempts: 1 }, STRANGER);
    expect((await pool.run(["run", "--drain"])).code).toBe(1);
    expect((await pool.result("good")).attempts).toBe(1);
    expect((await pool.error("fails")).attempts).toBe(3);
    expect((await pool.result("later")).attempts).toBe(1);
    const started = pool.events().filter((event) => event["event"] === "started");
    expect(started.filter((event) => event["task_id"] === "later")).toHaveLength(2);
    expect(checkState(pool.state, ["good", "fails", "later"])).toEqual([]);
  });

  it("holds a file of an allowed user for as long as it lives, though it cannot touch it", async () => {
    const config = `${QUICK_CONFIG}uids: [${STRANGER}]\nlease_ttl_ms: 1500\nheartbeat_ms: 200\n`;
    const pool = newPool({ uid: OWNER, config });
    drop(pool, "long", { exec: ["sleep", "5"] }, STRANGER);
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
    expect((await pool.result("long")).attempts).toBe(1);
    expect(checkState(pool.state, ["long"])).toEqual([]);
  });
});
