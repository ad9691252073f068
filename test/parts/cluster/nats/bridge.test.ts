/** Two state trees with their pools and bridges, and a real server: a task of the one runs at the other, and settles where it is from. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import { newRepository } from "../../../support/git-repository.ts";
import { newPool, type Pool, QUICK_CONFIG, type Running } from "../../../support/pool.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const ACK_WAIT_MS = 3000;
const onEnd = endOfFile();
let server: Server;

beforeAll(async () => {
  server = await Server.start(tempDir(onEnd));
  onEnd(() => server.kill());
});

interface Side {
  /** Of its machine. */
  name: string;
  pool: Pool;
  /** Starts its bridge, and waits until it is connected. */
  bridge: () => Promise<Running>;
}

let count = 0;

const linesOf = (path: string): string[] => fs.readFileSync(path, "utf8").trim().split("\n");

function newSide(name: string, settings: string): Side {
  const pool = newPool({
    config: `${QUICK_CONFIG}
cluster:
  servers: ["${server.url}"]
  name: ${name}
  ack_wait_ms: ${ACK_WAIT_MS}
  ${settings}`,
  });
  fs.symlinkSync(join(CACHE, "node_modules"), join(pool.dir, "node_modules"));
  const bridge = async (): Promise<Running> => {
    const running = pool.spawn(["bridge"]);
    await waitFor(() => running.stderr().includes("(pid") || running.child.exitCode !== null, {
      what: "the bridge",
    });
    if (running.child.exitCode !== null) expect.fail(running.stderr());
    return running;
  };
  return { name, pool, bridge };
}

interface Pair {
  /** Where the tasks come from. */
  a: Side;
  /** Where they run. */
  b: Side;
  target: string;
  /** The ids of all runs. */
  runs: () => string[];
}

/**
 * Each test has a target and machines of its own: they share one server.
 * @param script what the agent does at the machine; `$RUNS` is a file to which it has added the id of its task
 * @param more settings of that agent
 */
async function newPair(script = "true", more = ""): Promise<Pair> {
  const target = `target-${++count}`;
  const b = newSide(`b${count}`, `slots: 4\n  accept: [coder]\n  serves: [${target}]`);
  const a = newSide(
    `a${count}`,
    `slots: 1\nagents: [{name: far, kind: remote, where: ${target}, as: coder}]`,
  );
  const path = join(b.pool.dir, "agent.sh");
  const file = join(b.pool.dir, "runs");
  fs.writeFileSync(path, `echo "$MAILCHUTE_TASK_ID" >> "${file}"\nRUNS="${file}"\n${script}\n`);
  fs.appendFileSync(
    join(b.pool.state, "config.yaml"),
    `\nagents: [{name: coder, kind: exec, program: sh, args: ["${path}"]${more}}]\n`,
  );
  const runs = (): string[] => (fs.existsSync(file) ? linesOf(file) : []);
  await Promise.all([a.pool.start(), b.pool.start()]);
  return { a, b, target, runs };
}

/** All receipts have come, and nothing is left at the servers. */
async function atRest({ a, b }: Pair): Promise<void> {
  const jobs = join(b.pool.state, "cluster/jobs");
  await waitFor(() => fs.readdirSync(jobs).every((file) => !file.endsWith(".json")), {
    what: "the receipts",
    timeoutMs: 30_000,
  });
  // A task that was submitted for another one writes its line before it has settled.
  await waitFor(() => fs.readdirSync(a.pool.processing).length === 0, { what: "an empty tray" });
}

describe("a task of a remote agent", () => {
  test("runs once at a machine that serves its target, and settles at home; nothing is left over", async () => {
    const pair = await newPair('echo \'<result>{"status":"pass","n":1}</result>\'');
    const { a, b, runs } = pair;
    const bridges = [await a.bridge(), await b.bridge()];
    const ids = ["one", "two", "three"];
    const told = join(a.pool.dir, "told");
    const onSuccess = ["sh", "-c", `echo "$MAILCHUTE_OF_ID" >> "${told}"`];
    for (const id of ids)
      a.pool.drop(id, { agent: "far", prompt: "?", payload: { id }, on_success: onSuccess });
    for (const id of ids) {
      const record = await a.pool.result(id);
      expect(record).toMatchObject({ task_id: id, status: "completed", attempts: 1, exit_code: 0 });
      expect(record).toMatchObject({ output: { n: 1 }, task: { agent: "far", payload: { id } } });
    }
    expect((await a.pool.run(["show", "one"])).stdout).toMatch(/^machine +b\d+$/m);
    expect(runs()).toHaveLength(3);
    await waitFor(() => fs.existsSync(told) && linesOf(told).length === 3, { what: "callbacks" });
    expect(linesOf(told).sort()).toEqual([...ids].sort());
    await atRest(pair);
    for (const bridge of bridges) expect(bridge.stderr().split("\n")).toHaveLength(2);
  });

  test("that fails is repeated as its own tree says", async () => {
    const pair = await newPair('[ "$(wc -l < "$RUNS")" -ge 3 ] || exit 7');
    const { a, b, runs } = pair;
    await a.bridge();
    await b.bridge();
    a.pool.drop("t", { agent: "far", prompt: "?" });
    expect(await a.pool.result("t")).toMatchObject({ attempts: 3 });
    expect(new Set(runs())).toHaveLength(3);
    expect(b.pool.errors().map(({ attempts, exit_code }) => [attempts, exit_code])).toEqual([
      [1, 7],
      [1, 7],
    ]);
    a.pool.drop("u", { agent: "far", prompt: "?", exec: undefined, verify: [["true"]] });
    expect(await a.pool.error("u")).toMatchObject({
      code: "ErrRefused",
      attempts: 1,
      error: expect.stringMatching(/^b\d+ refuses it: these fields .*"verify"$/),
    });
    await atRest(pair);
  });

  test("that is cancelled at home is stopped where it runs", async () => {
    const pair = await newPair("exec sleep 600");
    const { a, b, runs } = pair;
    await a.bridge();
    await b.bridge();
    a.pool.drop("t", { agent: "far", prompt: "?" });
    await waitFor(() => runs().length > 0, { what: "the run" });
    expect((await a.pool.run(["cancel", "t"])).code).toBe(0);
    expect(await a.pool.error("t")).toMatchObject({ kind: "cancelled" });
    expect(await b.pool.error(runs()[0] ?? "")).toMatchObject({ kind: "cancelled" });
    await atRest(pair);
    expect(runs()).toHaveLength(1);
  });

  test("that is too large to travel is refused with its size", async () => {
    const pair = await newPair();
    await pair.a.bridge();
    await pair.b.bridge();
    pair.a.pool.drop("t", { agent: "far", prompt: "x".repeat(950_000) });
    expect(await pair.a.pool.error("t")).toMatchObject({
      error: expect.stringMatching(/it has 950\d+ bytes, and at most 900000 can travel/),
    });
  });
});

test("how far a run is and what it says is seen at home", async () => {
  const pair = await newPair(
    'echo "::progress 40 halfway"; echo "tests 118/240"; until [ -e "$RUNS-end" ]; do sleep 0.05; done',
  );
  const { a, b } = pair;
  await a.bridge();
  await b.bridge();
  a.pool.drop("t", { agent: "far", prompt: "?" });
  const shows = async (verb: string, ...parts: RegExp[]): Promise<void> => {
    const args = verb === "status" ? [verb] : [verb, "t"];
    const isSaid = async (): Promise<boolean> => {
      const { stdout } = await a.pool.run(args);
      return parts.every((part) => part.test(stdout));
    };
    await waitFor(isSaid, { what: verb });
  };
  await shows("show", /^progress .* 40 % {2}halfway$/m, /^machine +b\d+$/m, /^says +tests 118/m);
  await shows("status", /^t +1 +- .* at b\d+$/m, /^t +\[#+-+\] +40 % {2}halfway$/m);
  await shows("why", /says +tests 118\/240/, /the machine b\d+ has it/);
  expect((await a.pool.run(["status"])).stdout).not.toContain("!");
  fs.writeFileSync(join(b.pool.dir, "runs-end"), "");
  await a.pool.result("t");
  await atRest(pair);
});

test("its log is read at home, while it runs and later", async () => {
  // More than travels at once.
  const pair = await newPair(
    'seq 1 60000; echo wrong >&2; until [ -e "$RUNS-end" ]; do sleep 0.05; done; echo "the end"',
  );
  const { a, b } = pair;
  a.pool.drop("t", { agent: "far", prompt: "?" });
  const followed = a.pool.spawn(["logs", "-f", "t"]);
  await a.bridge();
  const bridge = await b.bridge();
  const numbers = Array.from({ length: 60_000 }, (_, n) => `${n + 1}\n`).join("");
  await waitFor(() => followed.stdout() === numbers, { what: "what is followed" });
  expect(await a.pool.run(["logs", "t"])).toMatchObject({ code: 0, stdout: numbers });
  expect((await a.pool.run(["logs", "t", "--stderr"])).stdout).toBe("wrong\n");
  fs.writeFileSync(join(b.pool.dir, "runs-end"), "");
  expect((await followed.ended).exitCode).toBe(0);
  expect(followed.stdout()).toBe(`${numbers}the end\n`);
  await atRest(pair);
  expect((await a.pool.run(["logs", "t"])).stdout).toBe(`${numbers}the end\n`);
  bridge.child.kill("SIGKILL");
  await bridge.ended;
  const silent = await a.pool.run(["logs", "t"]);
  expect(silent).toMatchObject({ code: 74, stdout: "" });
  expect(silent.stderr).toContain(`the logs are at ${b.name}, which does not answer`);
  await b.bridge();
  fs.rmSync(join(b.pool.state, "runs"), { recursive: true });
  const swept = await a.pool.run(["logs", "t"]);
  expect(swept).toMatchObject({ code: 3, stdout: "" });
  expect(swept.stderr).toContain(`${b.name} no longer has its logs`);
});

test("tasks leave as far as machines have room, in their order, and none leaves for a machine that is drained", async () => {
  // A run ends when its file is there.
  const pair = await newPair('until [ -e "$RUNS-end" ]; do sleep 0.05; done');
  const { a, b, runs, target } = pair;
  const why = async (id: string): Promise<string> => (await a.pool.run(["why", id])).stdout;
  a.pool.drop("t0", { agent: "far", prompt: "?" });
  await waitFor(async () => (await why("t0")).includes("no bridge runs here"), { what: "why" });
  await a.bridge();
  await waitFor(async () => (await why("t0")).includes(`serves ${target}`), { what: "no machine" });
  await b.bridge();
  for (let n = 1; n < 12; n++) a.pool.drop(`t${n}`, { agent: "far", prompt: "?" });
  a.pool.drop("urgent", { agent: "far", prompt: "?", priority: 9 });
  const held = (): string[] => fs.readdirSync(a.pool.processing).filter((f) => f.includes("~hold"));
  // Four slots of the pool there, and two more so that a slot that becomes free finds a task.
  await waitFor(() => runs().length === 4 && held().length === 6, { what: "four runs" });
  const row = new RegExp(`${b.name} +takes tasks +${target} +4 +4 +4 `);
  await waitFor(async () => row.test((await a.pool.run(["cluster", "ls"])).stdout), {
    what: "the machine in the list",
  });
  const begun = runs()[0]?.split(".")[2] ?? "";
  await waitFor(async () => (await why(begun)).includes(`the machine ${b.name} has it`), {
    what: "its machine",
  });
  const drained = await a.pool.run(["cluster", "drain", b.name]);
  expect(drained).toMatchObject({ code: 0, stdout: `${b.name} takes no more tasks of others\n` });
  fs.writeFileSync(join(b.pool.dir, "runs-end"), "");
  await waitFor(() => a.pool.settledCount() === 4, { what: "the end of what ran" });
  await waitFor(async () => (await why("t11")).includes("no machine with free slots"), {
    what: "why",
  });
  expect((await b.pool.run(["cluster", "status"])).stdout).toContain("takes no tasks of others");
  expect(runs()).toHaveLength(4);
  expect((await b.pool.run(["cluster", "resume"])).code).toBe(0);
  await waitFor(() => a.pool.settledCount() === 13, { what: "all", timeoutMs: 60_000 });
  // The urgent one has overtaken all that had not left.
  const order = runs().map((id) => id.split(".")[2]);
  expect(order).toHaveLength(13);
  expect(order.indexOf("urgent")).toBeLessThan(9);
  expect(await a.pool.run(["cluster", "drain", "nowhere"])).toMatchObject({ code: 74 });
  await atRest(pair);
});

test("a task of a group that is sent runs at a machine as a task of its agent there, also one that is a program", async () => {
  const b = newSide(
    "bg",
    "slots: 4\n  accept: [coder, exec]\n  accept_fields: [exec]\n  serves: [gpu]",
  );
  const a = newSide("ag", "groups: {render: gpu}");
  const coder = (words: string): string =>
    `\nagents: [{name: coder, kind: exec, default: true, program: sh, args: [-c, "${words}"]}]\n`;
  fs.appendFileSync(join(a.pool.state, "config.yaml"), coder("exit 1"));
  fs.appendFileSync(join(b.pool.state, "config.yaml"), coder("exit 0"));
  await Promise.all([a.pool.start(), b.pool.start(), a.bridge(), b.bridge()]);
  a.pool.drop("named", { agent: "coder", prompt: "?", group: "render" });
  a.pool.drop("default", { prompt: "?", group: "render", exec: undefined });
  a.pool.drop("program", { exec: ["true"], group: "render" });
  a.pool.drop("local", { exec: ["true"] });
  for (const id of ["named", "default", "program"])
    expect(await a.pool.result(id)).toMatchObject({ status: "completed", machine: "bg" });
  expect(await a.pool.result("local")).not.toHaveProperty("machine");
  const typed = ["enqueue", "--id", "typed", "--group", "render", "--wait", "--", "true"];
  expect(await a.pool.run(typed)).toMatchObject({ code: 0 });
  expect(await a.pool.result("typed")).toMatchObject({ machine: "bg" });
});

test("a program for a remote agent runs at its machine if that takes programs, and is refused by name if not", async () => {
  const config = (fields: string): string =>
    `slots: 4\n  accept: [tool, coder]\n  accept_fields: [${fields}]\n`;
  const tools = `agents: [{name: tool, kind: exec, program: "true"}, {name: coder, kind: claude}]\n`;
  const takes = newSide("bx", `${config("exec")}  serves: [tx]\n${tools}`);
  const refuses = newSide("by", `${config("")}  serves: [ty]\n${tools}`);
  const far = (name: string, where: string, as: string): string =>
    `  - {name: ${name}, kind: remote, where: ${where}, as: ${as}}\n`;
  const agents = far("x", "tx", "tool") + far("y", "ty", "tool") + far("z", "tx", "coder");
  const a = newSide("ax", `slots: 1\nagents:\n${agents}`);
  const sides = [a, takes, refuses];
  await Promise.all(sides.flatMap(({ pool, bridge }) => [pool.start(), bridge()]));
  for (const agent of ["x", "y", "z"])
    expect(
      (await a.pool.run(["enqueue", "--id", agent, "--agent", agent, "--", "true"])).code,
    ).toBe(0);
  expect(await a.pool.result("x")).toMatchObject({ machine: "bx" });
  expect(await a.pool.error("y")).toMatchObject({
    code: "ErrRefused",
    error: expect.stringContaining('these fields are not taken from other machines here: "exec"'),
  });
  expect(await a.pool.error("z")).toMatchObject({
    error: expect.stringContaining("agent coder is of kind claude, which does not run an exec"),
  });
});

test("two machines of one name are told, and the logs of each are found", async () => {
  const target = `target-${++count}`;
  const twin = (): Side =>
    newSide(
      "twin",
      `slots: 1\n  accept: [coder]\n  serves: [${target}]\nagents: [{name: coder, kind: exec, program: echo, args: [said]}]`,
    );
  const a = newSide(
    "at",
    `slots: 1\nagents: [{name: far, kind: remote, where: ${target}, as: coder}]`,
  );
  const twins = [twin(), twin()];
  await Promise.all([a, ...twins].map(({ pool }) => pool.start()));
  const bridges = await Promise.all([...twins, a].map(({ bridge }) => bridge()));
  const told = "another machine is called twin, too";
  await waitFor(() => bridges.slice(0, 2).every((one) => one.stderr().includes(told)), {
    what: "both say it",
  });
  const listed = async (): Promise<string> => (await a.pool.run(["cluster", "ls"])).stdout;
  await waitFor(async () => (await listed()).includes("2 machines with the name twin"), {
    what: "the list says it",
  });
  const ids = ["t1", "t2", "t3", "t4"];
  for (const id of ids) a.pool.drop(id, { agent: "far", prompt: "?" });
  for (const id of ids) {
    await a.pool.result(id);
    expect(await a.pool.run(["logs", id]), id).toMatchObject({ code: 0, stdout: "said\n" });
  }
});

test("rubbish at the servers is refused with a reason, and harms nothing", async () => {
  const pair = await newPair();
  const { a, b } = pair;
  const nats = loadNats(CACHE);
  const nc = await nats.connect({ servers: [server.url] });
  onTestFinished(() => nc.close());
  const bridges = [await a.bridge(), await b.bridge()];
  const tree =
    /tree ([a-z0-9]+\.[a-z0-9]{8})/.exec(bridges[0]?.stderr() ?? "")?.[1] ?? expect.fail("no tree");
  const chance = seededRandom(1);
  for (let turn = 0; turn < 20; turn++) {
    const bytes = Buffer.from(Array.from({ length: chance.below(40) }, () => chance.below(256)));
    nc.publish(`mc.work.${pair.target}.x.${turn}`, bytes);
    nc.publish(`mc.result.${tree}.any.b1.x.${turn}`, bytes);
    nc.publish(`mc.beat.${tree}.b1`, bytes);
    nc.publish(`mc.over.b${count}.x.${turn}`, bytes);
    nc.publish("mc.machine.x", bytes);
    nc.publish(`mc.control.b${count}`, bytes);
    nc.publish(`mc.want.b${count}.x.abcd2345`, bytes);
  }
  await nc.flush();
  a.pool.drop("t", { agent: "far", prompt: "?" });
  expect(await a.pool.result("t")).toMatchObject({ status: "completed" });
  expect(bridges[0]?.stderr()).toMatch(/refused a (?:result|heartbeat)/);
  expect(bridges[1]?.stderr()).toMatch(/refused a job/);
  await atRest(pair);
});

test("work in a repository of the machine is done when it has landed, and not when that fails", async () => {
  const dir = tempDir();
  const [shared, go] = [join(dir, "shared.git"), join(dir, "go")];
  const push = `until test -e ${go}; do sleep 0.02; done; git push --quiet origin HEAD:refs/heads/$MAILCHUTE_BRANCH`;
  const more = `, worktree: auto, land: exec, land_command: [sh, -c, "${push}"]`;
  const pair = await newPair("echo new > new.txt", more);
  const { a, b, runs } = pair;
  const repository = newRepository(b.pool.dir);
  repository.git("init", "--quiet", "--bare", shared);
  repository.git("remote", "add", "origin", shared);
  await a.bridge();
  await b.bridge();
  a.pool.drop("t", { agent: "far", prompt: "?" });
  await waitFor(() => b.pool.events().some(({ event }) => event === "completed"), {
    what: "the end of the run",
  });
  await waitFor(() => fs.readdirSync(b.pool.processing).some((file) => file.includes(".land@")), {
    what: "its landing",
  });
  const isTold = async (): Promise<boolean> =>
    (await a.pool.run(["show", "t"])).stdout.includes("has not landed: running");
  await waitFor(isTold, { what: "that it lands" });
  expect(a.pool.settledCount()).toBe(0);
  fs.writeFileSync(go, "");
  const branch = `mailchute/${runs()[0]}`;
  expect(await a.pool.result("t")).toMatchObject({
    landing: "landed",
    branch,
    diffstat: { files: 1, insertions: 1, deletions: 0 },
    machine: b.name,
  });
  expect(repository.git("ls-remote", "origin", `refs/heads/${branch}`)).not.toBe("");
  expect((await a.pool.run(["show", "t"])).stdout).toContain(`landed at ${b.name}`);
  fs.renameSync(shared, `${shared}.gone`);
  a.pool.drop("u", { agent: "far", prompt: "?" });
  expect(await a.pool.error("u")).toMatchObject({
    kind: "landing",
    code: "ErrLanding",
    error: expect.stringContaining("its work did not land"),
    attempts: 1,
  });
  await atRest(pair);
  expect(runs()).toHaveLength(2);
});

test("a bridge that starts while no server answers stops what ran, which runs again when one does", async () => {
  const pair = await newPair("exec sleep 600");
  const { a, b, runs } = pair;
  await a.bridge();
  const first = await b.bridge();
  a.pool.drop("t", { agent: "far", prompt: "?" });
  await waitFor(() => runs().length > 0, { what: "the run" });
  first.child.kill("SIGKILL");
  await first.ended;
  const config = join(b.pool.state, "config.yaml");
  const settings = fs.readFileSync(config, "utf8");
  fs.writeFileSync(config, settings.replace(server.url, "nats://127.0.0.1:1"));
  const cutOff = b.pool.spawn(["bridge"]);
  expect(await b.pool.error(runs()[0] ?? "")).toMatchObject({ kind: "cancelled" });
  expect(cutOff.stderr()).toContain("waits for nats://127.0.0.1:1");
  cutOff.child.kill("SIGTERM");
  await cutOff.ended;
  fs.writeFileSync(config, settings);
  await b.bridge();
  await waitFor(() => runs().length === 2, { what: "the next run", timeoutMs: 30_000 });
  expect(runs()[1]).toBe(runs()[0]);
  expect((await a.pool.run(["cancel", "t"])).code).toBe(0);
  await atRest(pair);
});

test("bridges are killed and servers lose their disk: each task settles once", async () => {
  const pair = await newPair("sleep 0.05");
  const { a, b, runs } = pair;
  const sides = [a, b];
  const bridges = [await a.bridge(), await b.bridge()];
  const ids = Array.from({ length: 60 }, (_, n) => `t${n}`);
  for (const id of ids) a.pool.drop(id, { agent: "far", prompt: "?" });
  const settled = (): number => a.pool.settledCount();
  for (const [turn, at] of [5, 12, 20, 28, 36, 44].entries()) {
    await waitFor(() => settled() >= at, { what: `${at} settlements`, timeoutMs: 60_000 });
    if (turn % 3 === 2) await server.wipe();
    else {
      const which = turn % 3;
      bridges[which]?.child.kill("SIGKILL");
      await bridges[which]?.ended;
      const again = await sides[which]?.bridge();
      if (again !== undefined) bridges[which] = again;
    }
  }
  await waitFor(() => settled() >= ids.length, { what: "all", timeoutMs: 120_000 });
  expect(
    a.pool
      .results()
      .map(({ task_id }) => task_id)
      .sort(),
  ).toEqual([...ids].sort());
  const ends = a.pool.events().filter(({ event }) => event === "completed");
  expect(ends).toHaveLength(ids.length);
  await atRest(pair);
  const twice = runs().length - new Set(runs()).size;
  // A busy machine that could not reach the servers in time stops its runs, as it must: these run again.
  const stopped = b.pool.events().filter(({ kind }) => kind === "cancelled").length;
  process.stdout.write(
    `${runs().length} runs of ${ids.length} tasks, ${twice} again, ${stopped} stopped\n`,
  );
  expect(twice).toBeLessThanOrEqual(stopped);
});
