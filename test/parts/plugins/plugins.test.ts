/** Plugins as a person uses them: packages installed beside the state tree, modules in it, programs on PATH. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openWeb } from "../web/open-web.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Packs these examples, and installs them beside the state tree, where mailchute is installed, too. */
function install(pool: Pool, names: readonly string[]): void {
  const npm = (...args: string[]): string =>
    execFileSync("npm", args, {
      cwd: pool.dir,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  const files = names.map((name) =>
    npm("pack", "--silent", join(ROOT, "examples", "plugins", name)).trim(),
  );
  npm("install", "--offline", "--legacy-peer-deps", "--no-save", ...files.map((one) => `./${one}`));
  fs.symlinkSync(ROOT, join(pool.dir, "node_modules", "mailchute"));
}

function poolWith(config: string, modules: Readonly<Record<string, string>> = {}): Pool {
  const pool = newPool({ config: `${QUICK_CONFIG}${config}` });
  for (const [name, text] of Object.entries(modules))
    fs.writeFileSync(join(pool.state, name), text);
  return pool;
}

const jsonOf = async (pool: Pool, ...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await pool.run([...args, "--json"])).stdout);

/** A service that says what it got. */
async function startService(): Promise<string> {
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const status = body === '"bad"' ? 422 : 200;
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ body, key: request.headers["idempotency-key"] }));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("a task is run by the kind of an installed package", async () => {
  const url = await startService();
  const pool = poolWith(`
plugins: [mailchute-http-agent]
agents: [{ name: web, kind: http, settings: { url: "${url}" } }]
`);
  install(pool, ["http-agent"]);
  await pool.start();
  pool.drop("a", { agent: "web", payload: { n: 1 } });
  pool.drop("b", { agent: "web", payload: "bad" });
  expect((await pool.result("a")).output).toEqual({
    status: 200,
    answer: { body: '{"n":1}', key: "a" },
  });
  expect(await pool.error("b")).toMatchObject({
    code: "ErrHandler",
    error: `${url} answered 422`,
    attempts: 1,
  });
});

test("a gate of an installed package holds its tasks back, and every screen says why", async () => {
  const hour = new Date().getHours();
  const [from, to] = [(hour + 3) % 24, (hour + 4) % 24];
  const pool = poolWith(`
plugins:
  - path: mailchute-night
    settings: { from: ${from}, to: ${to}, groups: [nightly] }
`);
  install(pool, ["night"]);
  await pool.start();
  pool.drop("n", { exec: ["true"], group: "nightly" });
  pool.drop("d", { exec: ["true"], group: "daily" });
  await pool.result("d");
  const reason = `it starts only at night, from ${from} to ${to} o'clock`;
  const why = await waitFor(
    async () => {
      const said = await jsonOf(pool, "why", "n");
      return String(said["why"]).includes(reason) ? said : undefined;
    },
    { what: "the reason of the gate" },
  );
  expect(why).toMatchObject({ state: "waiting", do: expect.stringContaining("plugin night") });
  const status = await jsonOf(pool, "status");
  expect(status["obstacles"]).toContainEqual({ what: reason, do: why["do"] });
  const waited = await pool.run(["wait", "n", "--timeout", "0.1"]);
  expect(waited.stderr).toContain(reason);
  expect((await pool.run(["show", "n"])).stdout).toContain(reason);
  const web = await openWeb(pool.state);
  expect(JSON.stringify((await web.page("/")).blocks)).toContain(reason);
  expect(JSON.stringify((await web.page("/tasks/n")).blocks)).toContain(reason);
  const page = await web.page("/plugins/night");
  expect(page).toMatchObject({ title: "Night", blocks: [{ kind: "facts" }] });
  expect(JSON.stringify(page.blocks)).toContain('["now","day: its tasks wait"]');
  expect(page).toHaveProperty(
    "nav",
    expect.arrayContaining([{ text: "Night", to: "/plugins/night" }]),
  );
  await pool.stop();
  const alone = await jsonOf(pool, "why", "n");
  expect(alone["why"]).toContain("no supervisor runs");
  expect(alone["why"]).toContain(`; also: ${reason}`);
  expect((await jsonOf(pool, "status"))["obstacles"]).toContainEqual({
    what: reason,
    do: why["do"],
  });
  expect((await pool.run(["show", "n"])).stdout).toContain(reason);
  expect((await pool.run(["night"])).stdout).toMatch(/^the next night begins at \d{4}-/);
  const { stdout: help } = await pool.run(["help"]);
  expect(help).toContain("Plugins:\n  night ");
  expect(fs.existsSync(join(pool.inbox, "n.json"))).toBe(true);
});

const BAD = `
import fs from "node:fs";
export default { name: "bad", api: 1, gates: {
  throwing({ group }) {
    if (group === "throw" && !fs.existsSync(new URL("mended", import.meta.url))) throw new Error("boom");
  },
  slow({ group }) { if (group === "loop") for (;;); },
  promise({ group }) { if (group === "promise") return Promise.reject(new Error("late")); },
} };
`;

test("a gate that throws, hangs or promises is closed for its tasks, and all others go on", async () => {
  const pool = poolWith("plugins: [./bad.mjs]\n", { "bad.mjs": BAD });
  await pool.start();
  for (const group of ["throw", "loop", "promise"]) pool.drop(group, { exec: ["true"], group });
  for (const id of ["a", "b", "c"]) pool.drop(id, { exec: ["true"] });
  for (const id of ["a", "b", "c"]) await pool.result(id);
  const said: [string, RegExp][] = [
    ["throw", /ErrPlugin: the gate bad\.throwing does not answer: boom/],
    ["loop", /ErrPlugin: the gate bad\.slow does not answer: it took longer than 50 ms/],
    ["promise", /ErrPlugin: the gate bad\.promise does not answer: it must return/],
  ];
  for (const [id, text] of said)
    await waitFor(async () => text.test(String((await jsonOf(pool, "why", id))["why"])), {
      what: `the reason of ${id}`,
    });
  // It was asked several times by then, and reported once.
  fs.writeFileSync(join(pool.state, "mended"), "");
  await pool.result("throw");
  const told = pool.alerts().map(({ message }) => message);
  for (const [, text] of said)
    expect(told.filter((message) => text.test(String(message)))).toHaveLength(1);
  pool.drop("d", { exec: ["true"] });
  await pool.result("d");
});

test("pages of plugins show texts as texts, and a page that cannot be made says why", async () => {
  const block = '{ kind: "text", text: "<b>\\u0007" }';
  const pool = poolWith("plugins: [p.mjs]\n", {
    "p.mjs": `export default { name: "p", api: 1, pages: {
      good: { title: "Good", render: ({ query }) => [${block}, { kind: "heading", text: query.q }] },
      bad: { title: "Bad", async render() { throw new Error("boom"); } },
      odd: { title: "Odd", render: () => [{ kind: "html", html: "<script>" }] },
    } };`,
  });
  const web = await openWeb(pool.state);
  expect((await web.page("/plugins/good?q=x")).blocks).toEqual([
    { kind: "text", text: "<b>\\x07", is_bad: false },
    { kind: "heading", text: "x" },
  ]);
  const textOf = async (path: string) => JSON.stringify((await web.page(path)).blocks);
  expect(await textOf("/plugins/bad")).toContain(
    "ErrPlugin: the page bad of a plugin cannot be made: boom",
  );
  expect(await textOf("/plugins/odd")).toContain(
    "a block has a kind of heading, text, facts, table",
  );
  expect(await textOf("/plugins/none")).toContain("cannot be made");
  expect(await textOf("/tasks")).not.toContain("ErrPlugin");
});

const FAULTS: [what: string, config: string, module: string, says: RegExp][] = [
  [
    "of another api",
    "",
    "export default { name: 'p', api: 2 }",
    /plugin p is for api 2 of plugins, and mailchute \S+ has api 1/,
  ],
  ["that throws", "", "throw new Error('no')", /the plugin cannot be loaded: no/],
  ["that is none", "", "export default 1", /its default export is not a plugin/],
  [
    "with a member that is unknown",
    "",
    "export default { name: 'p', api: 1, gate: {} }",
    /the plugin p: gate: unexpected property/,
  ],
  [
    "with a gate that is none",
    "",
    "export default { name: 'p', api: 1, gates: { g: 1 } }",
    /the plugin p: gates.g: expected function, found 1/,
  ],
  [
    "of a taken kind",
    "",
    "export default { name: 'p', api: 1, kinds: { exec: { make() {} } } }",
    /two bring kinds exec: mailchute and the plugin p/,
  ],
  [
    "that does not bring a kind",
    "agents: [{ name: a, kind: ehco }]",
    "export default { name: 'p', api: 1, kinds: { echo: { make() {} } } }",
    /agents: a is of kind ehco, which is not built in/,
  ],
  [
    "whose settings break its schema",
    "",
    "export default { name: 'p', api: 1, settings: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } }",
    /settings of the plugin p: a: expected required property/,
  ],
  [
    "whose kind refuses the settings of an agent",
    "agents: [{ name: a, kind: echo, settings: { n: x } }]",
    "export default { name: 'p', api: 1, kinds: { echo: { settings: { type: 'object', properties: { n: { enum: [1, 2] } } }, make() {} } } }",
    /agents: settings of a, of kind echo: n: expected/,
  ],
];

test.each(FAULTS)(
  "a plugin %s refuses the start, and other commands go on with a note",
  async (_what, config, text, says) => {
    const pool = poolWith(`plugins: [p.mjs]\n${config}\n`, { "p.mjs": text });
    const run = await pool.run(["run", "--drain"]);
    expect(run.code).toBe(78);
    expect(run.stderr).toMatch(/^mailchute: ErrPlugin: /);
    expect(run.stderr).toMatch(says);
    expect(run.stderr).toContain("\n  do: ");
    const ls = await pool.run(["ls"]);
    expect(ls.code).toBe(0);
    const notes = ls.stderr.trim().split("\n");
    expect(notes.filter((line) => line.includes("ErrPlugin"))).toHaveLength(1);
    expect(ls.stderr).toMatch(says);
  },
);

test("a plugin that is not there refuses the start, and names its path", async () => {
  const pool = poolWith("plugins: [./gone.mjs]\n");
  const { code, stderr } = await pool.run(["run", "--drain"]);
  expect(code).toBe(78);
  expect(stderr).toContain(`where: ${join(pool.state, "gone.mjs")}`);
});

test("a kind that is not built in is an error with its line when no plugin is named", async () => {
  const pool = poolWith("agents:\n  - { name: a, kind: robot }\n");
  const { code, stderr } = await pool.run(["run", "--drain"]);
  expect(code).toBe(78);
  expect(stderr).toMatch(/line 9, column 22: .*a is of kind robot: expected exec or module/);
});

test("an agent in TypeScript gets its settings, and one that cannot be made leaves its tasks waiting", async () => {
  const pool = poolWith(
    "plugins: [{ path: ./echo.ts, settings: { loud: true } }]\n" +
      "agents: [{ name: a, kind: echo, settings: { word: hi } }, { name: b, kind: broken }]\n",
    {
      "echo.ts": `
import { appendFileSync } from "node:fs";
appendFileSync(new URL("loads", import.meta.url), process.pid + "\\n");
const echo = { make: (agent: { settings: { word: string } }, own: { loud: boolean }) => async () =>
  own.loud ? agent.settings.word.toUpperCase() : agent.settings.word };
export default { name: "echo", api: 1, kinds: { echo, broken: { make() { throw new Error("no"); } } } };
`,
    },
  );
  await pool.start();
  pool.drop("a", { agent: "a" });
  expect((await pool.result("a")).output).toBe("HI");
  pool.drop("b", { agent: "b" });
  const text = "cannot load the code for agents of kind broken: no: mend its plugin";
  await waitFor(() => pool.events().some((line) => JSON.stringify(line).includes(text)), {
    what: "the reason why b waits",
  });
  expect(pool.errors()).toEqual([]);
  const loads = fs.readFileSync(join(pool.state, "loads"), "utf8").trim().split("\n");
  expect(new Set(loads).size).toBe(loads.length);
});

/** A directory on PATH with this program. */
function withProgram(pool: Pool, name: string, text: string): Record<string, string> {
  const bin = join(pool.dir, "bin");
  fs.mkdirSync(bin, { recursive: true });
  fs.writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return { PATH: `${bin}${delimiter}${process.env["PATH"]}` };
}

function runWith(pool: Pool, env: Record<string, string>, ...args: string[]) {
  try {
    const more = { cwd: pool.dir, env: { ...process.env, ...env }, encoding: "utf8" } as const;
    const stdout = execFileSync(process.execPath, [join(ROOT, "bin/mailchute.js"), ...args], {
      ...more,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return { code: 0, stdout, stderr: "" };
  } catch (error) {
    const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string };
    return { code: status, stdout, stderr };
  }
}

test("a program mailchute-NAME on PATH is a verb, with its words, the tree and its exit code", () => {
  const pool = poolWith("");
  const env = withProgram(pool, "mailchute-hi", 'echo "$MAILCHUTE_STATE|$*"; exit 7');
  expect(runWith(pool, env, "hi", "-x", "--json", "a b")).toEqual({
    code: 7,
    stdout: `${pool.state}|-x --json a b\n`,
    stderr: "",
  });
  expect(runWith(pool, env, "help").stdout).toContain("On PATH:\n  hi\n");
  const inRun = runWith(pool, { ...env, MAILCHUTE_TASK_ID: "t" }, "hi");
  expect(inRun).toMatchObject({ code: 2, stderr: expect.stringContaining('no command "hi"') });
  const relative = { PATH: `bin${delimiter}${process.env["PATH"]}` };
  expect(runWith(pool, relative, "hi").code).toBe(2);
});

test("our verbs win over those of plugins, and these over programs", () => {
  const verb = (text: string): string =>
    `{ summary: "s", command: { usage: "", options: {}, async run(ctx) { ctx.out.line(${JSON.stringify(text)}); return 0; } } }`;
  const pool = poolWith("plugins: [v.mjs]\n", {
    "v.mjs": `export default { name: "v", api: 1, verbs: { hi: ${verb("plugin")}, ls: ${verb("plugin")} } };`,
  });
  const env = withProgram(pool, "mailchute-hi", "echo program");
  withProgram(pool, "mailchute-ls", "echo program");
  expect(runWith(pool, env, "hi").stdout).toBe("plugin\n");
  expect(runWith(pool, env, "ls").stdout).not.toMatch(/plugin|program/);
});

test("the plugins of a tree that belongs to another user are not loaded", () => {
  if (process.getuid?.() !== 0) return;
  const pool = poolWith("plugins: [v.mjs]\n", {
    "v.mjs": 'import fs from "node:fs"; fs.writeFileSync(new URL("ran", import.meta.url), "");',
  });
  fs.chownSync(join(pool.state, "config.yaml"), 65534, 65534);
  expect(runWith(pool, {}, "ls").code).toBe(0);
  expect(fs.existsSync(join(pool.state, "ran"))).toBe(false);
});

test("a tree without plugins loads not one module for them", () => {
  const probe = 'process.on("exit", () => console.error(Object.keys(require.cache).join("\\n")));';
  const loaded = (pool: Pool): string[] => {
    const file = join(pool.dir, "probe.cjs");
    fs.writeFileSync(file, probe);
    const argv = ["-r", file, join(ROOT, "bin/mailchute.js"), "ls", "--state", pool.state];
    const { stderr } = runNode(argv);
    return stderr.split("\n").filter((path) => path.startsWith(join(ROOT, "dist")));
  };
  const without = loaded(poolWith(""));
  const withOne = loaded(
    poolWith("plugins: [p.mjs]\n", { "p.mjs": "export default { name: 'p', api: 1 }" }),
  );
  expect(without.length).toBeGreaterThan(0);
  expect(withOne.length).toBeGreaterThan(without.length);
  expect(without.filter((path) => /plugin|foreign|load-/.test(path))).toEqual([]);
});

function runNode(argv: string[]): { stderr: string } {
  const file = execFileSync("sh", ["-c", '"$0" "$@" 2>&1 >/dev/null', process.execPath, ...argv], {
    encoding: "utf8",
  });
  return { stderr: file };
}
