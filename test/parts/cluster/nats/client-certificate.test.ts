/** A server that asks each machine for a certificate (`verify: true`): it works with a right one alone, and the others say why not. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../../../support/pool.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const onEnd = endOfFile();
let dir: string;
let server: Server;

const at = (file: string): string => join(dir, file);
const openssl = (...args: string[]): void =>
  void execFileSync("openssl", args, { stdio: "ignore", cwd: dir });
const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function makeAuthority(name: string): void {
  const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`, "-days", "2"];
  openssl("req", "-x509", ...NEW_KEY, "-subj", `/CN=${name}`, ...files);
}

/** @param use for whom it is: a server or a client */
function makeCertificate(name: string, authority: string, use: "server" | "client"): void {
  openssl(
    "req",
    ...NEW_KEY,
    "-subj",
    `/CN=${name}`,
    "-keyout",
    `${name}.key`,
    "-out",
    `${name}.csr`,
  );
  fs.writeFileSync(at("ext"), `subjectAltName=DNS:localhost\nextendedKeyUsage=${use}Auth\n`);
  const by = ["-CA", `${authority}.pem`, "-CAkey", `${authority}.key`, "-CAcreateserial"];
  const made = ["-in", `${name}.csr`, "-out", `${name}.pem`, "-extfile", "ext", "-days", "2"];
  openssl("x509", "-req", ...by, ...made);
}

beforeAll(async () => {
  dir = tempDir(onEnd);
  makeAuthority("authority");
  makeAuthority("another");
  makeCertificate("server", "authority", "server");
  makeCertificate("laptop", "authority", "client");
  makeCertificate("box1", "authority", "client");
  makeCertificate("stranger", "another", "client");
  fs.writeFileSync(
    at("server.conf"),
    `tls { cert_file: "${at("server.pem")}", key_file: "${at("server.key")}", ca_file: "${at("authority.pem")}", verify: true }\n`,
  );
  server = await Server.start(dir, ["-c", at("server.conf")]);
  onEnd(() => server.kill());
});

/** Its certificates lie in its state tree, and the settings name them from there. @param files of `cluster: {tls: …}` */
function newTree(name: string, files: Record<string, string>, cluster = "", more = ""): Pool {
  const tls = Object.entries(files).map(([key, file]) => `${key}: certificates/${file}`);
  const pool = newPool({
    config: `${QUICK_CONFIG}
cluster:
  servers: ["tls://localhost:${server.port}"]
  name: ${name}
  ack_wait_ms: 2000
  tls: {${tls.join(", ")}}${cluster}
${more}`,
  });
  fs.symlinkSync(join(CACHE, "node_modules"), join(pool.dir, "node_modules"));
  const own = join(pool.state, "certificates");
  fs.mkdirSync(own, { recursive: true });
  for (const file of Object.values(files)) fs.copyFileSync(at(file), join(own, file));
  return pool;
}

const ca = "authority.pem";
const filesOf = (name: string) => ({ ca, cert: `${name}.pem`, key: `${name}.key` });

test("machines with a certificate work together, also after the server was away", async () => {
  const remote = "agents: [{name: far, kind: remote, where: gpu, as: coder}]";
  const laptop = newTree("laptop", filesOf("laptop"), "", remote);
  const coder = "agents: [{name: coder, kind: exec, program: sh, args: [-c, 'exit 0']}]";
  const serves = "\n  serves: [gpu]\n  accept: [coder]";
  const box1 = newTree("box1", filesOf("box1"), serves, coder);
  await Promise.all([laptop.start(), box1.start()]);
  for (const pool of [laptop, box1]) pool.spawn(["bridge"]);
  laptop.drop("one", { agent: "far", prompt: "?" });
  expect(await laptop.result("one")).toMatchObject({ status: "completed", machine: "box1" });
  await server.kill();
  await server.start();
  laptop.drop("two", { agent: "far", prompt: "?" });
  expect(await laptop.result("two")).toMatchObject({ status: "completed", machine: "box1" });
  const ls = await laptop.run(["cluster", "ls"]);
  expect(ls.stdout).toMatch(/^box1 /m);
});

test("a machine without a certificate, or with one of another authority, is refused, and says what to look at", async () => {
  const pools = [newTree("box2", { ca }), newTree("box2", filesOf("stranger"))];
  // The server does not tell them: each waits until it knows.
  const each = pools.map(async (pool) => {
    const bridge = pool.spawn(["bridge"]);
    const init = await pool.run(["cluster", "init"]);
    const said = () => bridge.stderr().includes("\n");
    await waitFor(said, { what: "what the bridge says", timeoutMs: 30_000 });
    expect(init.code).toBe(74);
    for (const text of [init.stderr, bridge.stderr()])
      expect(text).toContain("no server has answered within 10 s: one that asks for certificates");
  });
  await Promise.all(each);
});

test("a server of another authority is refused", async () => {
  const pool = newTree("laptop", { ...filesOf("laptop"), ca: "another.pem" });
  const init = await pool.run(["cluster", "init"]);
  expect(init).toMatchObject({ code: 74 });
  expect(init.stderr).toMatch(/certificate/i);
});
