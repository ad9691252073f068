/** A worker that gets its orders from a supervisor of an earlier version, as after an upgrade below a running supervisor. */
import { fork } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { pathInPackage } from "../../src/host/package.ts";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

it("renews its lease though the supervisor knows fewer settings", async () => {
  const pool = newPool();
  await pool.run(["run", "--drain"]);
  const { stall_ms: _, ...settings } = DEFAULT_SETTINGS;
  const worker = fork(pathInPackage("dist/worker/entry.cjs"), { stdio: ["ignore", 2, 2, "ipc"] });
  onTestFinished(() => void worker.kill("SIGKILL"));
  worker.send({
    stateDir: pool.state,
    mailboxDir: pool.mailbox,
    settings: { ...settings, heartbeat_ms: 20 },
    slots: 1,
    threads: 4,
    isSpawned: true,
  });
  const id = await waitFor(() => pool.workers()[0]?.id, { what: "the worker" });
  const path = join(pool.state, "workers", `${id}.json`);
  const { mtimeMs } = fs.statSync(path);
  await waitFor(() => fs.statSync(path).mtimeMs !== mtimeMs, { what: "its heartbeat" });
  expect(worker.exitCode).toBeNull();
});
