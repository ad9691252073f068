/** Mailboxes that cannot be trusted are refused at the start; files that cannot be read are left alone until they can. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { Mailbox } from "../../src/library/mailbox.ts";
import { canDropRoot, NOBODY } from "../support/other-user.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { canMount, smallDisk } from "../support/small-disk.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const GOOD = '{"exec":["echo","read"]}';
const isRoot = process.getuid?.() === 0;
const hasMount = canMount();

async function expectRefused(pool: Pool, path: string, reason: string): Promise<void> {
  const runs = [pool.run(["run", "--drain"]), pool.run(["enqueue", "--id", "x", "--", "true"])];
  for (const { code, stderr } of await Promise.all(runs)) {
    expect(stderr).toContain("ErrMailboxDir");
    expect(stderr).toContain(path);
    expect(stderr).toContain(reason);
    expect(code).toBe(73);
  }
  expect(fs.existsSync(join(pool.inbox, "x.json"))).toBe(false);
}

describe.skipIf(process.platform !== "linux")("a place where no directory can be made", () => {
  const nowhere = `/proc/nowhere-${process.pid}/x`;
  const place = { code: "ErrMailboxDir", path: nowhere, hint: expect.stringContaining("--state") };

  it.each([["enqueue", "--", "true"], ["run"], ["init"]])(
    "%s says so, and ends",
    (verb, ...rest) => {
      const { status, stderr } = spawnSync(
        process.execPath,
        [LAUNCHER, verb, "--json", "--state", nowhere, ...rest],
        { encoding: "utf8", timeout: Math.ceil(timeLimitMs(10_000)), killSignal: "SIGKILL" },
      );
      expect(status, stderr).toBe(73);
      expect(JSON.parse(stderr.trim().split("\n").at(-1) ?? "").error).toMatchObject({
        ...place,
        path: expect.stringContaining(nowhere),
      });
    },
  );

  it("is an error for the library, too", () => {
    expect(() => Mailbox.open(nowhere)).toThrow(expect.objectContaining(place));
  });
});

describe("a mailbox that cannot be trusted is refused with exit 73", () => {
  it.each(["mailbox", "inbox", "processing", "outbox", "failed", "tmp"] as const)(
    "%s is writable by every user",
    async (which) => {
      const pool = newPool();
      fs.chmodSync(pool[which], 0o777);
      await expectRefused(pool, pool[which], "writable by every user");
    },
  );

  it("unless the sticky bit keeps others from moving what is not theirs", async () => {
    const pool = newPool();
    fs.chmodSync(pool.inbox, 0o1777);
    pool.drop("fine", { exec: ["true"] });
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
  });

  it("a tray is a link, also to a directory", async () => {
    const pool = newPool();
    fs.rmdirSync(pool.outbox);
    fs.mkdirSync(join(pool.dir, "elsewhere"));
    fs.symlinkSync(join(pool.dir, "elsewhere"), pool.outbox);
    await expectRefused(pool, pool.outbox, "is not a directory");
  });

  it("a tray is a file", async () => {
    const pool = newPool();
    fs.rmdirSync(pool.failed);
    fs.writeFileSync(pool.failed, "");
    await expectRefused(pool, pool.failed, "is not a directory");
  });

  it.skipIf(!hasMount)("a tray lies on another file system", async () => {
    const pool = newPool();
    const disk = smallDisk();
    fs.chmodSync(disk.dir, 0o700);
    execFileSync("mount", ["--bind", disk.dir, pool.failed]);
    onTestFinished(() => {
      execFileSync("umount", ["-l", pool.failed]);
    });
    await expectRefused(pool, pool.failed, "another file system");
  });
});

describe("a file that cannot be read", () => {
  it.skipIf(!canDropRoot())(
    "stays, is reported once, and runs when its rights change",
    async () => {
      const pool = newPool(isRoot ? { uid: NOBODY } : {});
      await pool.start();
      const path = join(pool.inbox, "locked.json");
      const staged = join(pool.dir, "locked.json");
      fs.writeFileSync(staged, GOOD);
      if (isRoot) fs.chownSync(staged, NOBODY, NOBODY);
      fs.chmodSync(staged, 0);
      fs.renameSync(staged, path);
      const reports = (): unknown[] =>
        pool.alerts().filter((alert) => String(alert["message"]).includes("locked.json"));
      await waitFor(() => reports().length > 0, { what: "a report" });
      // Nobody waits for it, and several sweeps later it was not reported again.
      const heartbeat = pool.supervisor()?.heartbeat_at;
      pool.drop("good", { exec: ["true"] });
      await pool.result("good", 2000);
      await waitFor(() => (pool.supervisor()?.heartbeat_at ?? heartbeat) !== heartbeat, {
        what: "a heartbeat",
      });
      expect(reports()).toHaveLength(1);
      expect(fs.existsSync(path)).toBe(true);
      expect(pool.errors()).toEqual([]);
      fs.chmodSync(path, 0o600);
      expect((await pool.result("locked")).output).toBe("read\n");
    },
  );
});

describe("a file of another owner", () => {
  it.skipIf(!isRoot)("runs when the settings allow that owner", async () => {
    const pool = newPool({ config: `${QUICK_CONFIG}uids: [${NOBODY}]\n` });
    await pool.start();
    const path = join(pool.inbox, "guest.json");
    fs.writeFileSync(join(pool.dir, "guest.json"), GOOD);
    fs.chownSync(join(pool.dir, "guest.json"), NOBODY, NOBODY);
    fs.renameSync(join(pool.dir, "guest.json"), path);
    expect((await pool.result("guest")).output).toBe("read\n");
  });
});

describe("a second hard link", () => {
  it("that goes away in time is waited for: that is how a safe submit looks from outside", async () => {
    const pool = newPool({ config: QUICK_CONFIG.replace("settle_ms: 300", "settle_ms: 5000") });
    await pool.start();
    const staged = join(pool.tmp, "mine.tmp");
    fs.writeFileSync(staged, GOOD);
    fs.linkSync(staged, join(pool.inbox, "linked.json"));
    pool.drop("good", { exec: ["true"] });
    await pool.result("good");
    expect(fs.existsSync(join(pool.inbox, "linked.json"))).toBe(true);
    fs.unlinkSync(staged);
    expect((await pool.result("linked")).output).toBe("read\n");
  });
});
