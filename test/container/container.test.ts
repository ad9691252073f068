/** The pool in a container: process 1, signals, orphans, a read-only root, another user, limits. `npm run test:container` */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { installGlobally, pack } from "../install/installed.ts";
import { controlGroup, whyNoGroup } from "../resources/control-group.ts";
import { endOfFile, tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import {
  type Container,
  drop,
  newWork,
  record,
  startContainer,
  UID,
  whyNoContainer,
} from "./container.ts";

const MIB = 1024 * 1024;
const why = whyNoContainer();
if (why !== undefined) process.stderr.write(`\nSKIPPED: containers: ${why}\n`);

const onEnd = endOfFile();
let installed: string | undefined;

/** The packed archive, installed once. */
function install(): string {
  if (installed !== undefined) return installed;
  installed = tempDir(onEnd);
  fs.chmodSync(installed, 0o755);
  installGlobally(pack(onEnd).path, installed);
  return installed;
}

async function isWell(container: Container): Promise<void> {
  let hasEnded = false;
  void container.ended.then(() => {
    hasEnded = true;
  });
  await waitFor(() => hasEnded || container.exec("health").status === 0, {
    what: "a pool that is well",
  });
  expect(hasEnded, container.stderr()).toBe(false);
}

describe.skipIf(why !== undefined)("in a container", () => {
  it("with a read-only root, as another user, it works, reaps orphans, and gives back at SIGTERM what runs", async () => {
    const work = newWork();
    const container = startContainer({ installed: install(), work }, "run", "--workers", "4");
    await isWell(container);
    expect(container.exec("health").stdout).toContain("well: the supervisor");
    for (let i = 0; i < 12; i++)
      drop(work, `t-${i}`, { exec: ["sh", "-c", "sleep 60 & setsid sleep 60 & id -u"] });
    drop(work, "writes", {
      exec: ["sh", "-c", "touch /tmp/a /work/a && touch /usr/a /a"],
      max_attempts: 1,
    });
    for (let i = 0; i < 12; i++)
      expect(await record(work, "outbox", `t-${i}`)).toMatchObject({ output: `${UID}\n` });
    expect((await record(work, "failed", "writes"))["error"]).toContain("Read-only file system");
    expect(fs.statSync(join(work, "a")).uid).toBe(UID);
    await waitFor(() => container.processes().every(({ state }) => state !== "Z"), {
      what: "the end of all zombies",
    });
    drop(work, "long", { exec: ["sh", "-c", "touch /work/started; sleep 60"] });
    await waitFor(() => fs.existsSync(join(work, "started")), { what: "its run" });
    process.kill(container.init(), "SIGTERM");
    expect(await container.ended).toEqual({ code: 0, signal: null });
    const processing = fs.readdirSync(join(work, "state/mailbox/processing"));
    expect(processing).toEqual([expect.stringMatching(/^long@\w+\.1~ready\.json$/)]);
  });

  it.each([
    ["belongs to another user", { owner: 0, isWorkReadOnly: false }],
    ["is mounted read-only", { owner: UID, isWorkReadOnly: true }],
  ])("says what is wrong when /work %s", async (_, { owner, isWorkReadOnly }) => {
    const work = newWork(owner);
    fs.chmodSync(work, 0o755);
    const container = startContainer({ installed: install(), work, isWorkReadOnly }, "run");
    expect((await container.ended).code).not.toBe(0);
    const said = container.stderr();
    expect(said).toContain("/work");
    expect(said).toMatch(isWorkReadOnly ? /EROFS|read-only/ : /EACCES|permission/);
    expect(said).toContain("do: ");
  });

  it("killed, it leaves its task to the next container over the same folder", async () => {
    const work = newWork();
    fs.mkdirSync(join(work, "state"));
    fs.writeFileSync(join(work, "state/config.yaml"), "lease_ttl_ms: 3000\nheartbeat_ms: 300\n");
    for (const path of ["state", "state/config.yaml"]) fs.chownSync(join(work, path), UID, UID);
    const first = startContainer({ installed: install(), work }, "run");
    await isWell(first);
    const script =
      "if [ -e /work/started ]; then echo again; else touch /work/started; sleep 60; fi";
    drop(work, "long", { exec: ["sh", "-c", script] });
    await waitFor(() => fs.existsSync(join(work, "started")), { what: "its run" });
    process.kill(first.init(), "SIGKILL");
    await first.ended;
    const second = startContainer({ installed: install(), work }, "run");
    expect(await record(work, "outbox", "long")).toMatchObject({ output: "again\n", attempts: 2 });
    await isWell(second);
  });

  it("run limits hold, the neighbours complete", async () => {
    const work = newWork();
    const container = startContainer({ installed: install(), work }, "run", "--workers", "4");
    await isWell(container);
    const eat = `const kept = []; for (let i = 0; i < 60; i++) kept.push(Buffer.alloc(8 * ${MIB}, 1)); setTimeout(() => {}, 8000);`;
    drop(work, "memory", { exec: ["node", "-e", eat], run_limits: { memory_bytes: 150 * MIB } });
    drop(work, "processes", {
      exec: ["sh", "-c", "i=0; while [ $i -lt 100 ]; do sleep 8 & i=$((i+1)); done; sleep 8"],
      run_limits: { processes: 20 },
    });
    for (let i = 0; i < 20; i++) drop(work, `n-${i}`, { exec: ["echo", "fine"] });
    expect(await record(work, "failed", "memory")).toMatchObject({ kind: "memory" });
    expect(await record(work, "failed", "processes")).toMatchObject({ kind: "processes" });
    for (let i = 0; i < 20; i++)
      expect(await record(work, "outbox", `n-${i}`)).toMatchObject({ output: "fine\n" });
  });

  it.skipIf(whyNoGroup("memory") !== undefined)(
    "what takes more than the container has is killed, and the pool goes on",
    async () => {
      const work = newWork();
      const group = controlGroup("memory");
      group.limit(400 * MIB);
      const container = startContainer({ installed: install(), work, prefix: group.prefix }, "run");
      await isWell(container);
      const eat = `const kept = []; for (let i = 0; i < 100; i++) kept.push(Buffer.alloc(8 * ${MIB}, 1));`;
      // With a limit of its own the kernel takes it first, not the pool.
      drop(work, "eats", {
        exec: ["node", "-e", eat],
        max_attempts: 1,
        run_limits: { memory_bytes: 900 * MIB },
      });
      expect(await record(work, "failed", "eats")).toMatchObject({
        kind: "signal",
        signal: "SIGKILL",
      });
      drop(work, "after", { exec: ["echo", "fine"] });
      expect(await record(work, "outbox", "after")).toMatchObject({ output: "fine\n" });
      await isWell(container);
    },
  );

  it.skipIf(whyNoGroup("pids") !== undefined)(
    "with few processes allowed it works, or says so",
    async () => {
      const work = newWork();
      const group = controlGroup("pids");
      group.limit(150);
      const container = startContainer(
        { installed: install(), work, prefix: group.prefix },
        "run",
        "--workers",
        "2",
      );
      await isWell(container);
      drop(work, "forks", {
        exec: ["sh", "-c", "i=0; while [ $i -lt 300 ]; do sleep 3 & i=$((i+1)); done; sleep 3"],
        max_attempts: 1,
      });
      // It cannot have all that it wants, and the pool is not harmed.
      await record(work, "failed", "forks");
      drop(work, "after", { exec: ["echo", "fine"] });
      expect(await record(work, "outbox", "after")).toMatchObject({ output: "fine\n" });
      group.limit(1);
      drop(work, "waits", { exec: ["echo", "later"] });
      const alerts = join(work, "state/analytics/alerts.jsonl");
      await waitFor(
        () => fs.existsSync(alerts) && fs.readFileSync(alerts, "utf8").includes("waits"),
        {
          what: "an alert that it waits",
        },
      );
      group.limit(undefined);
      expect(await record(work, "outbox", "waits")).toMatchObject({
        output: "later\n",
        attempts: 1,
      });
    },
  );
});
