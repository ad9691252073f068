/** Texts of `config.yaml`, each with what must come of it. */
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";

export interface ConfigCase {
  group: string;
  title: string;
  content: string | Buffer;
  answer: /** ErrInvalidConfig; `reason` is part of its message, `at` the line:column in its path. */
    | { kind: "refused"; reason: string; at?: string }
    /** Taken; what is given holds. */
    | { kind: "taken"; settings: Record<string, unknown> };
}

type Answer = ConfigCase["answer"];
type Row = readonly [content: string | Buffer, answer: Answer, title?: string];

const refused = (reason: string, at?: string): Answer => ({
  kind: "refused",
  reason,
  ...(at === undefined ? {} : { at }),
});
const taken = (settings: Record<string, unknown> = {}): Answer => ({ kind: "taken", settings });

function texts(group: string, rows: readonly Row[]): ConfigCase[] {
  return rows.map(([content, answer, title]) => ({
    group,
    title: title ?? JSON.stringify(String(content)),
    content,
    answer,
  }));
}

/** One agent with these members. */
const agent = (members: string): string =>
  `agents: [{ name: a, kind: exec, program: p, ${members} }]`;
const MIB = 1024 * 1024;

export const CONFIG_CASES: readonly ConfigCase[] = [
  ...texts("bytes", [
    ["", taken(), "empty"],
    ["# nothing\n", taken(), "only a comment"],
    ["\ufeffworkers: 2\n", taken({ workers: 2 }), "a byte order mark"],
    ["workers: 2\r\nprocesses: 2\r\n", taken({ workers: 2, processes: 2 }), "line ends of Windows"],
    [Buffer.from("workers: 2\n", "utf16le"), refused("must hold settings"), "UTF-16"],
    [
      Buffer.from("\ufeffworkers: 2\n", "utf16le"),
      refused("cannot read config.yaml"),
      "UTF-16, marked",
    ],
    [Buffer.from("roots: [\xe9]", "latin1"), refused("cannot read config.yaml"), "Latin-1"],
    [
      Buffer.from("roots: [\xed\xa0\x80]", "latin1"),
      refused("cannot read config.yaml"),
      "a raw surrogate",
    ],
    ["workers: 2\0", refused("workers: expected integer", "1:10"), "a NUL behind"],
    ["\0".repeat(100), refused("must hold settings"), "only NUL bytes"],
    [`#${"x".repeat(MIB)}`, refused("more than the limit of 1048576"), "a byte too many"],
    [`#${"x".repeat(MIB - 1)}`, taken(), "as large as can be"],
    [
      Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
      refused("cannot read config.yaml"),
      "every byte",
    ],
  ]),
  ...texts("YAML", [
    ["workers: [1", refused("")],
    ['workers: "1', refused("")],
    ["retry:\n\tmax_attempts: 2", refused("Tabs are not allowed", "2:1")],
    ["workers: 1\n---\nworkers: 2", refused("a second document begins")],
    ["workers: 1\n  processes: 2", refused("", "1:10")],
    ["workers: !!custom 1", refused("tag")],
    ["%FOO bar\n---\nworkers: 2", refused("Unknown directive")],
    ["workers: *w", refused("Unresolved alias")],
    ["workers: @3", refused("")],
    ["{workers: 2", refused("")],
    ["workers: 2\rprocesses: 3", refused("")],
    [`${"x".repeat(2000)}: 1`, refused(""), "a key of 2,000 characters"],
    ["workers: 1\nworkers: 2", refused("unique", "2:1")],
    ["retry: { max_attempts: 1, max_attempts: 2 }", refused("unique", "1:27")],
    ["agents: [{ name: a, name: b, kind: codex }]", refused("unique", "1:21")],
    ["[1, 2]", refused("the file must hold settings", "1:1")],
    ["workers", refused("the file must hold settings", "1:1")],
    ["? [a]\n: 1", refused("unknown setting", "1:3")],
    ["? \n: 1", refused("unknown setting")],
  ]),
  ...texts("without end", [
    [
      `workers: ${"[".repeat(100_000)}`,
      refused("nested deeper than 128 levels"),
      "100,000 lists, never closed",
    ],
    [
      `agents: ${"[".repeat(5000)}${"]".repeat(5000)}`,
      refused("nested deeper than 128 levels"),
      "5,000 lists",
    ],
    [
      `\n${"{a: ".repeat(20_000)}`,
      refused("nested deeper than 128 levels", "2:518"),
      "20,000 maps",
    ],
    [`workers: *${"k".repeat(900_000)}`, refused("alias"), "an alias of 900 kB"],
    [`workers: !${"k".repeat(900_000)} 1`, refused("Unresolved tag: !kkk"), "a tag of 900 kB"],
    [
      Array.from({ length: 20_000 }, (_, i) => `a${i}: 1`).join("\n"),
      refused('unknown setting "a0"', "1:1"),
      "20,000 keys",
    ],
    [
      Array.from({ length: 20_000 }, () => "a: 1").join("\n"),
      refused("unique", "2:1"),
      "one key 20,000 times",
    ],
    ["a: &a [*a]", refused("")],
    ["agents: &a [*a]", refused("circular", "1:1")],
    ["roots: [&a [*a]]", refused("circular", "1:1")],
    ["retry: &r { backoff_ms: *r }", refused("circular", "1:1")],
    [
      [
        "x0: &x0 [a]",
        ...Array.from(
          { length: 12 },
          (_, i) => `x${i + 1}: &x${i + 1} [${Array(9).fill(`*x${i}`).join()}]`,
        ),
      ].join("\n"),
      refused("alias"),
      "a bomb of aliases",
    ],
    [
      `durability: ${"x".repeat(100_000)}`,
      refused("expected power or process"),
      "a value of 100,000 characters",
    ],
  ]),
  ...texts("names", [
    ["Workers: 2", refused('unknown setting "Workers"', "1:1")],
    ['" workers": 2', refused("unknown setting")],
    ["retry: { max_attemps: 3 }", refused('unknown setting "max_attemps" in retry', "1:10")],
    ["workers: 1\nfoo: 2", refused('unknown setting "foo"', "2:1")],
    ["__proto__: { workers: 3 }", refused("unknown setting")],
    ["constructor: 1", refused("unknown setting")],
    ["retry: { hasOwnProperty: 1 }", refused("unknown setting")],
    [agent("__proto__: { name: b }"), refused("unknown setting")],
    [agent("progam: x"), refused('unknown setting "progam"')],
    ["<<: { workers: 2 }", refused('unknown setting "<<"')],
    ['"\\u001b[2J\\u202e": 1', refused("unknown setting")],
    ["mailbox_dir: /tmp", refused("unknown setting")],
  ]),
  ...texts("types", [
    ["workers: three", refused("workers: expected integer", "1:10")],
    ["workers: '3'", refused("workers: expected integer")],
    ["workers: 1.5", refused("workers: expected integer")],
    ["workers: 1_0", refused("workers: expected integer")],
    ["workers: 2001-01-01", refused("workers: expected integer")],
    ["workers: [3]", refused("workers: expected integer")],
    ["workers: { a: 3 }", refused("workers: expected integer")],
    ["workers: true", refused("workers: expected integer")],
    ["workers: .nan", refused("workers: expected integer")],
    ["grace_ms: .inf", refused("grace_ms: ")],
    ["grace_ms: 1e999", refused("grace_ms: ")],
    ["grace_ms: 5s", refused("grace_ms: ")],
    ["mailbox_enabled: no", refused("mailbox_enabled: expected boolean")],
    ["mailbox_enabled: 1", refused("mailbox_enabled: expected boolean")],
    ["limits: {l: {slots: 1, rat: 1/s}}", refused('unknown setting "rat" in limits.l', "1:24")],
    ["limits: {l: {rate: soon}}", refused("limits.l.rate: ")],
    ["durability: strong", refused("expected power or process")],
    ["durability: true", refused("expected power or process")],
    ["retry: 3", refused("retry must hold settings", "1:8")],
    ["retry: [1]", refused("retry must hold settings")],
    ["retention: never", refused("retention must hold settings")],
    ["roots: /srv", refused("roots: expected array")],
    ["roots: ['']", refused("roots.0: ", "1:9")],
    ["env_allow: [1]", refused("env_allow.0: expected string")],
    ["env_allow: !!set {a, b}", refused("env_allow: expected array")],
    ["uids: [nobody]", refused("uids.0: expected integer")],
    ["uids: [-1]", refused("uids.0: ")],
    ["roots: [!!binary aGVsbG8=]", refused("roots.0: ")],
    ['roots: ["a\\0b"]', refused("roots.0: ")],
    ['env_allow: ["A\\0"]', refused("env_allow.0: ")],
  ]),
  ...texts("limits", [
    ["workers: -1", refused("workers: ")],
    ["workers: 0", taken({ workers: 0 })],
    ["workers: 1024", taken({ workers: 1024 })],
    ["workers: 1025", refused("workers: ")],
    ["processes: 0", refused("processes: ")],
    ["processes: 64", taken({ processes: 64 })],
    ["processes: 65", refused("processes: ")],
    ["timeout_ms: 2147483647", taken({ timeout_ms: 2_147_483_647 })],
    ["timeout_ms: 2147483648", refused("timeout_ms: ")],
    ["sweep_ms: 9", refused("sweep_ms: ")],
    ["output_bytes_max: 1023", refused("output_bytes_max: ")],
    ["batch_concurrency: 4097", refused("batch_concurrency: ")],
    ["retry: { max_attempts: 0 }", refused("retry.max_attempts: ")],
    ["retry: { max_attempts: 1001 }", refused("retry.max_attempts: ")],
    ["retention: { outbox_days: -1 }", refused("retention.outbox_days: ")],
    ["retention: { outbox_days: 36501 }", refused("retention.outbox_days: ")],
    [
      "retention: { outbox_days: 0.5 }",
      taken({ retention: { ...DEFAULT_SETTINGS.retention, outbox_days: 0.5 } }),
    ],
    ["heartbeat_ms: 60000\nlease_ttl_ms: 60000", refused("lease_ttl_ms must be at least twice")],
    ["retry: { backoff_ms: 2000, backoff_max_ms: 1000 }", refused("must not be above")],
  ]),
  ...texts("agents", [
    ["agents: { a: { kind: codex } }", refused("agents: expected array")],
    ["agents: [null]", refused("agents.0: ", "1:10")],
    ["agents: [coder]", refused("agents.0: ")],
    ["agents: [{ name: a }]", refused("agents.0: ")],
    ["agents: [{ kind: codex }]", refused("agents.0: ")],
    ["agents: [{ name: '', kind: codex }]", refused("agents.0.name: ")],
    [`agents: [{ name: ${"a".repeat(129)}, kind: codex }]`, refused("agents.0.name: ")],
    ["agents: [{ name: a, kind: robot }]", refused("expected exec or module or codex or claude")],
    ["agents: [{ name: a, kind: exec }]", refused("needs a program")],
    ["agents: [{ name: a, kind: module }]", refused("needs a module")],
    ['agents: [{ name: a, kind: exec, program: "a\\0" }]', refused("agents.0.program: ")],
    [agent('args: ["a\\0"]'), refused("agents.0.args")],
    [agent("args: ['{meter:http://a}']"), refused("and no meter")],
    [agent("meter: true, args: ['{meter:a}']"), refused("is no address of a service")],
    [agent("meter: { replay: 5 }"), refused("agents.0.meter")],
    [
      "agents: [{ name: a, kind: module, module: a.js, meter: true }]",
      refused("only programs have"),
    ],
    [agent("args: --fast"), refused("agents.0.args: ")],
    [agent("default: yes"), refused("agents.0.default: ")],
    [agent("timeout_ms: 0"), refused("agents.0.timeout_ms: ")],
    [agent("phases: []"), refused("agents.0.phases")],
    [agent("phases: [implement]"), refused("agents.0.phases")],
    [agent("phases: [SPEC, SPEC]"), refused("agents.0.phases")],
    [agent("result: never"), refused("expected required or optional")],
    [
      "agents: [{ name: a, kind: exec, program: p }, { name: a, kind: exec, program: p }]",
      refused("used twice"),
    ],
    [agent("permissions: { mode: all }"), refused("agents.0.permissions")],
    [agent("account: My Account"), refused("agents.0.account")],
    [agent("idle_ms: 1"), refused("agents.0.idle_ms")],
    ['roots: ["/\\ud800"]', refused("roots: it has half of a character")],
    ["agents: []", taken({ agents: [] })],
    [agent("args: ['', ' ']"), taken()],
  ]),
  ...texts("odd but right", [
    ["workers:\nretry:\n  # max_attempts: 5\n", taken({ workers: 3 })],
    ["workers: 0x10", taken({ workers: 16 })],
    ["workers: 1e1", taken({ workers: 10 })],
    ["workers: 2.0", taken({ workers: 2 })],
    ['"workers": 2', taken({ workers: 2 })],
    ["{ workers: 2, }", taken({ workers: 2 })],
    ["--- \nworkers: 2\n...\n", taken({ workers: 2 })],
    ["roots: &r [/srv]\nenv_allow: *r", taken({ roots: ["/srv"], env_allow: ["/srv"] })],
  ]),
];
