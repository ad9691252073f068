/** `cluster: {bridge: true}` with a real server: the bridge lives as long as its supervisor, and comes again when it dies. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { newPool, QUICK_CONFIG } from "../../../support/pool.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const onEnd = endOfFile();
let server: Server;

beforeAll(async () => {
  server = await Server.start(tempDir(onEnd));
  onEnd(() => server.kill());
});

const isAlive = (pid: number): boolean => fs.existsSync(`/proc/${pid}`);

test("the bridge of a run comes again when it dies, and ends with the run, also with one that is killed", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}
agents:
  - {name: far, kind: remote, where: here, as: near}
  - {name: near, kind: exec, program: sh, args: [-c, "true"]}
cluster: {servers: ["${server.url}"], name: solo, bridge: true, serves: [here], accept: [near]}
`,
  });
  fs.symlinkSync(join(CACHE, "node_modules"), join(pool.dir, "node_modules"));
  const path = join(pool.state, "cluster/bridge.json");
  const bridgePid = (other = 0): Promise<number> =>
    waitFor(
      () => {
        if (!fs.existsSync(path)) return undefined;
        const { pid } = JSON.parse(fs.readFileSync(path, "utf8")) as { pid: number };
        return pid !== other && isAlive(pid) ? pid : undefined;
      },
      { what: "the bridge" },
    );
  const run = await pool.start();
  const first = await bridgePid();
  // This machine works for itself: the task leaves, comes back as another one, and settles.
  pool.drop("one", { agent: "far", prompt: "?" });
  expect(await pool.result("one")).toMatchObject({ machine: "solo" });
  process.kill(first, "SIGKILL");
  const second = await bridgePid(first);
  pool.drop("two", { agent: "far", prompt: "?" });
  expect(await pool.result("two")).toMatchObject({ machine: "solo" });
  expect(run.stderr()).toContain("the bridge has ended (SIGKILL)");
  run.child.kill("SIGKILL");
  await waitFor(() => !isAlive(second), { what: "the end of the bridge" });
  const again = await pool.start();
  const third = await bridgePid(second);
  again.child.kill("SIGTERM");
  await again.ended;
  expect(isAlive(third)).toBe(false);
  expect(again.stderr()).not.toContain("the bridge has ended");
});
