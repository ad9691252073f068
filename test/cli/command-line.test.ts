/** What holds for every command: verbs, options, help, errors. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { loadCommand, REGISTRY } from "../../src/cli/shell/registry.ts";
import { newPool } from "../support/pool.ts";
import { newCli, put } from "./run-cli.ts";

test("without a command the overview goes to stderr and the exit code is 2", async () => {
  const result = await newCli()([]);
  expect(result.code).toBe(2);
  expect(result.stdout).toBe("");
  expect(result.stderr).toContain("Usage: mailchute <command>");
});

test("the overview names each group of commands once", async () => {
  const { stdout } = await newCli()(["--help"]);
  const groups = [...stdout.matchAll(/^([A-Z][a-z]+):$/gm)].map(([, name]) => name);
  expect(groups).toContain("Plan");
  expect(new Set(groups).size).toBe(groups.length);
});

test("--version prints the version of package.json", async () => {
  const version = JSON.parse(
    fs.readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  ).version;
  expect(await newCli()(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test("an unknown command is refused with exit code 2 and a suggestion", async () => {
  const result = await newCli()(["sttaus"]);
  expect(result.code).toBe(2);
  expect(result.stderr).toBe(
    'mailchute: ErrUsage: there is no command "sttaus"\n  do: did you mean "mailchute status"?\n',
  );
});

test.each([
  [
    ["ls", "--status", "failed"],
    "did you mean --state-is waiting|ready|held|running|done|failed|skipped|cancelled?",
  ],
  [["ls", "--state", "failed"], "did you mean --state-is failed?"],
  [["ls", "--state-is"], "--state-is needs a value: waiting|ready|held|running|done|failed"],
])("%j is refused, and the option that was meant is named with its values", async (args, hint) => {
  const result = await newCli()(args);
  expect(result.code).toBe(2);
  expect(result.stderr).toContain(hint);
});

test("an unknown option is refused with exit code 2 and a suggestion", async () => {
  const result = await newCli()(["ls", "--limt", "3"]);
  expect(result.code).toBe(2);
  expect(result.stderr).toContain("did you mean --limit?");
});

test("an option without its value is refused", async () => {
  const cli = newCli();
  expect((await cli(["enqueue", "--id"])).code).toBe(2);
  const swallowed = await cli(["enqueue", "--id", "--title", "x"]);
  expect(swallowed.code).toBe(2);
  expect(swallowed.stderr).toContain("--id needs a value");
});

test("shared options may stand before the command", async () => {
  const cli = newCli();
  put(cli, "mailbox/inbox/a.json", { exec: ["true"] });
  const result = await cli(["--json", "--state", "state", "ls"]);
  expect(result.code).toBe(0);
  expect(JSON.parse(result.stdout).tasks).toHaveLength(1);
});

test("a state directory may be called like a command", async () => {
  const cli = newCli();
  expect((await cli(["--state", "ls", "enqueue", "--id", "a", "--", "true"])).code).toBe(0);
  expect(fs.existsSync(join(cli.dir, "ls", "mailbox", "inbox", "a.json"))).toBe(true);
});

test.each([["--state="], ["--state", ""]])(
  "an empty state directory is refused, also where the environment names one: %j %j",
  async (...flag) => {
    const cli = newCli();
    put(cli, "mailbox/inbox/a.json", {});
    const env = { MAILCHUTE_STATE: join(cli.dir, "state") };
    const { code, stderr } = await cli(["ls", ...flag], { env });
    expect(stderr).toContain("--state is empty");
    expect(code).toBe(2);
    // Not set, as many scripts have it.
    expect((await cli(["ls"], { env: { MAILCHUTE_STATE: "" } })).code).toBe(0);
  },
);

test("the second word of a two-word command is checked", async () => {
  const result = await newCli()(["completion", "bsh"]);
  expect(result.code).toBe(2);
  expect(result.stderr).toContain('did you mean "mailchute completion bash"?');
});

test("every command that has `ls` lists without it, too", async () => {
  const cli = newCli();
  await cli(["init", "state"]);
  const verbs: string[] = [];
  for (const verb of Object.keys(REGISTRY)) {
    const { subcommands = {}, args } = await loadCommand(verb);
    if (Object.hasOwn(subcommands, "ls") && args?.min === 0) verbs.push(verb);
  }
  expect(verbs).toEqual(expect.arrayContaining(["schedule", "trees", "group"]));
  await Promise.all(
    verbs.map(async (verb) => {
      const [alone, listed] = await Promise.all([cli([verb]), cli([verb, "ls"])]);
      expect(alone, verb).toEqual(listed);
    }),
  );
});

test.each([
  ["schedule add tick --every 5s -- date", "write state/schedules/NAME.yaml"],
  ["schedule create tick", "write state/schedules/NAME.yaml"],
  ["schedule rm tick", "remove its file"],
  ["trees list", 'did you mean "mailchute trees ls"?'],
  ["trees delete shop", 'did you mean "mailchute trees remove"?'],
  ["trees new shop --force", 'did you mean "mailchute trees add"?'],
  ["web link", "mailchute web --link"],
])("`%s` says what to do in its place", async (line, hint) => {
  const { code, stderr } = await newCli()(line.split(" "));
  expect(stderr).toContain(hint);
  expect(code).toBe(2);
});

test("with --json an error is one JSON object on stderr and stdout stays empty", async () => {
  const result = await newCli()(["--json", "status"]);
  expect(result.code).toBe(3);
  expect(result.stdout).toBe("");
  expect(JSON.parse(result.stderr).error.code).toBe("ErrNoState");
});

test("commands that only look make no directories", async () => {
  const cli = newCli();
  for (const verb of ["status", "ls", "events", "clean", "doctor", "config"]) await cli([verb]);
  expect(fs.readdirSync(cli.dir)).toEqual([]);
});

test("no line of any help is wider than 80 columns", async () => {
  const cli = newCli();
  const texts = [(await cli(["--help"])).stdout];
  for (const verb of [
    "init",
    "enqueue",
    "wait",
    "retry",
    "status",
    "ls",
    "show",
    "logs",
    "events",
    "clean",
    "doctor",
    "config",
    "schema",
    "completion",
    "help",
  ]) {
    const result = await cli(["help", verb]);
    expect(result.code, verb).toBe(0);
    texts.push(result.stdout);
  }
  const long = texts.flatMap((text) => text.split("\n")).filter((line) => line.length > 80);
  expect(long).toEqual([]);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 0],
] as const)("a worker by hand that is ended by %s has exit code %d", async (signal, code) => {
  const pool = newPool();
  const worker = pool.spawn(["worker"]);
  // Accepted, as a supervisor leaves it. Who runs tasks hears signals.
  fs.writeFileSync(join(pool.processing, "a@s.1~ready.json"), '{"id":"a","exec":["true"]}');
  await pool.result("a");
  worker.child.kill(signal);
  expect(await worker.ended).toEqual({ exitCode: code, signal: null });
});

test("status reads few files, and neither typebox nor chokidar nor yaml", async () => {
  const cli = newCli();
  put(cli, "mailbox/inbox/a.json", { exec: ["true"] });
  const hook = put(
    cli,
    "hook.cjs",
    'process.on("exit", () => process._rawDebug(Object.keys(require.cache).join("\\n")));',
  );
  const result = await cli(["status"], { env: { NODE_OPTIONS: `--require=${hook}` } });
  expect(result.code).toBe(0);
  const dist = fileURLToPath(new URL("../../dist", import.meta.url));
  const loaded = result.stderr.split("\n").filter((path) => path.startsWith(dist));
  // Each file is one more to find and read.
  expect(loaded.length).toBeGreaterThan(0);
  expect(loaded.length).toBeLessThan(6);
  const built = fs
    .readdirSync(dist, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".cjs"))
    .map((name) => join(dist, name));
  for (const part of ["FSWatcher", "YAMLMap", "TypeCompiler"]) {
    const holders = built.filter((path) => fs.readFileSync(path, "utf8").includes(part));
    expect(holders, part).not.toEqual([]);
    expect(
      holders.filter((path) => loaded.includes(path)),
      part,
    ).toEqual([]);
  }
});
