/** The unit that `service` makes, read by systemd's own verifier; what the supervisor tells systemd; what `service` says where there is none. */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SystemdSocket } from "../../../src/parts/service/tell-systemd.ts";
import {
  makeUnit,
  programsOfUnit,
  treeOfUnit,
  type UnitFacts,
} from "../../../src/parts/service/unit.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const hasVerifier = spawnSync("systemd-analyze", ["--version"]).status === 0;
const hasNotify = spawnSync("systemd-notify", ["--version"]).status === 0;
const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasVerifier || !hasNotify) process.stderr.write("\nSKIPPED: apt-get install systemd\n");

function facts(stateDir: string, program = process.execPath): UnitFacts {
  return {
    argv: [program, "/opt/m.js", "run", "--state", stateDir],
    stateDir,
    path: "/usr/bin",
    isSystem: true,
    user: "root",
    stopMs: 1000,
  };
}

/** What the verifier says about a unit; "" when it is good. */
function verify(text: string): string {
  const path = join(tempDir(), "mailchute.service");
  fs.writeFileSync(path, text);
  const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", path], { encoding: "utf8" });
  return stdout + stderr;
}

const ODD = ["plain", "with spaces", "100%h %% done", "$HOME $$", "ü 🙂"];

test.skipIf(!hasVerifier).each(ODD)("systemd reads a unit with a program below %j", (name) => {
  const dir = join(tempDir(), name);
  fs.mkdirSync(dir);
  const program = join(dir, "node");
  fs.writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  const text = makeUnit(facts(dir, program));
  // It looks for the program, so it has understood the path.
  expect(verify(text)).toBe("");
  expect(treeOfUnit(text)).toBe(dir);
  expect(programsOfUnit(text)).toEqual([program, "/opt/m.js"]);
  fs.rmSync(program);
  expect(verify(text)).toContain("is not executable");
});

test.each(['a "b"', "it's", "back\\slash"])("a program below %j is refused", (name) => {
  expect(() => makeUnit(facts("/srv", `/opt/${name}/node`))).toThrow(/quote or a backslash/);
});

test.each(["a\nExecStart=/bin/false", "end\\", "tab\t"])("a tree below %j is refused", (name) => {
  expect(() => makeUnit(facts(`/srv/${name}`))).toThrow(/cannot stand in a unit/);
});

test("a unit that another program has made is none of ours", () => {
  expect(treeOfUnit("[Service]\nWorkingDirectory=/srv/x\n")).toBeUndefined();
});

const LISTEN = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    text, fds, _, _ = socket.recv_fds(s, 4096, 4)
    # Who waits until it was read has sent one end of a pipe.
    for fd in fds: os.close(fd)
    print(text.decode(), flush=True)
`;

test.skipIf(!hasNotify || !hasPython)(
  "a supervisor says that it is ready, that it works, and that it stops, and nothing while it hangs; its tasks cannot speak for it",
  async () => {
    const socket = join(tempDir(), "socket");
    const listener = spawn("python3", ["-c", LISTEN, socket]);
    onTestFinished(() => void listener.kill("SIGKILL"));
    let said = "";
    let saidAtMs = 0;
    listener.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      saidAtMs = performance.now();
    });
    await waitFor(() => said.includes("bound"), { what: "the socket" });
    const env = { MAILCHUTE_SYSTEMD: "1", NOTIFY_SOCKET: socket, WATCHDOG_USEC: "600000" };
    const pool = newPool({ config: `${QUICK_CONFIG}env_allow: ["*"]\n`, env });
    const { child } = await pool.start();
    await waitFor(() => /^READY=1$/m.test(said), { what: "READY=1" });
    expect(said).toContain(`STATUS=watching ${pool.inbox}`);
    await waitFor(() => said.split("WATCHDOG=1").length > 3, { what: "some pings" });
    child.kill("SIGSTOP");
    // Five pings would have come in this time.
    await waitFor(() => performance.now() - saidAtMs > 1000, {
      what: "the silence of a supervisor that hangs, so that systemd restarts it",
    });
    const pings = said.split("WATCHDOG=1").length;
    child.kill("SIGCONT");
    await waitFor(() => said.split("WATCHDOG=1").length > pings, { what: "pings again" });
    pool.drop("a", { exec: ["sh", "-c", 'echo "[$NOTIFY_SOCKET$WATCHDOG_USEC]"'] });
    expect((await pool.result("a")).output).toBe("[]\n");
    await pool.stop();
    await waitFor(() => said.includes("STOPPING=1"), { what: "STOPPING=1" });
    expect(pool.alerts()).toEqual([]);
  },
);

test("where systemd cannot be told, the pool runs all the same, and says so", async () => {
  const env = {
    MAILCHUTE_SYSTEMD: "1",
    NOTIFY_SOCKET: join(tempDir(), "nothing"),
    PATH: "/nowhere",
  };
  const pool = newPool({ env });
  await pool.start();
  await waitFor(
    () => JSON.stringify(pool.alerts()).includes("systemd cannot be told how the supervisor is"),
    { what: "the alert" },
  );
  await pool.stop();
});

test("a process that is none of our units leaves systemd to its owner", () => {
  const env = { NOTIFY_SOCKET: "/run/other", WATCHDOG_USEC: "1000000" };
  expect(SystemdSocket.from(env)).toBeUndefined();
  expect(env).toEqual({ NOTIFY_SOCKET: "/run/other", WATCHDOG_USEC: "1000000" });
});

test("where there is no systemd, install says what to do instead, and changes nothing", async () => {
  const dir = tempDir();
  const pool = newPool({ env: { PATH: "/nowhere", HOME: dir, XDG_CONFIG_HOME: dir } });
  const { code, stderr } = await pool.run(["service", "install", "--user"]);
  expect(code).toBe(74);
  expect(stderr).toContain("mailchute run --detach");
  expect(fs.readdirSync(dir)).toEqual([]);
  const { code: none, stdout } = await pool.run(["service", "status", "--user"]);
  expect({ none, stdout }).toEqual({
    none: 3,
    stdout: "mailchute.service is not installed; mailchute service install\n",
  });
});

test("a unit of another tree, or of another program, is not replaced or removed", async () => {
  const dir = tempDir();
  const units = join(dir, "systemd/user");
  fs.mkdirSync(units, { recursive: true });
  const pool = newPool({ env: { HOME: dir, XDG_CONFIG_HOME: dir } });
  const foreign = "[Service]\nExecStart=/bin/true\n";
  fs.writeFileSync(join(units, "mailchute.service"), foreign);
  fs.writeFileSync(join(units, "shop.service"), makeUnit(facts("/srv/shop")));
  for (const [words, said] of [
    [["install"], "was not made by mailchute"],
    [["remove"], "was not made by mailchute"],
    [["install", "--name", "shop"], "runs another state tree: /srv/shop"],
  ] as const) {
    const { code, stderr } = await pool.run(["service", ...words, "--user"]);
    expect(code).toBe(4);
    expect(stderr).toContain(said);
  }
  expect(fs.readFileSync(join(units, "mailchute.service"), "utf8")).toBe(foreign);
});
