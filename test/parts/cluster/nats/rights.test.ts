/** `cluster init` at a real server with TLS: each machine may do its own work there, and nothing in the name of another one. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { permissionsOf } from "../../../../src/parts/cluster/nats/layout.ts";
import { type Connection, loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import { newPool, type Pool, QUICK_CONFIG, type Running } from "../../../support/pool.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const ACK_WAIT_MS = 2000;
const onEnd = endOfFile();
const nats = loadNats(CACHE);
let dir: string;
let server: Server;
let hub: Pool;

const MACHINES = `
  machines:
    laptop: {sends: [gpu]}
    desk: {sends: [cpu]}
    box1: {serves: [gpu]}
    box2: {serves: [cpu], sends: [cpu]}`;

function newTree(name: string, cluster: string, more = ""): Pool {
  const pool = newPool({
    onEnd,
    config: `${QUICK_CONFIG}
cluster:
  servers: ["tls://localhost:${server.port}"]
  name: ${name}
  ack_wait_ms: ${ACK_WAIT_MS}
  credentials: ${JSON.stringify(join(dir, "keys", `${name}.nk`))}
  tls: {ca: ${JSON.stringify(join(dir, "ca.pem"))}}${cluster}
${more}`,
  });
  fs.symlinkSync(join(CACHE, "node_modules"), join(pool.dir, "node_modules"));
  return pool;
}

const init = (pool: Pool, ...more: string[]) =>
  pool.run(["cluster", "init", "--out", join(dir, "keys"), ...more]);

beforeAll(async () => {
  dir = tempDir(onEnd);
  const made = ["-keyout", join(dir, "key.pem"), "-out", join(dir, "ca.pem"), "-days", "2"];
  const about = ["-subj", "/CN=nats", "-addext", "subjectAltName=DNS:localhost", "-nodes"];
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
  execFileSync("openssl", ["req", ...kind, ...about, ...made], { stdio: "ignore" });
  const conf = join(dir, "server.conf");
  fs.writeFileSync(
    conf,
    `tls { cert_file: "${join(dir, "ca.pem")}", key_file: "${join(dir, "key.pem")}" }\ninclude "./keys/users.conf"\n`,
  );
  server = await Server.prepare(dir, ["-c", conf]);
  onEnd(() => server.kill());
  hub = newTree("hub", MACHINES);
  const early = await init(hub);
  expect(early).toMatchObject({ code: 74 });
  expect(early.stderr).toContain("start the servers with");
  await server.start();
});

async function clientOf(name: string): Promise<Connection> {
  const nc = await nats.connect({
    servers: [`tls://localhost:${server.port}`],
    tls: { caFile: join(dir, "ca.pem") },
    inboxPrefix: `_INBOX_${name}`,
    authenticator: nats.nkeyAuthenticator(
      fs.readFileSync(join(dir, "keys", `${name}.nk`)).subarray(0, 58),
    ),
  });
  onTestFinished(() => nc.close());
  return nc;
}

test("init makes keys for its owner alone and the streams, and later changes only what is otherwise", async () => {
  const keys = fs.readdirSync(join(dir, "keys")).filter((file) => file !== ".tmp");
  const names = ["box1.nk", "box2.nk", "desk.nk", "hub.nk", "laptop.nk"];
  expect(keys.sort()).toEqual([...names, "nats.conf", "users.conf"].sort());
  for (const file of keys) expect(fs.statSync(join(dir, "keys", file)).mode & 0o777).toBe(0o600);
  const before = names.map((file) => fs.readFileSync(join(dir, "keys", file), "utf8"));
  const users = fs.readFileSync(join(dir, "keys", "users.conf"), "utf8");
  for (const seed of before) expect(users).not.toContain(seed.trim());
  const first = await init(hub);
  expect(first.stdout).toMatch(
    /^mc_work +made\nmc_result +made\nmc_over +made\nconsumers +17 made$/m,
  );
  const second = JSON.parse((await init(hub, "--json")).stdout);
  expect(second.files).toEqual([join(dir, "keys", "users.conf")]);
  expect(second.made).toHaveLength(20);
  for (const { is } of second.made) expect(is).toBe("there");
  const admin = await clientOf("hub");
  const jsm = await nats.jetstreamManager(admin, { checkAPI: false });
  const { config } = await jsm.streams.info("mc_over");
  await jsm.streams.update("mc_over", { ...config, max_age: 3600 * 1e9, allow_direct: true });
  const third = await init(hub);
  expect(third.stdout).toMatch(/^mc_work +already there\nmc_result +already there$/m);
  expect(third.stdout).toMatch(/^mc_over +changed: max_age, allow_direct$/m);
  expect(names.map((file) => fs.readFileSync(join(dir, "keys", file), "utf8"))).toEqual(before);
});

test("init refuses what cannot work, and a machine without the rights", async () => {
  const box1 = newTree("box1", "");
  const denied = await box1.run(["cluster", "init"]);
  expect(denied).toMatchObject({ code: 74 });
  expect(denied.stderr).toMatch(/could not be made: Permissions Violation/);
  const wrong = newTree("hub", "\n  machines: {a: {serves: [b]}, b: {}}");
  expect((await wrong.run(["cluster", "init"])).stderr).toContain("a serves b, which is another");
  const nowhere = newTree("hub", "\n  machines: {a: {sends: [gup]}}");
  expect((await nowhere.run(["cluster", "init"])).stderr).toContain("no machine there has gup");
  expect(fs.existsSync(join(nowhere.state, "cluster"))).toBe(false);
});

const TREE = "desk.abcd2345";
const ID = `${TREE}.t.s.1`;

/** Whether the servers let a machine send this, or listen to it. */
async function mayPublish(nc: Connection, subject: string): Promise<boolean> {
  try {
    await nc.request(subject, "", { timeout: 300 });
  } catch (error) {
    return !/permissions violation/i.test(String(error));
  }
  return true;
}

async function mayListen(nc: Connection, subject: string): Promise<boolean> {
  const heard = nc.subscribe(subject);
  const refused = (async () => {
    for await (const _ of heard);
    return "ended";
  })().catch(String);
  await nc.flush();
  await nc.flush();
  heard.unsubscribe();
  return !/permissions violation/i.test(await refused);
}

test("a machine can neither send nor answer, take, read or remove in the name of another one", async () => {
  const [laptop, box1, box2] = [
    await clientOf("laptop"),
    await clientOf("box1"),
    await clientOf("box2"),
  ];
  const api = "$JS.API";
  const cases: [Connection, boolean, string[]][] = [
    [laptop, true, ["mc.work.gpu.laptop.x", "mc.over.box1.laptop.x", "mc.machine.laptop"]],
    [laptop, false, [`mc.work.gpu.${ID}`, "mc.work.cpu.laptop.x", `mc.over.box1.${ID}`]],
    [box1, true, [`mc.result.${TREE}.gpu.box1.${ID}`, `mc.beat.${TREE}.box1`]],
    [box1, false, [`mc.result.${TREE}.gpu.box2.${ID}`, `mc.beat.${TREE}.box2`]],
    // The target of a result is that of the task which it settles.
    [box1, false, [`mc.result.${TREE}.cpu.box1.${ID}`, `mc.result.${TREE}.box2.box1.${ID}`]],
    [box1, false, ["mc.work.gpu.box1.x", "mc.machine.box2", "mc.control.box2", "mc.ask.desk.x"]],
    [laptop, true, ["mc.want.box1.laptop.x"]],
    [laptop, false, [`mc.want.box1.${TREE}`, `mc.log.${TREE}.laptop`]],
    [box1, true, [`mc.log.${TREE}.box1`]],
    [box1, false, [`mc.log.${TREE}.box2`, "mc.want.box2.box1.x"]],
    [box1, true, [`${api}.CONSUMER.MSG.NEXT.mc_work.target_gpu`]],
    [
      box1,
      false,
      [`${api}.CONSUMER.MSG.NEXT.mc_work.target_cpu`, "$JS.ACK.mc_work.target_cpu.1.1"],
    ],
    [laptop, true, [`${api}.CONSUMER.MSG.NEXT.mc_result.home_laptop`]],
    [
      laptop,
      false,
      [`${api}.CONSUMER.MSG.NEXT.mc_result.home_desk`, "$JS.ACK.mc_result.home_desk.1"],
    ],
    [laptop, false, [`${api}.STREAM.MSG.GET.mc_result`, `${api}.DIRECT.GET.mc_result`]],
    [laptop, false, [`${api}.STREAM.MSG.DELETE.mc_result`, `${api}.STREAM.PURGE.mc_result`]],
    [
      laptop,
      false,
      [`${api}.STREAM.CREATE.x`, `${api}.STREAM.UPDATE.mc_work`, `${api}.STREAM.DELETE.mc_work`],
    ],
    [
      laptop,
      false,
      [`${api}.CONSUMER.CREATE.mc_result`, `${api}.CONSUMER.DURABLE.CREATE.mc_result.x`],
    ],
    [
      laptop,
      false,
      [`${api}.CONSUMER.CREATE.mc_result.x.mc.result.laptop.>`, `${api}.DIRECT.GET.mc_work.x`],
    ],
    [
      box2,
      false,
      [
        `${api}.CONSUMER.MSG.NEXT.mc_over.machine_box1`,
        "_INBOX_box1.x",
        "_INBOX.x",
        "$JS.API.INFO",
      ],
    ],
  ];
  for (const [nc, isAllowed, subjects] of cases)
    for (const subject of subjects)
      expect([subject, await mayPublish(nc, subject)]).toEqual([subject, isAllowed]);
  for (const subject of ["mc.machine.*", "mc.control.box2", "_INBOX_box2.x", "mc.beat.box2.*.*"])
    expect([subject, await mayListen(box2, subject)]).toEqual([subject, true]);
  for (const subject of [
    ">",
    "mc.>",
    "mc.work.>",
    "mc.result.>",
    `mc.result.box2.>`,
    "_INBOX.>",
    "_INBOX_box1.>",
    "mc.control.box1",
    "mc.beat.>",
    "mc.want.box1.*.*",
    "mc.log.desk.*.*",
    "$JS.>",
  ])
    expect([subject, await mayListen(box2, subject)]).toEqual([subject, false]);
});

test("a server does not carry words of a machine to the subject of another one, also as its answer", async () => {
  const admin = await clientOf("hub");
  const jsm = await nats.jetstreamManager(admin, { checkAPI: false });
  const box2 = await clientOf("box2");
  const result = `mc.result.${TREE}.gpu.box1.${ID}`;
  const heard: [string, string][] = [];
  void (async () => {
    for await (const { subject, data } of admin.subscribe("mc.>"))
      heard.push([subject, Buffer.from(data).toString()]);
  })();
  await admin.flush();
  const forged = JSON.stringify({ version: 1, forged: true });
  for (const to of [result, `mc.beat.${TREE}.box1`, "mc.control.box1", "mc.work.gpu.laptop.x"]) {
    const id = `box2.abcd2345.t.s.${heard.length + 1}`;
    const before = heard.length;
    await nats.jetstream(box2).publish(`mc.work.cpu.${id}`, Buffer.from(forged));
    // What it asks for is sent to the subject that it names.
    const ask = (subject: string, body?: object): void =>
      box2.publish(subject, Buffer.from(body === undefined ? "" : JSON.stringify(body)), {
        reply: to,
      });
    ask("$JS.API.CONSUMER.MSG.NEXT.mc_work.target_cpu", { batch: 1, no_wait: true });
    ask("$JS.API.STREAM.MSG.GET.mc_work", { last_by_subj: `mc.work.cpu.${id}` });
    ask(`$JS.API.DIRECT.GET.mc_work.mc.work.cpu.${id}`);
    ask(`mc.work.cpu.${id}`, {});
    await waitFor(() => heard.length >= before + 4, { what: "what came of it" });
  }
  // The words come under the subject that they had; under that of another one comes what the server says.
  const others = heard.filter(([subject]) => !subject.startsWith("mc.work.cpu.box2."));
  expect(others.length).toBeGreaterThan(0);
  for (const [, data] of others) expect(data).not.toContain(forged);
  for (const [, data] of others) expect(JSON.parse(data)).not.toHaveProperty("version");
  for (const stream of ["mc_work", "mc_result", "mc_over"])
    await admin.request(`$JS.API.STREAM.PURGE.${stream}`, "", { timeout: 1000 });
  expect((await jsm.streams.info("mc_result")).state.messages).toBe(0);
});

test("tasks run with these rights, and when the servers have lost all, what was there is made again", async () => {
  const remote = "agents: [{name: far, kind: remote, where: gpu, as: coder}]";
  const laptop = newTree("laptop", "", remote);
  const box1 = newTree(
    "box1",
    "\n  serves: [gpu]\n  accept: [coder]",
    "agents: [{name: coder, kind: exec, program: sh, args: [-c, 'sleep 0.1; exit 0']}]",
  );
  await Promise.all([laptop.start(), box1.start()]);
  const start = async (pool: Pool): Promise<Running> => {
    const running = pool.spawn(["bridge"]);
    await waitFor(() => running.stderr().includes("(pid"), { what: "the bridge" });
    return running;
  };
  const bridges = [await start(laptop), await start(box1), await start(hub)];
  laptop.drop("one", { agent: "far", prompt: "?" });
  expect(await laptop.result("one")).toMatchObject({ machine: "box1" });
  expect((await hub.run(["cluster", "drain", "box1"])).code).toBe(0);
  expect((await hub.run(["cluster", "resume", "box1"])).code).toBe(0);
  // A message of a stream that is sent to where controls are heard is none.
  const box2 = await clientOf("box2");
  const order = Buffer.from(JSON.stringify({ version: 1, is_draining: true }));
  await nats.jetstream(box2).publish("mc.work.cpu.box2.abcd2345.t.s.1", order);
  const ask = Buffer.from(JSON.stringify({ batch: 1, no_wait: true }));
  box2.publish("$JS.API.CONSUMER.MSG.NEXT.mc_work.target_cpu", ask, { reply: "mc.control.box1" });
  await box2.flush();
  for (const bridge of bridges) expect(bridge.stderr()).not.toMatch(/may not|violation/i);
  const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
  for (const id of ids) laptop.drop(id, { agent: "far", prompt: "?" });
  await waitFor(() => laptop.settledCount() >= 4, { what: "some of them" });
  await server.wipe();
  await waitFor(() => laptop.settledCount() === ids.length + 1, { what: "all", timeoutMs: 60_000 });
  for (const id of ids) expect(await laptop.result(id)).toMatchObject({ status: "completed" });
  // Without the tree that lists the machines, the others say what is missing, and go on when it is back.
  bridges[2]?.child.kill("SIGKILL");
  await server.wipe();
  laptop.drop("late", { agent: "far", prompt: "?" });
  const said = /this machine may not make \w+, which the servers do not have/;
  await waitFor(() => said.test(bridges[0]?.stderr() ?? ""), { what: "the reason" });
  await init(hub);
  expect(await laptop.result("late")).toMatchObject({ status: "completed" });
  expect(laptop.errors()).toEqual([]);
});

test("a machine that only works may not look for jobs of others, nor remove any", () => {
  const { publish } = permissionsOf({ name: "a", serves: ["x"], sends: [] });
  expect(publish.filter((subject) => subject.includes("STREAM."))).toEqual([]);
  for (const subject of permissionsOf({ name: "a", serves: [], sends: [] }).publish)
    expect(subject).toMatch(/^(?:mc|\$JS[.].*)[.](?:.*[._])?a(?:[.]|$)/);
});
