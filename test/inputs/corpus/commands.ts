/** Command files, each with the answer it must get from a running pool. */
import fs from "node:fs";
import type { InputCase } from "./input-case.ts";

export interface CommandCase {
  group: string;
  title: string;
  name: string;
  content?: string | Buffer;
  make?: InputCase["make"];
  answer: /** Moved to `failed/`, whole. `reason` is part of the record's `error`. */
    | { kind: "refused"; reason: string }
    /** A command that was understood, and cannot be carried out. */
    | { kind: "failed"; code: string; reason: string }
    /** Carried out. */
    | { kind: "done"; result: object }
    | { kind: "ignored" };
}

type Answer = CommandCase["answer"];
const refused = (reason: string): Answer => ({ kind: "refused", reason });
const failed = (code: string, reason: string): Answer => ({ kind: "failed", code, reason });
const done = (result: object): Answer => ({ kind: "done", result });

const RESUME = '{"command":"resume"}';
const RESUMED = done({ paused: false });
const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const brackets = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

function texts(
  group: string,
  cases: readonly (readonly [title: string, content: string | Buffer, answer: Answer])[],
): CommandCase[] {
  const stem = group.replace(/[^a-z0-9]+/gi, "-");
  return cases.map(([title, content, answer], i) => ({
    group,
    title,
    name: `${stem}-${i + 1}.json`,
    content,
    answer,
  }));
}

function named(group: string, answer: Answer, names: readonly string[]): CommandCase[] {
  return names.map((name) => ({
    group,
    title: JSON.stringify(name),
    name,
    content: RESUME,
    answer,
  }));
}

export const COMMAND_CASES: readonly CommandCase[] = [
  ...texts("text", [
    ["empty", "", refused("the file is empty")],
    ["white space", " \n", refused("the file is empty")],
    ["half", '{"command":"pau', refused("the text ends inside a string")],
    ["a word", "pause", refused("expected a JSON object")],
    ["a string", '"pause"', refused("expected a JSON object")],
    ["a list", `[${RESUME}]`, refused("expected a JSON object")],
    ["null", "null", refused("expected a JSON object")],
    ["two", `${RESUME}\n${RESUME}`, refused("more text after")],
    ["a trailing comma", '{"command":"resume",}', refused("expected a key")],
    ["a comment", `// now\n${RESUME}`, refused("expected a JSON object")],
    ["NUL bytes", `${RESUME}\0\0`, refused("NUL bytes")],
    ["UTF-16", Buffer.from(RESUME, "utf16le"), refused("UTF-16")],
    ["Latin-1", latin1('{"command":"resume","note":"\xe9"}'), refused("UTF-8")],
    ["a byte order mark", `\ufeff${RESUME}`, RESUMED],
    ["a key twice", '{"command":"resume","command":"stop"}', refused("used twice")],
    ["__proto__", '{"command":"resume","__proto__":{"final":true}}', refused("not allowed")],
    [
      "constructor in args",
      '{"command":"resume","args":{"constructor":1}}',
      refused("not allowed"),
    ],
    ["nested 65 deep", `{"command":"resume","x":${brackets(64)}}`, refused("nested deeper")],
    ["nested 100,000 deep", `{"command":${brackets(100_000)}}`, refused("nested deeper")],
    [
      "1 MiB and more",
      `{"command":"resume","x":"${"x".repeat(1024 * 1024)}"}`,
      refused("more than the limit"),
    ],
  ]),
  ...texts("command", [
    ["none", "{}", refused("command: ")],
    ["null", '{"command":null}', refused("command: ")],
    ["a number", '{"command":1}', refused("command: ")],
    ["a list", '{"command":["pause"]}', refused("command: ")],
    ["unknown", '{"command":"jump"}', refused('unknown command "jump"')],
    ["empty", '{"command":""}', refused("unknown command")],
    ["in capitals", '{"command":"PAUSE"}', refused("unknown command")],
    ["with a space", '{"command":"pause "}', refused("unknown command")],
    ["a name of a prototype", '{"command":"constructor"}', refused("unknown command")],
    ["another", '{"command":"toString"}', refused("unknown command")],
    ["a whole book", `{"command":"${"x".repeat(500_000)}"}`, refused("unknown command")],
    ["that acts on a terminal", '{"command":"\\u001b[2J\\u202e"}', refused("unknown command")],
    ["shell code", '{"command":"pause; touch pwned"}', refused("unknown command")],
  ]),
  ...texts("arguments", [
    ["a list", '{"command":"resume","args":[]}', refused("args: ")],
    ["null", '{"command":"resume","args":null}', refused("args: ")],
    ["a string", '{"command":"resume","args":"--now"}', refused("args: ")],
    ["unknown ones", '{"command":"resume","args":{"x":[1]},"y":2}', RESUMED],
  ]),
  ...texts("set-workers", [
    ["without a number", '{"command":"set-workers"}', refused("needs args.workers")],
    ["the number outside", '{"command":"set-workers","workers":2}', refused("needs args.workers")],
    ["a string", '{"command":"set-workers","args":{"workers":"2"}}', refused("args.workers: ")],
    ["a fraction", '{"command":"set-workers","args":{"workers":1.5}}', refused("args.workers: ")],
    ["-1", '{"command":"set-workers","args":{"workers":-1}}', refused("args.workers: ")],
    ["1025", '{"command":"set-workers","args":{"workers":1025}}', refused("args.workers: ")],
    ["1e999", '{"command":"set-workers","args":{"workers":1e999}}', refused("args.workers: ")],
    ["null", '{"command":"set-workers","args":{"workers":null}}', refused("args.workers: ")],
    ["another spelling", '{"command":"set_workers","args":{"workers":4}}', done({ workers: 4 })],
  ]),
  ...texts("set-limit", [
    ["nothing", '{"command":"set-limit"}', refused("needs args.group or args.limit")],
    [
      "both",
      '{"command":"set-limit","args":{"group":"a","limit":"b"}}',
      refused("set-limit needs"),
    ],
    [
      "no change",
      '{"command":"set-limit","args":{"group":"a"}}',
      refused("set-limit needs one of"),
    ],
    [
      "a rate of a group",
      '{"command":"set-limit","args":{"group":"a","rate":"1/s"}}',
      refused("a group has no rate"),
    ],
    [
      "a rate that is none",
      '{"command":"set-limit","args":{"limit":"a","rate":"1 per s"}}',
      refused("args.rate: "),
    ],
    [
      "an unknown group",
      '{"command":"set-limit","args":{"group":"a","slots":1}}',
      failed("ErrInvalidTransition", "no group a is in config.yaml"),
    ],
  ]),
  ...texts("edit", [
    ["nothing", '{"command":"edit"}', refused("needs args.node")],
    ["no text", '{"command":"edit","args":{"node":"a"}}', refused("edit needs args.text")],
    [
      "a digest that is none",
      '{"command":"edit","args":{"node":"a","text":"{}","was":"x"}}',
      refused("args.was: "),
    ],
    [
      "an unknown task",
      `{"command":"edit","args":{"node":"nobody","text":"{\\"prompt\\":\\"p\\"}","was":"${"0".repeat(64)}"}}`,
      failed("ErrTaskNotFound", "nobody"),
    ],
    [
      "a text that is no task",
      `{"command":"edit","args":{"node":"nobody","text":"{}","was":"${"0".repeat(64)}"}}`,
      failed("ErrInvalidTask", "nothing to run"),
    ],
  ]),
  ...texts("interrupt", [
    ["nothing", '{"command":"interrupt"}', refused("needs args.node")],
    [
      "a text that is none",
      '{"command":"interrupt","args":{"node":"a","text":1}}',
      refused("args.text: "),
    ],
    [
      "a long text",
      `{"command":"interrupt","args":{"node":"a","text":"${"x".repeat(32 * 1024 + 1)}"}}`,
      refused("args.text"),
    ],
    [
      "an unknown task",
      '{"command":"interrupt","args":{"node":"nobody","text":"x"}}',
      failed("ErrTaskNotFound", "nobody"),
    ],
    ["a path", '{"command":"interrupt","args":{"node":"../../x"}}', refused("is no id")],
  ]),
  ...texts("cancel and retry", [
    ["cancel nothing", '{"command":"cancel"}', refused("needs args.node")],
    ["retry nothing", '{"command":"retry","args":{}}', refused("needs args.node")],
    ["a number", '{"command":"cancel","args":{"node":1}}', refused("args.node: ")],
    ["no name", '{"command":"cancel","args":{"node":""}}', refused("args.node: ")],
    [
      "257 characters",
      `{"command":"cancel","args":{"node":"${"x".repeat(257)}"}}`,
      refused("args.node"),
    ],
    [
      "final as a word",
      '{"command":"cancel","args":{"node":"a","final":"yes"}}',
      refused("args.final: "),
    ],
    [
      "an unknown task",
      '{"command":"cancel","args":{"node":"nobody"}}',
      failed("ErrTaskNotFound", "nobody"),
    ],
    [
      "an unknown dead letter",
      '{"command":"retry","args":{"id":"nobody"}}',
      failed("ErrTaskNotFound", "nobody"),
    ],
    ["a path", '{"command":"cancel","args":{"node":"../../etc/passwd"}}', refused("is no id")],
    [
      "a path, finally",
      '{"command":"cancel","args":{"node":"../inbox/x","final":true}}',
      refused("is no id"),
    ],
    ["a path to retry", '{"command":"retry","args":{"node":"../../x"}}', refused("is no id")],
    ["a NUL", '{"command":"retry","args":{"node":"a\\u0000b"}}', refused("is no id")],
  ]),
  ...texts("times", [
    ["past", '{"command":"pause","expires_at":1}', failed("ErrInvalidCommand", "expired")],
    [
      "past, ISO",
      '{"command":"pause","expires_at":"2020-01-01T00:00:00Z"}',
      failed("ErrInvalidCommand", "expired"),
    ],
    [
      "no time",
      '{"command":"pause","expires_at":"tomorrow, maybe"}',
      refused("expected a time, found a text of "),
    ],
    [
      "a date that is none",
      '{"command":"pause","expires_at":"2026-13-45T00:00:00Z"}',
      refused("expected a time, found a text of "),
    ],
    ["null", '{"command":"pause","expires_at":null}', refused("expires_at: ")],
    ["negative", '{"command":"pause","expires_at":-1}', refused("expires_at: ")],
    ["milliseconds", '{"command":"pause","expires_at":1795328475000}', refused("expires_at: ")],
    [
      "too long a text",
      `{"command":"pause","expires_at":"${"2".repeat(41)}"}`,
      refused("expires_at: "),
    ],
    ["the year 9999", '{"command":"resume","expires_at":253402300799}', RESUMED],
    [
      "created in milliseconds",
      '{"command":"pause","created_at":1795328475000}',
      refused("created_at: "),
    ],
  ]),
  ...texts("ids", [
    ["another one inside", '{"command":"pause","id":"other"}', refused('the body says id "other"')],
    ["a number inside", '{"command":"pause","id":1}', refused("id: ")],
    ["empty inside", '{"command":"pause","id":""}', refused("id: ")],
    [
      "a book inside",
      `{"command":"pause","id":"${"x".repeat(100_000)}"}`,
      refused("the body says id"),
    ],
    ["the same inside", '{"command":"resume","id":"ids-5"}', RESUMED],
  ]),
  ...named("names", refused("an id begins with"), [
    "a b.json",
    "-x.json",
    "a@b.json",
    "\u202ea.json",
    "\u001b[2J.json",
  ]),
  ...named("names", refused("Windows device"), ["nul.json"]),
  ...named("names", refused("longer than 96"), [`${"a".repeat(97)}.json`]),
  // More than are looked at in one go: they would keep every other command waiting.
  ...named(
    "batches",
    refused("no batches of commands"),
    Array.from({ length: 70 }, (_, i) => `batch-${i}.ndjson`),
  ),
  ...named("not ours", { kind: "ignored" }, [
    "pause.txt",
    ".pause.json",
    "pause.json~",
    "pause.json.tmp",
  ]),
  ...(
    [
      ["a link", (path) => fs.symlinkSync("/dev/zero", path), "not a regular file"],
      ["a directory", (path) => fs.mkdirSync(path), "a directory"],
      [
        "a hole",
        (path) => {
          fs.writeFileSync(path, "");
          fs.truncateSync(path, 1024 ** 4);
        },
        "more than the limit",
      ],
      [
        "a hard link",
        (path, dir) => {
          fs.writeFileSync(path, RESUME);
          fs.linkSync(path, `${dir}/second`);
        },
        "a second hard link",
      ],
    ] as [string, NonNullable<InputCase["make"]>, string][]
  ).map(
    ([title, make, reason], i): CommandCase => ({
      group: "kinds",
      title,
      name: `kind-${i + 1}.json`,
      make,
      answer: refused(reason),
    }),
  ),
];
