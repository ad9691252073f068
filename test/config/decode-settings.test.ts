/** Settings from flags, environment and config.yaml. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadSettings } from "../../src/config/load-settings.ts";
import { MailchuteError } from "../../src/core/errors.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";

function stateWith(config?: string): string {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-config-"));
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }));
  if (config !== undefined) fs.writeFileSync(join(dir, "config.yaml"), config);
  return dir;
}

function faultOf(
  config: string,
  env: NodeJS.ProcessEnv = {},
  flags: Record<string, unknown> = {},
): MailchuteError {
  try {
    loadSettings({ stateDir: stateWith(config), env, flags });
  } catch (error) {
    expect(error).toBeInstanceOf(MailchuteError);
    expect((error as MailchuteError).code).toBe("ErrInvalidConfig");
    return error as MailchuteError;
  }
  throw new Error("expected ErrInvalidConfig");
}

test("without a config.yaml everything is built-in", () => {
  const loaded = loadSettings({ stateDir: stateWith(), env: {} });
  expect(loaded.settings).toEqual(DEFAULT_SETTINGS);
  expect(loaded.file).toBeUndefined();
  expect(loaded.mailboxDir).toBeUndefined();
  expect(new Set(Object.values(loaded.sources))).toEqual(new Set(["built-in"]));
});

test("the defaults are not changed by loading", () => {
  const before = structuredClone(DEFAULT_SETTINGS);
  loadSettings({ stateDir: stateWith("workers: 9\nretry: { max_attempts: 9 }\n"), env: {} });
  expect(DEFAULT_SETTINGS).toEqual(before);
});

test("flags win over the environment, which wins over config.yaml, which wins over built-in values", () => {
  const stateDir = stateWith("workers: 4\nprocesses: 4\ngrace_ms: 4\n");
  const env = { MAILCHUTE_WORKERS: "5", MAILCHUTE_PROCESSES: "5" };
  const { settings, sources } = loadSettings({
    stateDir,
    env,
    flags: { workers: 6, processes: undefined },
  });
  expect([settings.workers, settings.processes, settings.grace_ms]).toEqual([6, 5, 4]);
  expect([
    sources["workers"],
    sources["processes"],
    sources["grace_ms"],
    sources["sweep_ms"],
  ]).toEqual(["flag", "environment", "config.yaml", "built-in"]);
});

test("every scalar leaf has a variable named after its path", () => {
  const env = {
    MAILCHUTE_RETRY_MAX_ATTEMPTS: "7",
    MAILCHUTE_LEASE_TTL_MS: "60000",
    MAILCHUTE_DURABILITY: "process",
  };
  const { settings, sources } = loadSettings({ stateDir: stateWith(), env });
  expect(settings.retry.max_attempts).toBe(7);
  expect(settings.lease_ttl_ms).toBe(60_000);
  expect(settings.durability).toBe("process");
  expect(sources["retry.max_attempts"]).toBe("environment");
});

test("the mailbox variables are honoured, the foreign names below our own", () => {
  const env = {
    DROVER_MAILBOX_DIR: "/theirs",
    DROVER_MAILBOX_ENABLED: "false",
    DROVER_MAILBOX_OUTBOX_RETENTION: "1.5",
    DROVER_MAILBOX_FAILED_RETENTION: "2",
  };
  const theirs = loadSettings({ stateDir: stateWith(), env });
  expect(theirs.mailboxDir).toBe("/theirs");
  expect(theirs.settings.mailbox_enabled).toBe(false);
  expect(theirs.settings.retention).toMatchObject({ outbox_days: 1.5, failed_days: 2 });
  const own = {
    MAILCHUTE_MAILBOX_DIR: "/ours",
    MAILCHUTE_MAILBOX_ENABLED: "1",
    MAILCHUTE_MAILBOX_OUTBOX_RETENTION: "3",
  };
  const ours = loadSettings({ stateDir: stateWith(), env: { ...env, ...own } });
  expect(ours.mailboxDir).toBe("/ours");
  expect(ours.settings.mailbox_enabled).toBe(true);
  expect(ours.settings.retention).toMatchObject({ outbox_days: 3, failed_days: 2 });
});

test("a bad variable is named", () => {
  expect(faultOf("", { MAILCHUTE_WORKERS: "many" }).message).toContain("MAILCHUTE_WORKERS");
  expect(faultOf("", { DROVER_MAILBOX_ENABLED: "maybe" }).message).toContain(
    "DROVER_MAILBOX_ENABLED",
  );
  expect(faultOf("", { MAILCHUTE_MAILBOX_FAILED_RETENTION: "-1" }).message).toContain(
    "MAILCHUTE_MAILBOX_FAILED_RETENTION",
  );
});

test("an unknown key is refused with its place and a suggestion", () => {
  const fault = faultOf("workers: 3\nretry:\n  max_attemps: 3\n");
  expect(fault.path).toMatch(/config\.yaml:3:3$/);
  expect(fault.hint).toBe('did you mean "max_attempts"?');
});

test("an unknown key of an agent is refused with its place", () => {
  const fault = faultOf("agents:\n  - name: a\n    kind: codex\n    progam: x\n");
  expect(fault.path).toMatch(/config\.yaml:4:5$/);
  expect(fault.hint).toBe('did you mean "program"?');
});

test.each([
  ["module", "is of kind module and needs a module"],
  ["exec", "is of kind exec and needs a program"],
])("an agent of kind %s that cannot work is refused with its place", (kind, reason) => {
  const fault = faultOf(`agents:\n  - name: a\n    kind: ${kind}\n`);
  expect(fault.code).toBe("ErrInvalidConfig");
  expect(fault.message).toContain("line 3, column 11: agents.0: a");
  expect(fault.message).toContain(reason);
  expect(fault.path).toMatch(/config\.yaml:3:11$/);
});

test.each([
  ["claude", ""],
  ["exec", ", program: x"],
  ["module", ", module: ./x.mjs"],
])("a mode of an agent of kind %s is refused with its place and what to do", (kind, more) => {
  const text = `agents:\n  - {name: a, kind: ${kind}${more}, mode: app-server}\n`;
  const fault = faultOf(text);
  expect(fault.code).toBe("ErrInvalidConfig");
  expect(fault.message).toContain(`line 2, column 21: agents.0: a is of kind ${kind}`);
  expect(fault.message).toContain("only kind codex has a mode: remove mode");
  expect(fault.path).toMatch(/config\.yaml:2:21$/);
  const { settings } = loadSettings({
    stateDir: stateWith(text.replace(`kind: ${kind}${more}`, "kind: codex")),
    env: {},
  });
  expect(settings.agents).toMatchObject([{ kind: "codex", mode: "app-server" }]);
});

test.each([
  ["kind: exec, program: x, where: gpu", "only kind remote has where and as"],
  ["kind: claude, as: coder", "only kind remote has where and as"],
  ["kind: remote, verify: [[make]]", "verify belongs to the agent at the machine"],
  ["kind: remote, program: x", "program belongs to the agent at the machine"],
  ["kind: remote, where: a b", "where"],
])("an agent with %s is refused", (fields, reason) => {
  const fault = faultOf(`agents:\n  - {name: a, ${fields}}\n`);
  expect(fault.code).toBe("ErrInvalidConfig");
  expect(fault.message).toContain(reason);
  const text = "agents:\n  - {name: a, kind: remote, where: gpu, as: coder, slots: 2}\n";
  expect(loadSettings({ stateDir: stateWith(text), env: {} }).settings.agents).toHaveLength(1);
});

test.each(["usd", "tokens", "turns", "time_ms"])(
  "a soft limit in %s above the hard one is refused",
  (unit) => {
    const { message } = faultOf(`budgets: {day_${unit}: 3, day_hard_${unit}: 2}\n`);
    expect(message).toContain(`budgets.day_${unit} must not be above budgets.day_hard_${unit}`);
  },
);

test("values without content and empty files count as not set", () => {
  expect(
    loadSettings({ stateDir: stateWith("workers:\nretry:\n  # max_attempts: 5\n"), env: {} })
      .settings,
  ).toEqual(DEFAULT_SETTINGS);
  expect(loadSettings({ stateDir: stateWith(""), env: {} }).settings).toEqual(DEFAULT_SETTINGS);
});

test("modules and roots are relative to config.yaml", () => {
  const stateDir = stateWith(
    "roots: [work, /srv]\nagents:\n  - { name: m, kind: module, module: ./h/x.mjs }\n",
  );
  const { settings } = loadSettings({ stateDir, env: {} });
  expect(settings.agents[0]?.module).toBe(join(stateDir, "h", "x.mjs"));
  expect(settings.roots).toEqual([join(stateDir, "work"), "/srv"]);
});

test("a config.yaml that cannot be read is an error, not a missing one", () => {
  const stateDir = stateWith();
  fs.mkdirSync(join(stateDir, "config.yaml"));
  expect(() => loadSettings({ stateDir, env: {} })).toThrow("cannot read config.yaml");
});

test("prices are one setting, whose names are models; a fault in one has its line", () => {
  const config = "prices:\n  gpt-x: {input_usd: 1, output_usd: 2}\n";
  const { settings, sources } = loadSettings({ stateDir: stateWith(config), env: {} });
  expect(settings.prices).toEqual({ "gpt-x": { input_usd: 1, output_usd: 2 } });
  expect(sources["prices"]).toBe("config.yaml");
  expect(faultOf("workers: 1\nprices: {gpt-x: {input_usd: cheap}}\n").message).toContain("line 2");
});

test("accounts have names of the user's choice; a fault in one names its line and its setting", () => {
  const account = "{env: {CODEX_HOME: /home/me/two}, reserve_pct: 20}";
  const config = `accounts:\n  work: ${account}\nagents: [{name: a, kind: codex, accounts: [work, home]}]\n`;
  const { settings } = loadSettings({ stateDir: stateWith(config), env: {} });
  expect(settings.accounts).toEqual({
    work: { env: { CODEX_HOME: "/home/me/two" }, reserve_pct: 20 },
  });
  expect(settings.agents[0]?.accounts).toEqual(["work", "home"]);
  const faults = [
    "accounts:\n  work: {reserve: 20}\n",
    "accounts:\n  work: {reserve_pct: 100}\n",
    "accounts:\n  My Work: {}\n",
    "agents:\n  - {name: a, kind: codex, account: work, accounts: [home]}\n",
    "agents:\n  - {name: a, kind: codex, accounts: []}\n",
  ].map((text) => faultOf(text));
  expect(faults.map(({ message }) => message)).toEqual([
    expect.stringContaining('line 2, column 10: unknown setting "reserve" in accounts.work'),
    expect.stringContaining("accounts.work.reserve_pct: expected"),
    expect.stringContaining('"My Work" is not a name that fits'),
    expect.stringContaining("both account and accounts"),
    expect.stringContaining("agents.0.accounts"),
  ]);
  expect(faults[0]?.hint).toContain("reserve_pct");
});

test("the meter of an account is that of its programs, unless an agent says otherwise", () => {
  const config = `
accounts: {work: {meter: true}, home: {meter: false}}
agents:
  - {name: a, kind: claude, account: work}
  - {name: b, kind: codex, accounts: [home, work]}
  - {name: c, kind: exec, program: "true", account: work}
  - {name: d, kind: claude, account: work, meter: false}
  - {name: e, kind: claude, account: home}
  - {name: f, kind: claude}
`;
  const { settings } = loadSettings({ stateDir: stateWith(config), env: {} });
  expect(settings.agents.map(({ name, meter }) => [name, meter])).toEqual([
    ["a", true],
    ["b", true],
    ["c", true],
    ["d", false],
    ["e", undefined],
    ["f", undefined],
  ]);
});
