/** What a run does all day is not hindered by its walls, and its network reaches what it may reach. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { newPool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { walledPlace } from "./place.ts";

const SHELL = (text: string): string =>
  `require('node:child_process').execFileSync('sh', ['-ec', ${JSON.stringify(text)}], {stdio: 'inherit'})`;

it("npm, pip, cargo, a browser and a background process work behind walls", async ({ skip }) => {
  const place = walledPlace("{}");
  if (typeof place === "string") return skip(place);
  const { pool, repository, submit, own } = place;
  const lib = join(repository.dir, "lib");
  fs.mkdirSync(lib);
  fs.writeFileSync(join(lib, "package.json"), '{"name": "lib", "version": "1.0.0"}');
  fs.writeFileSync(join(lib, "index.js"), "module.exports = 42;");
  execFileSync("npm", ["pack", "--silent"], { cwd: lib });
  repository.commit({ "package.json": '{"dependencies": {"lib": "file:lib/lib-1.0.0.tgz"}}' });
  execFileSync("npm", ["install", "--package-lock-only", "--silent"], { cwd: repository.dir });
  repository.commit({}, "lock");
  own();
  await pool.start();
  const programs: [id: string, program: string, text: string, says: RegExp][] = [
    ["npm", "npm", "npm ci --silent && node -p \"require('lib')\"", /^42$/m],
    [
      "pip",
      "python3",
      "python3 -m venv --without-pip v && v/bin/python -c 'print(6 * 7)'",
      /^42$/m,
    ],
    [
      "cargo",
      "cargo",
      "mkdir c && cd c && cargo init -q --vcs none --name c && cargo run -q",
      /^Hello, world!$/m,
    ],
    [
      "browser",
      "chromium",
      "chromium --headless --no-sandbox --disable-gpu --user-data-dir=/tmp/profile --dump-dom 'data:text/html,<b>hello</b>'",
      /<b>hello<\/b>/,
    ],
    ["temporary", "mktemp", 'f=$(mktemp); echo 42 > $f; cat $f; test "$TMPDIR" = /tmp', /^42$/m],
    ["children", "sleep", "sleep 0.1 & wait; echo 42", /^42$/m],
  ];
  const there = programs.filter(([, name]) => place.canStart(name));
  for (const [id, , text] of there) submit(id, SHELL(text), { max_attempts: 1 });
  for (const [id, , , says] of there)
    expect(String((await pool.result(id)).output), id).toMatch(says);
  expect(fs.readdirSync(place.temporary)).toEqual([]);
});

it("a run reaches the hosts that network.allow names, and no other", async ({ skip }) => {
  const server = http.createServer((_, answer) => answer.end("hello"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const place = walledPlace(`{network: {allow: ["127.0.0.1:${port}"]}}`);
  if (typeof place === "string") return skip(place);
  place.own();
  await place.pool.start();
  place.submit(
    "asks",
    `const http = require('node:http');
     const proxy = new URL(process.env.HTTP_PROXY);
     const ask = (url) => new Promise((resolve) => http.get({host: proxy.hostname, port: proxy.port, path: url},
       (answer) => { answer.resume(); resolve(answer.statusCode); }));
     const direct = new Promise((resolve) => http.get('http://127.0.0.1:${port}', resolve).on('error', (e) => resolve(e.code)));
     Promise.all([ask('http://127.0.0.1:${port}/'), ask('http://127.0.0.1:1/'), ask('http://example.com/'), direct])
       .then((all) => console.log(JSON.stringify(all)));`,
  );
  const { output } = await place.pool.result("asks");
  expect(JSON.parse(String(output))).toEqual([200, 403, 403, "ECONNREFUSED"]);
});

it("a run whose walls cannot be built is tried again, and uses no attempt", async ({ skip }) => {
  const bin = tempDir(undefined, "/var/tmp");
  fs.chmodSync(bin, 0o777);
  // A bubblewrap that fails once, as when a socket goes that was to be hidden.
  const fails = `[ $# -lt 30 ] || [ -e ${bin}/failed ] || { touch ${bin}/failed; exit 1; }`;
  const text = `#!/bin/sh\n${fails}\nexec /usr/bin/bwrap "$@"\n`;
  fs.writeFileSync(join(bin, "bwrap"), text, { mode: 0o755 });
  const path = [bin, process.env["PATH"] ?? ""].join(delimiter);
  const place = walledPlace("{}", { PATH: path });
  if (typeof place === "string") return skip(place);
  place.own();
  await place.pool.start();
  place.submit("again", "console.log(42)");
  expect(await place.pool.result("again")).toMatchObject({ output: "42\n", attempts: 1 });
  expect(fs.existsSync(join(bin, "failed"))).toBe(true);
});

it("a run in the home directory is refused, because it could write everything there", async ({
  skip,
}) => {
  const place = walledPlace("{}");
  if (typeof place === "string") return skip(place);
  place.own();
  await place.pool.start();
  place.pool.drop("home", { exec: ["true"], cwd: place.home });
  const { error, code } = await place.pool.error("home");
  expect(code).toBe("ErrInvalidConfig");
  expect(error).toContain("give it a cwd or a worktree");
});

it("a machine without bubblewrap refuses to start, and says what to do", async () => {
  const empty = { PATH: "/nowhere" };
  const refused = newPool({ config: "sandbox: {}\n", env: empty });
  const { code, stderr } = await refused.run(["run", "--drain"]);
  expect(code).toBe(78);
  expect(stderr).toMatch(/ErrInvalidConfig.*install bubblewrap/);
  const open = newPool({ config: "sandbox: {missing: open}\n", env: empty });
  open.drop("a", { exec: [process.execPath, "-p", "42"] });
  await open.start();
  expect((await open.result("a")).output).toBe("42\n");
  expect(open.alerts()).toContainEqual(expect.objectContaining({ alert: "sandbox" }));
});
