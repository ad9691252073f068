/** What a task file may say: each field's bad values, named in the message, and what is kept untouched. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { JsonFault, mayStillGrow } from "../../src/codec/json.ts";
import { checkTask, type DecodedTask, decodeTask, TaskSchema } from "../../src/codec/task-codec.ts";
import { CALLBACK_EVENTS } from "../../src/core/callback.ts";
import { ErrInvalidTask } from "../../src/core/errors.ts";
import { NUMBER_FIELDS, TEXT_FIELDS, TIME_FIELDS } from "../support/task-fields.ts";

/** @param text the members of a task that has a body already, as JSON text */
function decodeMembers(text: string, id = "task-1"): DecodedTask {
  return decodeTask(Buffer.from(text === "" ? '{"prompt":"x"}' : `{"prompt":"x",${text}}`), id);
}

function refusalOf(step: () => unknown): ErrInvalidTask {
  try {
    step();
  } catch (error) {
    if (error instanceof ErrInvalidTask) return error;
    throw error;
  }
  throw new Error("accepted");
}

const hasGit = spawnSync("git", ["--version"]).status === 0;

const NOT_INTEGERS = [
  "1.5",
  "1e999",
  "-1e999",
  "12345678901234567890",
  "-12345678901234567890",
  '"1"',
  "null",
  "true",
  "[]",
  "{}",
];

/** Each breaks one rule of `git check-ref-format`, the last one a rule of `git branch`. */
const NO_BRANCHES = [
  ..."bad..name .hidden a/.b a.lock a.lock/b a. /a a/ a//b a@{b a\u007fb a\\b".split(" "),
  ..."a~b a^b a:b a?b a*b a[b".split(" "),
  "a b",
  "-a",
];

/** Each field with values that it must refuse. */
const BAD: [string, string[]][] = [
  ["id", ['""', "1", "null", "[]", JSON.stringify("a".repeat(97))]],
  ...TEXT_FIELDS.map((field): [string, string[]] => [
    field,
    ["1", "null", "true", "[]", "{}", '["a"]'],
  ]),
  ...NUMBER_FIELDS.map((field): [string, string[]] => [field, NOT_INTEGERS]),
  ["keep_background", ["1", "null", '"true"', "[]", "{}"]],
  ...TIME_FIELDS.map((field): [string, string[]] => [
    field,
    ["-1", "253402300800", "1767225600000"],
  ]),
  ["attempts", ["-1", "1001"]],
  ["agents", ["1", "null", '"a"', "[]", "{}", "[1]", '[""]', '["a","a"]']],
  ["model", ["1", "null", '""', "[]", "{}"]],
  ["effort", ["1", "null", '""', "[]", "{}"]],
  ["permissions", ["1", "null", '"full"', "[]", "{}", '{"mode":"all"}', '{"mode":"full","a":1}']],
  [
    "env_from",
    [
      "[]",
      '{"A":1}',
      '{"A":"/etc/x"}',
      '{"A":"file:x"}',
      '{"A":"env:"}',
      '{"1":"env:A"}',
      '{"MAILCHUTE_X":"env:A"}',
    ],
  ],
  [
    "traceparent",
    [
      "1",
      "null",
      '""',
      '"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"',
      '"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"',
      '"00-00000000000000000000000000000000-00f067aa0ba902b7-01"',
      '"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"',
      '"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"',
      '"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x"',
      '" 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"',
      '"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\\n"',
    ],
  ],
  ["weight", ["0", "-1", "1025", "1.5", '"2"', "null"]],
  ["limits", ['"gpu"', "[1]", '["a b"]', '[""]', '["a","a"]', "{}", '["a/b"]']],
  ["max_attempts", ["0", "-1", "1001"]],
  ["priority", ["1000000001", "-1000000001", '"urgent"', "1.5"]],
  ["dependencies", ["1", "[1]", "null", "{}", '{"required_status":"done"}', '[""]', '["-a"]']],
  ["depends_on", ["1", '[{"id":"a","node":"b"}]', '["task-1"]']],
  ["retry_policy", ["1", "[]", '{"max_attempts":0}', '{"maxAttempts":"2"}']],
  ["sequence_number", ["9007199254740993", "-9007199254740993"]],
  ["timeout_ms", ["0", "-1", "2147483648"]],
  ["agent", ['""', JSON.stringify("a".repeat(129))]],
  ["cwd", ['"a\\u0000b"']],
  [
    "exec",
    [
      "[]",
      '"ls -l"',
      "null",
      "{}",
      "[1]",
      "[null]",
      '[["ls"]]',
      '["ls","a\\u0000b"]',
      `[${'"a",'.repeat(4096)}"a"]`,
      '[""]',
      '["","a"]',
    ],
  ],
  ["verify", ['"npm test"', "null", "{}", "[1]", '["a",["b"]]', "[[]]", '[""]', '[["a"],[""]]']],
  [
    "owns",
    ['"src"', "null", "[]", '{"read":"src"}', '{"write":[""]}', '{"write":[1]}', '{"other":["a"]}'],
  ],
  ["setup", ['"npm ci"', "null", "{}", "[1]", "[[]]", '[""]', '[["a"],[""]]']],
  ["cache", ['"node_modules"', "null", "[]", "{}", '{"paths":["a"]}', '{"paths":[],"key":["b"]}']],
  [
    "cache.paths",
    ["/a", "../a", "a//b", "a/", ".", "a/.git/b", 'a","a/b'].map(
      (path) => `@{"paths":["${path}"],"key":["b"]}`,
    ),
  ],
  ["cache.link", ['@{"paths":["a"],"key":["b"],"link":1}']],
  ["worktree", ['"AUTO"', '"/some/where"', "true", "null", "{}"]],
  ["land", ['"MERGE"', '"push"', "true", "null", "{}"]],
  [
    "target",
    ['""', "1", "null", "{}", '"a\\u0000b"', ...NO_BRANCHES.map((name) => JSON.stringify(name))],
  ],
  ["base", ['"main"', "1", "null", "[]"]],
  ["land_command", ['"git push"', "null", "{}", "[1]", '[""]', '["","a"]']],
  ["land_into_checkout", ['"yes"', "1", "null", "[]"]],
  ["review_by", ['""', "1", "null", "[]"]],
  ["protect", ['"test"', "1", "null", '[""]']],
  ["verify_from", ['"work"', "1", "null", "[]"]],
  ["prove", ["false", "1", "null", "[]"]],
  ["expect_files", ['"a"', "null", "{}", "[1]", '["a\\u0000b"]']],
  ["run_limits", ['"2GB"', "null", "[]", "5", '{"memory":1}', '{"memory_bytes":"2GB"}']],
  [
    "run_limits.memory_bytes",
    ["-1", "1.5", '"1"', "null", "2"].map((value) => `@{"memory_bytes":${value}}`),
  ],
  ["run_limits.output_bytes", ["0", "5"].map((value) => `@{"output_bytes":${value}}`)],
  ["budget", ['"1"', "null", "[]", "5"]],
  ["budget.soft_usd", ['{"soft_usd":-1}', '{"soft_usd":"1"}'].map((value) => `@${value}`)],
  ["budget.tokens", ['{"tokens":1.5}', '{"tokens":-1}'].map((value) => `@${value}`)],
  ["capabilities", ['"a"', "[1]", '[""]', "{}", "null", `[${JSON.stringify("a".repeat(257))}]`]],
  [
    "env",
    [
      "[]",
      '"A=1"',
      "null",
      '{"A":1}',
      '{"A":null}',
      '{"A=B":"1"}',
      '{"":"1"}',
      '{"A\\u0000":"1"}',
      '{"A":"\\u0000"}',
    ],
  ],
  ...CALLBACK_EVENTS.map((event): [string, string[]] => [
    event,
    [
      '"mail me"',
      '""',
      "1",
      "null",
      "true",
      "[]",
      "[1]",
      '[""]',
      '["a\\u0000b"]',
      "{}",
      '{"exec":[]}',
      '{"title":"y","id":"x"}',
      '{"title":"y","callback_of":"x"}',
      '{"title":"y","on_settled":["z"]}',
    ],
  ]),
  ["metadata", ["[]", '"x"', "null", "1"]],
  ["metadata.worktree", ['{"worktree":1}', '{"worktree":"a\\u0000b"}'].map((value) => `@${value}`)],
  [
    "metadata.dependencies",
    ['"a"', "[1]", '[""]', "null", "{}", '["task-1"]', '["b","TASK-1"]'].map(
      (value) => `@{"dependencies":${value}}`,
    ),
  ],
];

describe("a field", () => {
  it.each(BAD)(
    "%s with a value it cannot have is refused, and the message names it",
    (field, bad) => {
      for (const value of bad) {
        const isNested = value.startsWith("@");
        const name = field.split(".")[0] ?? field;
        const members = `"${name}":${isNested ? value.slice(1) : value}`;
        const body = name === "prompt" ? `{${members}}` : `{"prompt":"x",${members}}`;
        const error = refusalOf(() =>
          decodeTask(Buffer.from(body), "task-1", "/box/inbox/task-1.json"),
        );
        expect(error.message.slice(0, field.length), members).toBe(field);
        expect(error).toMatchObject({
          code: "ErrInvalidTask",
          id: "task-1",
          path: "/box/inbox/task-1.json",
        });
        expect(error.message.length).toBeLessThan(250);
        expect(mayStillGrow(error)).toBe(false);
      }
    },
  );

  it.skipIf(!hasGit)(
    "target may have each name, and no other, that git allows for a branch",
    () => {
      const pieces = ["a", ".", "/", "@", "{", "-", ".lock"];
      const pairs = pieces.flatMap((one) => pieces.map((other) => one + other));
      const names = [...NO_BRANCHES, ...pieces, ...pairs, "a/b.c/d-e", "HEAD", "lock", "a.lockx/b"];
      for (const name of names) {
        const { status } = spawnSync("git", ["check-ref-format", `refs/heads/${name}`]);
        const isGood = status === 0 && !name.startsWith("-");
        const check = (): unknown => decodeMembers(`"target":${JSON.stringify(name)}`);
        if (isGood) expect(check, name).not.toThrow();
        else expect(check, name).toThrow(/^target: /);
      }
    },
  );

  it("of our schema is in the list of this test, so that none is forgotten", () => {
    const tested = new Set([...BAD.map(([field]) => field), "payload"]);
    expect(Object.keys(TaskSchema.properties).filter((field) => !tested.has(field))).toEqual([]);
  });

  it("tells the shape of what was found instead", () => {
    expect(refusalOf(() => decodeMembers('"priority":"hot!"')).message).toContain(
      "a text of 4 characters",
    );
    expect(refusalOf(() => decodeMembers('"priority":1e999')).message).toContain(
      "a number out of range",
    );
    expect(
      refusalOf(() => decodeMembers(`"priority":"${"h".repeat(9999)}"`)).message.length,
    ).toBeLessThan(150);
  });

  it.each([
    '"max_attempts":1',
    '"max_attempts":1000',
    '"attempts":0',
    '"priority":-1000000000',
    '"priority":1e3',
    '"created_at":0',
    '"not_before":253402300799',
    '"timeout_ms":2147483647',
    '"exec":["sh","-c","", "ü\\n"]',
    '"env":{"A":"", "lower":"=", "ü":"x\\ny"}',
    '"env":{}',
    '"capabilities":[]',
    '"metadata":{}',
    '"metadata":{"worktree":"w","dependencies":["a","node-2"],"other":[1,{"x":null}]}',
    '"agent":"coder"',
    '"title":""',
  ])("at the edge of what it may hold is accepted: %s", (members) => {
    expect(decodeMembers(members).task).toMatchObject(JSON.parse(`{${members}}`) as object);
  });

  it("that we do not know is kept as it is", () => {
    const { task, text } = decodeMembers(
      '"x-mine":{"a":[1,2,12345678901234567890]},"Priority":"high"',
    );
    expect(task["x-mine"]).toEqual({ a: [1, 2, Number("12345678901234567890")] });
    expect(task["Priority"]).toBe("high");
    expect(text).toContain("12345678901234567890");
  });
});

describe("a task", () => {
  it.each(["exec", "agent", "prompt", "payload", "title", "description"])(
    "needs nothing but a body: %s is one",
    (field) => {
      const value = field === "exec" ? ["true"] : "x";
      expect(decodeTask(Buffer.from(JSON.stringify({ [field]: value })), "a").task).toEqual({
        id: "a",
        [field]: value,
      });
    },
  );

  it("without a body is refused, and the message lists what could be one", () => {
    for (const text of [
      "{}",
      '{"id":"a"}',
      '{"priority":1,"metadata":{"prompt":"x"},"Exec":["a"]}',
    ]) {
      expect(refusalOf(() => decodeTask(Buffer.from(text), "a")).message).toContain(
        "exec, agent, prompt, payload",
      );
    }
  });

  it("may have null, false or 0 as its payload", () => {
    for (const payload of ["null", "false", "0", '""']) {
      expect(decodeTask(Buffer.from(`{"payload":${payload}}`), "a").task).toEqual({
        id: "a",
        payload: JSON.parse(payload),
      });
    }
  });

  it("takes its id from the file's name, and one in the body must be the very same", () => {
    expect(decodeMembers("", "0012").task.id).toBe("0012");
    expect(decodeMembers('"id":"0012"', "0012").task.id).toBe("0012");
    for (const id of ["12", "0012 ", "OO12"]) {
      expect(
        refusalOf(() => decodeMembers(`"id":${JSON.stringify(id)}`, "0012")).message,
      ).toContain("file is named");
    }
    expect(refusalOf(() => decodeMembers('"id":"A"', "a")).message).toContain("file is named");
  });

  it("under a name that no task can have is refused", () => {
    for (const id of ["../a", "", "a b", "con", ".a"]) {
      expect(refusalOf(() => decodeMembers("", id)).message).toContain("bad id");
    }
  });

  it("keeps the digits of its payload in the text", () => {
    const { text } = decodeTask(
      Buffer.from('\ufeff {"payload":{"n":12345678901234567890,"f":1.10}} \n'),
      "a",
    );
    expect(text).toBe('{"payload":{"n":12345678901234567890,"f":1.10}}');
  });

  it("may have any keys inside its payload, and nowhere else", () => {
    expect(() =>
      decodeTask(Buffer.from('{"payload":{"__proto__":1,"a":{"constructor":2}}}'), "a"),
    ).not.toThrow();
    for (const members of [
      '"__proto__":{}',
      '"metadata":{"constructor":1}',
      '"env":{"prototype":"x"}',
      '"unknown":{"__proto__":1}',
    ]) {
      expect(refusalOf(() => decodeMembers(members)).message).toContain("not allowed");
    }
  });

  it("that is a value already is checked by the same rules", () => {
    expect(checkTask({ prompt: "x", priority: 1 }, "a")).toEqual({
      id: "a",
      prompt: "x",
      priority: 1,
    });
    expect(refusalOf(() => checkTask({ prompt: "x", priority: "1" }, "a")).message).toMatch(
      /^priority/,
    );
    expect(refusalOf(() => checkTask({ id: "b", prompt: "x" }, "a")).message).toContain(
      "file is named",
    );
    expect(refusalOf(() => checkTask({}, "a")).message).toContain("nothing to run");
  });
});

describe("bytes that are not a JSON object", () => {
  it("are refused with the byte of the fault, and its cause", () => {
    const error = refusalOf(() => decodeTask(Buffer.from('{"é":x}'), "a", "/p"));
    expect(error).toMatchObject({
      offset: 6,
      id: "a",
      path: "/p",
      message: expect.stringContaining("(byte 6)"),
    });
    expect(error.cause).toBeInstanceOf(JsonFault);
    expect(error.hint).toContain("moved into inbox/");
  });

  it("may still grow when they are the beginning of a task, and not when they are something else", () => {
    for (const text of ["", "{", '{"prompt":"hal', '{"priority":-', '{"exec":["a"']) {
      expect(mayStillGrow(refusalOf(() => decodeTask(Buffer.from(text), "a"))), text).toBe(true);
    }
    for (const text of [
      "[]",
      "null",
      "x",
      '{"prompt":1}',
      "{}",
      '{"prompt":"x"}}',
      '{"a":1,"a":2',
    ]) {
      expect(mayStillGrow(refusalOf(() => decodeTask(Buffer.from(text), "a"))), text).toBe(false);
    }
    expect(mayStillGrow(new Error("x"))).toBe(false);
    expect(mayStillGrow(new ErrInvalidTask("x"))).toBe(false);
  });
});
