/** The lock that keeps a second supervisor from starting, and does not stand in the way of a successor. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { ErrSupervisorRunning } from "../../../src/core/errors.ts";
import { lockFile } from "../../../src/host/file-lock.ts";
import { thisProcess } from "../../../src/host/identity.ts";
import { treeIdOf } from "../../../src/host/tree-id.ts";
import { SupervisorLock } from "../../../src/supervisor/documents/supervisor-lock.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { timeLimitMs } from "../../support/time-limit.ts";

interface Tree {
  dir: string;
  document: string;
  lockDir: string;
}

function newTree(): Tree {
  const dir = tempDir();
  return { dir, document: join(dir, "supervisor.json"), lockDir: join(dir, "supervisor.lock") };
}

/** What a supervisor with this pid leaves, or has just written. */
function introduce(
  { document, dir }: Tree,
  pid: number,
  heartbeatMs = Date.now(),
  tree = treeIdOf(dir),
): void {
  const { place, startTicks } = thisProcess();
  const at = new Date(heartbeatMs).toISOString();
  const who = { pid, place, start_ticks: startTicks, tree, started_at: at, heartbeat_at: at };
  fs.writeFileSync(document, JSON.stringify({ ...who, status: "running" }));
}

function deadPid(): number {
  return spawnSync("true").pid;
}

it("is for its owner alone, whatever the umask leaves", async () => {
  const { dir, document, lockDir } = newTree();
  const before = process.umask(0);
  try {
    const lock = await SupervisorLock.acquire(dir, document);
    const other = join(dir, "kv.lock");
    const giveBack = await lockFile(other);
    for (const path of [lockDir, other]) expect(fs.statSync(path).mode & 0o077, path).toBe(0);
    await giveBack?.();
    await lock.free();
  } finally {
    process.umask(before);
  }
});

async function msToAcquire({ dir, document }: Tree): Promise<number> {
  const before = performance.now();
  const lock = await SupervisorLock.acquire(dir, document);
  const ms = performance.now() - before;
  await lock.free();
  return ms;
}

it("is refused while its owner lives", async () => {
  const tree = newTree();
  const lock = await SupervisorLock.acquire(tree.dir, tree.document);
  introduce(tree, process.pid);
  await expect(SupervisorLock.acquire(tree.dir, tree.document)).rejects.toThrow(
    ErrSupervisorRunning,
  );
  await lock.free();
});

it("is taken over at once from a process that was killed", async () => {
  const tree = newTree();
  fs.mkdirSync(tree.lockDir);
  introduce(tree, deadPid());
  expect(await msToAcquire(tree)).toBeLessThan(timeLimitMs(500));
});

it("leaves a successor the time to say who it is", async () => {
  const tree = newTree();
  // The document is still that of the dead; the lock is already that of somebody new.
  introduce(tree, deadPid(), Date.now() - 10_000);
  fs.mkdirSync(tree.lockDir);
  const second = SupervisorLock.acquire(tree.dir, tree.document);
  introduce(tree, process.pid);
  await expect(second).rejects.toThrow(ErrSupervisorRunning);
});

it("is taken over in a copy of a tree whose owner lives in the original", async () => {
  const [tree, copy] = [newTree(), newTree()];
  fs.mkdirSync(copy.lockDir);
  introduce(copy, process.pid, Date.now(), treeIdOf(tree.dir));
  await msToAcquire(copy);
});

it("is refused while somebody renews it, whatever tree he says it is", async () => {
  const tree = newTree();
  const lock = await SupervisorLock.acquire(tree.dir, tree.document);
  introduce(tree, process.pid, Date.now(), "0:0");
  await expect(SupervisorLock.acquire(tree.dir, tree.document)).rejects.toThrow(
    ErrSupervisorRunning,
  );
  await lock.free();
});

it("is free again after its owner has freed it", async () => {
  const tree = newTree();
  await msToAcquire(tree);
  expect(await msToAcquire(tree)).toBeLessThan(timeLimitMs(500));
});

it("is taken when others remove it several times just as it is made, after that of a dead process", async () => {
  const tree = newTree();
  fs.mkdirSync(tree.lockDir);
  introduce(tree, deadPid());
  const real = fs.utimes;
  let robberies = 0;
  const utimes = vi.spyOn(fs, "utimes").mockImplementation((path, atime, mtime, done) => {
    // On a busy machine the lock of the dead process can go first.
    if (robberies < 5 && fs.existsSync(tree.lockDir)) {
      robberies++;
      fs.rmdirSync(tree.lockDir);
    }
    real(path, atime, mtime, done);
  });
  onTestFinished(() => utimes.mockRestore());
  const lock = await SupervisorLock.acquire(tree.dir, tree.document);
  expect(robberies).toBe(5);
  expect(fs.existsSync(tree.lockDir)).toBe(true);
  await lock.free();
});

it("is taken all the same when another starter removes it just as it is made", async () => {
  let isHeld = false;
  // Removed a moment later it is lost to its owner, who finds that out when he renews it.
  for (let tries = 0; tries < 10 && !isHeld; tries++) {
    const tree = newTree();
    let isOver = false;
    const rob = (): void => {
      if (isOver) return;
      if (fs.existsSync(tree.lockDir)) fs.rmdirSync(tree.lockDir);
      else setImmediate(rob);
    };
    setImmediate(rob);
    const lock = await SupervisorLock.acquire(tree.dir, tree.document);
    isOver = true;
    isHeld = fs.existsSync(tree.lockDir);
    await lock.free();
  }
  expect(isHeld).toBe(true);
});
