/** What `run` says of what it meets, and what `status` says of it afterwards: nobody need look for a reason. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../support/pool.ts";
import { hasTmux, MAILCHUTE, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";
import { newCli, put } from "./run-cli.ts";

/** Its first node fails; the second sets the first one done. */
const MENDED = `nodes:
  - { id: c, exec: ['false'], max_attempts: 1 }
  - id: d
    exec: [sh, -c, 'echo "<result>{\\"next\\":{\\"setStatus\\":[{\\"id\\":\\"c\\",\\"status\\":\\"done\\"}]}}</result>"']
    dependencies: [{ id: c, required_status: terminal }]
  - { id: e, exec: ['true'], dependencies: [d] }
`;

const ASKING = `nodes:
  - id: q
    exec: [sh, -c, 'echo "<result>{\\"status\\":\\"checkpoint\\",\\"checkpoint\\":{\\"question\\":\\"which colour?\\"}}</result>"']
  - { id: b, exec: ['true'], dependencies: [q] }
  - { id: c, agent: nosuch }
  - { id: h, status: needs_human, exec: ['true'] }
`;

interface Obstacle {
  what: string;
  do: string;
}

async function obstaclesOf(pool: Pool): Promise<Obstacle[]> {
  const { stdout } = await pool.run(["status", "--json"]);
  return (JSON.parse(stdout) as { obstacles: Obstacle[] }).obstacles;
}

it("names each task that fails for good with its error, the first twenty of them", async () => {
  const pool = newPool();
  for (let n = 0; n < 25; n++) pool.drop(`bad-${n}`, { exec: ["false"], max_attempts: 1 });
  const { code, stdout, stderr } = await pool.run(["run", "--drain"]);
  expect(code).toBe(1);
  expect(stdout).toContain("0 completed, 25 failed");
  const told = stderr.split("\n").filter((line) => line.includes("failed for good"));
  expect(told).toHaveLength(20);
  expect(told[0]).toMatch(
    /bad-\d+ failed for good: the program ended with exit code 1; see `mailchute show bad-\d+`/,
  );
  expect(stderr.split("mailchute ls --state-is failed")).toHaveLength(2);
});

it("tells a failure by the program's own last words, which come first and whole", async () => {
  const pool = newPool();
  const said = "/home/me/data/input.csv: line 3: expected 4 columns, found 3";
  const script = `seq 500 >&2; echo '${said}' >&2; exit 65`;
  pool.drop("a-task-with-rather-a-long-name", { exec: ["sh", "-c", script] });
  const { stderr } = await pool.run(["run", "--drain"]);
  expect(stderr).toContain(`failed for good: ${said} (the program ended with exit code 65`);
  const status = await pool.run(["status"]);
  expect(status.stdout).toContain(`\n    ${said} `);
  const ls = await pool.run(["ls"]);
  expect(ls.stdout).toContain("/home/me/data/input.csv");
  const error = await pool.error("a-task-with-rather-a-long-name");
  // A line of the log that is cut in two says nothing.
  expect(error.error).toMatch(/^\d{3}\n/);
});

it("says of a whole command line in one word that no shell reads it", async () => {
  const pool = newPool();
  pool.drop("line", { exec: ["echo hi && ls"] });
  pool.drop("missing", { exec: ["no-such-program", "a b"] });
  await pool.run(["run", "--drain"]);
  expect((await pool.error("line")).error).toMatch(
    /^cannot start "echo …": ENOENT; no shell reads it: .*\["sh", "-c", "echo …"\]$/,
  );
  expect((await pool.error("missing")).error).toBe('cannot start "no-such-program": ENOENT');
});

it("tells with --live what starts, ends and runs again, and is quiet about it in a pipe", async () => {
  const pool = newPool();
  const once = "test $MAILCHUTE_ATTEMPT = 2";
  pool.drop("good", { exec: ["true"] });
  pool.drop("flaky", { exec: ["sh", "-c", once], max_attempts: 2 });
  pool.drop("bad", { exec: ["false"], max_attempts: 1 });
  const { stdout, stderr } = await pool.run(["run", "--drain", "--live"]);
  expect(stdout).toBe("2 completed, 1 failed\n");
  for (const line of [
    /^mailchute: good started$/m,
    /^mailchute: good completed after \d+/m,
    /^mailchute: flaky failed and runs again in \d+ ms: the program ended with exit code 1$/m,
    /^mailchute: flaky started, run 2$/m,
    /^mailchute: flaky completed after/m,
  ])
    expect(stderr).toMatch(line);
  expect(stderr.match(/\bbad\b.*failed/g)).toHaveLength(1);
  pool.drop("later", { exec: ["true"] });
  const quiet = await pool.run(["run", "--drain"]);
  expect(quiet.stdout).toBe("1 completed, 0 failed\n");
  expect(quiet.stderr).not.toContain("later");
});

it.skipIf(!hasTmux)("tells it without --live, too, where a person looks on", async () => {
  const pool = newPool();
  const drain = async (id: string, options = ""): Promise<string> => {
    pool.drop(id, { exec: ["true"] });
    const terminal = openTerminal(pool.dir, 100, 30);
    await waitFor(() => terminal.screen().includes("ready>"), { what: "the shell" });
    // The next run may begin when this one has ended, not when it has said so. What is typed must not look like what is printed.
    const run = `${MAILCHUTE} run --drain --state '${pool.state}' ${options}; echo over''=$?`;
    terminal.press(run, "Enter");
    const told = await waitFor(() => /^over=\d+$/m.exec(terminal.screen())?.input, {
      what: "the end of the run",
    });
    expect(told).toMatch(/^1 completed, 0 failed$/m);
    return told;
  };
  const told = await drain("good");
  expect(told).toMatch(/^mailchute: good started$/m);
  expect(told).toMatch(/^mailchute: good completed after \d+/m);
  expect(await drain("quiet", "--no-live")).not.toMatch(/^mailchute: /m);
  await drain("kept", "2> log");
  const log = fs.readFileSync(join(pool.dir, "log"), "utf8");
  expect(log).toContain("mailchute: watching");
  expect(log).not.toContain("kept");
});

it("counts nodes that fail, and leaves it to the plan whether that matters", async () => {
  const pool = newPool();
  const plan =
    "nodes:\n  - { id: a, exec: ['false'], max_attempts: 1 }\n" +
    "  - { id: b, exec: ['true'], dependencies: [{ id: a, required_status: terminal }] }\n";
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), plan);
  const { code, stdout, stderr } = await pool.run(["run", "--drain"]);
  expect(code).toBe(1);
  expect(stdout).toContain("1 completed, 1 failed\nroadmap: 1 done, 1 failed");
  expect(stderr).toContain("a failed for good: the program ended with exit code 1");
  // A plan that a planner, or a person, has mended meanwhile has not failed.
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), MENDED);
  const mended = await pool.run(["run", "--drain", "--json"]);
  expect(JSON.parse(mended.stdout)).toMatchObject({ completed: 2, failed: 1, failedNodes: 1 });
  expect(mended.code).toBe(0);
});

it("says what cannot run, and status says why after it has ended", async () => {
  const pool = newPool();
  pool.drop("lonely", { prompt: "x", agent: "nosuch" });
  pool.drop("patient", { exec: ["true"], metadata: { dependencies: ["nobody"] } });
  const { code, stdout } = await pool.run(["run", "--drain"]);
  expect(code).toBe(1);
  const ofNobody = "waits for nobody, which is not here";
  const noAgent = 'no agent "nosuch" is configured';
  expect(stdout).toContain(`2 cannot run:\n  patient: ${ofNobody}\n  lonely: ${noAgent}\n`);
  const obstacles = await obstaclesOf(pool);
  expect(obstacles.map(({ what }) => what)).toEqual([
    "no supervisor runs on this state tree",
    `1 task waits for others that it depends on: patient (${ofNobody})`,
    `1 task fits no configured agent: lonely (${noAgent})`,
  ]);
});

it("of what a task waits for it names what is not met, and how that stands", async () => {
  const pool = newPool();
  const after = (...dependencies: string[]): object => ({
    exec: ["true"],
    metadata: { dependencies },
  });
  pool.drop("build", { exec: ["true"] });
  pool.drop("lonely", { prompt: "x", agent: "nosuch" });
  // They wait for what completes, too, when they are first looked at.
  pool.drop("w1", after("build", "biuld", "other"));
  pool.drop("w2", after("w1"));
  pool.drop("w3", after("w2", "lonely"));
  const { stdout } = await pool.run(["run", "--drain"]);
  const reasons = [
    "  w1: waits for biuld, which is not here (did you mean build?); other, which is not here\n",
    "  w2: waits for w1, which waits for biuld, which is not here\n",
    '  w3: waits for w2, which waits in the end for biuld, which is not here; lonely, which cannot run: no agent "nosuch" is configured\n',
  ];
  for (const reason of reasons) expect(stdout).toContain(reason);
  const what = (await obstaclesOf(pool)).map((one) => one.what).join("\n");
  expect(what).toContain(
    "w1 (waits for biuld, which is not here (did you mean build?); other, which is not here)",
  );
});

it("a task that has ended is not said to wait", async () => {
  const pool = newPool();
  const after = (...dependencies: string[]): object => ({
    exec: ["true"],
    metadata: { dependencies },
  });
  pool.drop("other", after("nothing"));
  pool.drop("late", after("early"));
  await pool.start();
  await waitFor(() => pool.supervisor()?.waiting?.blocked === 2, { what: "both to wait" });
  pool.drop("early", { exec: ["true"] });
  await pool.result("late");
  // Until a scan of the inbox has ended, "nothing" may still be there.
  const what = await waitFor(
    async () => {
      const obstacles = (await obstaclesOf(pool)).map((one) => one.what);
      expect(obstacles.join("\n")).not.toContain("late");
      return obstacles.some((one) => one.includes("is not here")) && obstacles;
    },
    { what: "the scan to end" },
  );
  expect(what).toEqual([
    "1 task waits for others that it depends on: other (waits for nothing, which is not here)",
  ]);
});

it("names the first few of many that cannot run, and counts the others", async () => {
  const pool = newPool();
  for (let n = 0; n < 8; n++)
    pool.drop(`after-${n}`, { exec: ["true"], metadata: { dependencies: ["nowhere"] } });
  const { stdout } = await pool.run(["run", "--drain"]);
  expect(stdout).toContain("0 completed, 0 failed, 8 cannot run:\n");
  expect(stdout.match(/^ {2}after-\d: waits for nowhere, which is not here$/gm)).toHaveLength(5);
  expect(stdout).toContain("  and 3 more: `mailchute status` says why\n");
  const what = (await obstaclesOf(pool)).map((one) => one.what);
  expect(what.join("\n")).toMatch(
    /^8 tasks wait .*: (?:after-\d \(waits for nowhere, which is not here\)(?:, )?){3} and 5 more$/m,
  );
});

it.skipIf(process.getuid?.() !== 0)(
  "counts a file that cannot be read as one that cannot run, and takes it when it can be",
  async () => {
    const pool = newPool({ uid: 65_534 });
    pool.drop("fromroot", { exec: ["true"] });
    const file = join(pool.inbox, "fromroot.json");
    fs.chownSync(file, 0, 0);
    fs.chmodSync(file, 0o600);
    const { code, stdout } = await pool.run(["run", "--drain"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/1 cannot run:\n {2}fromroot: .*EACCES/);
    const { what } = (await obstaclesOf(pool))[1] as Obstacle;
    expect(what).toMatch(/^1 task cannot be read: fromroot \(.*EACCES/);
    fs.chmodSync(file, 0o644);
    expect((await pool.run(["run", "--drain"])).stdout).toContain("1 completed");
  },
);

it("says that it is paused, and how many slots it was given before", async () => {
  const pool = newPool();
  const paused = { paused: true, paused_at: "2026-01-01T00:00:00Z", paused_by: "me" };
  fs.writeFileSync(
    join(pool.state, "control.json"),
    JSON.stringify({ ...paused, max_workers: 2, max_workers_by: "me" }),
  );
  pool.drop("t", { exec: ["true"] });
  const run = pool.spawn(["run", "--drain"]);
  await waitFor(() => run.stderr().includes("paused since"), { what: "the notices" });
  expect(run.stderr()).toContain(
    "claiming is paused since 2026-01-01T00:00:00Z by command me (mailchute resume)",
  );
  expect(run.stderr()).toContain("/mailbox/inbox with 2 slots (pid ");
  expect(run.stderr()).toContain("2 slots, as set-workers said before, not 4 (`set-workers N`");
  expect(run.stderr()).toContain("ends when nothing is left to run; Ctrl-C stops it before");
  await pool.run(["resume", "--wait"]);
  await waitFor(() => run.stderr().includes("resumed (command "), { what: "the resume" });
  expect((await run.ended).exitCode).toBe(0);
});

it("remembers what set-workers said, until a run is given another number", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "workers: 2\n");
  const slotsOf = async (args: string[], env = {}): Promise<string | undefined> =>
    / with (\d+) slots? /.exec((await cli(["run", "--drain", ...args], { env })).stderr)?.[1];
  await cli(["set-workers", "1"]);
  const { stderr } = await cli(["run", "--drain", "--workers", "4"]);
  expect(stderr).toMatch(/^mailchute: 1 slot now \(command /m);
  expect(await slotsOf([])).toBe("1");
  expect(await slotsOf(["--workers", "4"])).toBe("1");
  expect(await slotsOf(["--workers", "3"])).toBe("3");
  expect(await slotsOf([])).toBe("2");
  await cli(["set-workers", "5"]);
  const once = await cli(["run", "--once"]);
  expect(once.stderr).toMatch(/^mailchute: 5 slots from the next run on \(command /m);
  expect(await slotsOf([])).toBe("5");
  expect(await slotsOf([], { MAILCHUTE_WORKERS: "7" })).toBe("7");
});

it("gives the question of a node, and why the others of the plan do not start", async () => {
  const pool = newPool();
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), ASKING);
  const { code, stdout } = await pool.run(["run", "--drain"]);
  expect(code).toBe(1);
  expect(stdout).toContain("\n  q asks: which colour? (mailchute answer q TEXT)\n");
  expect(stdout).toContain(
    '\n  b: waits for q (needs_human)\n  c: no agent "nosuch" is configured\n',
  );
  expect(await obstaclesOf(pool)).toEqual([
    { what: "q asks: which colour?", do: "mailchute answer q TEXT" },
    { what: "h waits for a person", do: "mailchute answer h TEXT" },
    {
      what: `2 open nodes of the plan do not start: b (waits for q (needs_human)), c (no agent "nosuch" is configured)`,
      do: "mailchute roadmap next --explain",
    },
  ]);
  await pool.run(["answer", "q", "blue"]);
  expect(await obstaclesOf(pool)).toEqual([
    { what: "the plan was changed since it last ran", do: "mailchute run" },
  ]);
});

it("says why a program that is there cannot be started, and of a place to work in that it is a file", async () => {
  const pool = newPool();
  const file = (name: string, text: string): string => {
    fs.writeFileSync(join(pool.dir, name), text, { mode: 0o755 });
    return join(pool.dir, name);
  };
  const bare = file("bare.sh", "#! /bin/sh\r\necho hi\r\n");
  const nowhere = file("nowhere.sh", "#!/nowhere/sh\n");
  pool.drop("windows", { exec: [bare] });
  pool.drop("searched", { exec: ["bare.sh"], env: { PATH: pool.dir } });
  pool.drop("nowhere", { exec: [nowhere] });
  pool.drop("in-a-file", { exec: ["true"], cwd: bare });
  pool.drop("in-nothing", { exec: ["true"], cwd: join(pool.dir, "none") });
  await pool.run(["run", "--drain"]);
  const errorOf = async (id: string): Promise<string> => (await pool.error(id)).error;
  const crlf = "its first line ends as on Windows (CRLF), and no program is named";
  expect(await errorOf("windows")).toBe(
    `cannot start ${JSON.stringify(bare)}: ENOENT; ${crlf} "/bin/sh\\r": sed -i 's/\\r$//' ${bare}`,
  );
  expect(await errorOf("searched")).toContain(`${crlf} "/bin/sh\\r": sed -i 's/\\r$//' ${bare}`);
  expect(await errorOf("nowhere")).toBe(
    `cannot start ${JSON.stringify(nowhere)}: ENOENT; its first line names "/nowhere/sh", which is not there`,
  );
  expect(await errorOf("in-a-file")).toBe(
    `cannot start "true": cwd ${bare} is a file, and not a directory (ENOTDIR)`,
  );
  expect(await errorOf("in-nothing")).toContain(join(pool.dir, "none"));
});
