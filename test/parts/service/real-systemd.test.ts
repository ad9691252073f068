/** `service` with a real systemd: it starts the pool, starts it again when it died or hangs, and restarts lose nothing. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { startUserSystemd, type UserSystemd, whyNoSystemd } from "../../support/user-systemd.ts";
import { waitFor } from "../../support/wait-for.ts";

const reason = whyNoSystemd();
if (reason !== undefined) process.stderr.write(`\nSKIPPED: ${reason}\n`);
/** `npm run test:service` takes 10,000. */
const TASKS = Number(process.env["MAILCHUTE_SERVICE_TASKS"] ?? 300);
const RESTARTS = 5;

interface Installed {
  pool: Pool;
  systemd: UserSystemd;
  service: (...words: string[]) => ReturnType<Pool["run"]>;
  mainPid: () => number;
}

async function installed(): Promise<Installed> {
  const systemd = await startUserSystemd(tempDir(), onTestFinished);
  const { prefix, env } = systemd;
  // What has a meaning in a unit may stand in a path.
  const parent = join(tempDir(), `100%h $HOME "a" 'b' \\c`);
  fs.mkdirSync(parent);
  const pool = newPool({ config: QUICK_CONFIG, env, prefix, parent });
  onTestFinished(() => void systemd.ctl("stop", "mailchute.service"));
  const service = (...words: string[]): ReturnType<Pool["run"]> =>
    pool.run(["service", ...words, "--user"]);
  const { code, stderr } = await service("install");
  expect({ code, stderr: stderr.includes("Err") }, stderr).toEqual({ code: 0, stderr: false });
  const mainPid = (): number =>
    Number(systemd.ctl("show", "mailchute.service", "--property=MainPID", "--value"));
  return { pool, systemd, service, mainPid };
}

const isActive = ({ systemd }: Installed): boolean =>
  systemd.ctl("is-active", "mailchute.service") === "active";

test.skipIf(reason !== undefined)(
  "the pool runs, is started again when it is killed, and not when it is stopped",
  async () => {
    const place = await installed();
    const { pool, systemd, service, mainPid } = place;
    expect(isActive(place)).toBe(true);
    expect(systemd.ctl("is-enabled", "mailchute.service")).toBe("enabled");
    pool.drop("env", { exec: ["sh", "-c", 'echo "[$NOTIFY_SOCKET$WATCHDOG_USEC]"'] });
    expect((await pool.result("env")).output).toBe("[]\n");

    const first = mainPid();
    process.kill(first, "SIGKILL");
    await waitFor(() => ![0, first].includes(mainPid()) && isActive(place), {
      what: "another",
      timeoutMs: 30_000,
    });
    pool.drop("b", { exec: ["true"] });
    await pool.result("b");
    const { stdout } = await service("status", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      installed: true,
      active: "active",
      enabled: "enabled",
      restarts: 1,
      pid: mainPid(),
      state: pool.state,
      missing_programs: [],
    });

    await pool.run(["stop"]);
    await waitFor(() => systemd.ctl("is-active", "mailchute.service") === "inactive", {
      what: "its end",
    });
    expect((await service("status")).code).toBe(1);
    expect((await service("remove")).code).toBe(0);
    expect(fs.readdirSync(systemd.unitDir).filter((name) => name.endsWith(".service"))).toEqual([]);
    expect((await service("status")).code).toBe(3);
  },
);

test.skipIf(reason !== undefined)("a pool that hangs is killed and started again", async () => {
  const place = await installed();
  const { systemd, mainPid } = place;
  const dropIns = join(systemd.unitDir, "mailchute.service.d");
  fs.mkdirSync(dropIns);
  fs.writeFileSync(join(dropIns, "soon.conf"), "[Service]\nWatchdogSec=4\nRestartSec=100ms\n");
  systemd.ctl("daemon-reload");
  systemd.ctl("restart", "mailchute.service");
  const first = mainPid();
  const from = performance.now();
  // Longer than the watchdog waits: it works, so it stays.
  await waitFor(() => performance.now() - from > 6000, { what: "some pings", timeoutMs: 12_000 });
  expect(mainPid()).toBe(first);
  process.kill(first, "SIGSTOP");
  await waitFor(() => ![0, first].includes(mainPid()) && isActive(place), {
    what: "another process",
    timeoutMs: 30_000,
  });
  expect(systemd.ctl("show", "mailchute.service", "--property=NRestarts", "--value")).toBe("1");
});

test.skipIf(reason !== undefined)(
  `${TASKS} tasks complete once each although the service is installed anew ${RESTARTS} times meanwhile`,
  async () => {
    const { pool, service } = await installed();
    const lines = Array.from({ length: TASKS }, (_, n) => `{"id":"t${n}","exec":["true"]}\n`);
    const each = Math.ceil(TASKS / RESTARTS);
    for (let n = 0; n < RESTARTS; n++) {
      const text = lines.slice(n * each, (n + 1) * each).join("");
      expect((await pool.run(["enqueue", "--file", "-"], text)).code).toBe(0);
      const { code, stderr } = await service("install");
      expect(code, stderr).toBe(0);
    }
    await waitFor(() => pool.settledCount() >= TASKS, {
      what: "the end of all",
      timeoutMs: 60_000 + TASKS * 20,
    });
    const completed = pool.events().filter(({ event }) => event === "completed");
    expect(new Set(completed.map(({ task_id: id }) => id)).size).toBe(TASKS);
    expect(completed).toHaveLength(TASKS);
    expect(pool.errors()).toEqual([]);
  },
  900_000,
);
