/** Batches that are no batch, and lines that are no task: each line has its own answer, the others run. */
import { batch, contents, GOOD, type InputCase, refused } from "./input-case.ts";

const bytes = (latin1: string): Buffer => Buffer.from(latin1, "latin1");
const MIB = 1024 * 1024;
const NOT_JSON = "not JSON";

/** Good lines around bad ones. */
function around(...lines: (string | Buffer)[]): Buffer {
  const all = [GOOD, ...lines, GOOD].flatMap((line) => [Buffer.from(line as string), bytes("\n")]);
  return Buffer.concat(all);
}

const deep = (depth: number): string =>
  `{"exec":["true"],"payload":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

export const BATCHES: InputCase[] = [
  ...contents(
    "batches without a line",
    [
      ["empty", "", refused("the batch holds no line")],
      ["blank", " \n\n\t\n", refused("the batch holds no line")],
      ["only NUL bytes", Buffer.alloc(512), refused("NUL bytes")],
      ["UTF-16", Buffer.from(`\ufeff${GOOD}\n`, "utf16le"), refused("UTF-16")],
      ["a NUL at its end", `${GOOD}\n\0`, refused("NUL bytes")],
      [
        "a task and the tail of a power cut",
        Buffer.concat([bytes(`${GOOD}\n`), Buffer.alloc(4078)]),
        refused("NUL bytes"),
      ],
    ],
    ".ndjson",
  ),
  ...contents(
    "lines that are no JSON",
    [
      [
        "rubbish",
        around("rubbish", "{", "}", '{"exec":["true"]'),
        batch(2, { 2: NOT_JSON, 3: NOT_JSON, 4: NOT_JSON, 5: NOT_JSON }),
      ],
      ["two in one", around(`${GOOD}${GOOD}`, `${GOOD},`), batch(2, { 2: NOT_JSON, 3: NOT_JSON })],
      [
        "other dialects",
        around("{'exec':['true']}", '{"exec":["true"],}', "// x", '{"priority":NaN}'),
        batch(2, { 2: NOT_JSON, 3: NOT_JSON, 4: NOT_JSON, 5: NOT_JSON }),
      ],
      [
        "a list around all",
        `[\n${GOOD},\n${GOOD}\n]\n`,
        batch(1, { 1: NOT_JSON, 2: NOT_JSON, 4: NOT_JSON }),
      ],
      [
        "one object over many lines",
        JSON.stringify(JSON.parse(GOOD), undefined, 1),
        batch(0, { 1: NOT_JSON, 2: NOT_JSON, 3: "a JSON object", 4: NOT_JSON, 5: NOT_JSON }),
      ],
      [
        "values that are no object",
        around("1", "null", "[]", '"x"', "true"),
        batch(2, {
          2: "a JSON object",
          3: "a JSON object",
          4: "a JSON object",
          5: "a JSON object",
          6: "a JSON object",
        }),
      ],
    ],
    ".ndjson",
  ),
  ...contents(
    "bytes of lines",
    [
      ["a mark before the first", `\ufeff${GOOD}\n${GOOD}\n`, batch(2)],
      ["a mark before the second", `${GOOD}\n\ufeff${GOOD}\n`, batch(1, { 2: NOT_JSON })],
      ["line ends of Windows", `${GOOD}\r\n${GOOD}\r\n`, batch(2)],
      ["line ends of an old Mac", `${GOOD}\r${GOOD}\r`, batch(0, { 1: NOT_JSON })],
      ["no line end at the end", `${GOOD}\n${GOOD}`, batch(2)],
      ["blank lines", `\n${GOOD}\n\n \t\n${GOOD}\n\n`, batch(2)],
      ["a line separator of Unicode", `${GOOD}\u2028${GOOD}\n`, batch(0, { 1: NOT_JSON })],
      [
        "Latin-1",
        around(bytes('{"exec":["true"],"title":"\xe9"}')),
        batch(2, { 2: "not valid UTF-8" }),
      ],
      [
        "a raw surrogate",
        around(bytes('{"exec":["true"],"title":"\xed\xa0\x80"}')),
        batch(2, { 2: "not valid UTF-8" }),
      ],
      [
        "an escaped surrogate",
        around('{"exec":["true"],"title":"\\ud800"}'),
        batch(2, { 2: "title: it has half of a character" }),
      ],
      ["a raw control character", around('{"exec":["\u001b[2J"]}'), batch(2, { 2: NOT_JSON })],
      ["1 MiB", around(`{"exec":["true"],"title":"${"x".repeat(MIB - 28)}"}`), batch(3)],
      [
        "1 MiB and a byte",
        around(`{"exec":["true"],"title":"${"x".repeat(MIB - 27)}"}`),
        batch(2, { 2: "longer than 1048576" }),
      ],
      ["3 MiB", around("x".repeat(3 * MIB)), batch(2, { 2: "longer than 1048576" })],
      [
        "3 MiB and no end",
        `${GOOD}\n${"x".repeat(3 * MIB)}`,
        batch(1, { 2: "longer than 1048576" }),
      ],
    ],
    ".ndjson",
  ),
  ...contents(
    "fields of lines",
    [
      [
        "nothing to run",
        around("{}", '{"priority":1}'),
        batch(2, { 2: "nothing to run", 3: "nothing to run" }),
      ],
      [
        "wrong types",
        around('{"exec":"true"}', '{"exec":["true"],"env":{"A":1}}', '{"prompt":1}'),
        batch(2, { 2: "exec: ", 3: "env.A: ", 4: "prompt: " }),
      ],
      [
        "numbers out of range",
        around('{"exec":["true"],"priority":1e999}', '{"exec":["true"],"timeout_ms":0}'),
        batch(2, { 2: "priority: ", 3: "timeout_ms: " }),
      ],
      [
        "dependencies",
        around('{"exec":["true"],"metadata":{"dependencies":["a"]}}'),
        batch(2, { 2: "no dependencies" }),
      ],
      ["no dependencies", around('{"exec":["true"],"metadata":{"dependencies":[]}}'), batch(3)],
      ["not_before", around('{"exec":["true"],"not_before":0}'), batch(2, { 2: "no not_before" })],
      [
        "a bad id",
        around(
          '{"id":"../x","exec":["true"]}',
          '{"id":"","exec":["true"]}',
          '{"id":7,"exec":["true"]}',
        ),
        batch(2, { 2: "bad id", 3: "id: ", 4: "id: " }),
      ],
      [
        "an id of another line",
        around('{"id":"same","exec":["true"]}', '{"id":"same","exec":["true"]}'),
        batch(4),
      ],
      [
        "the id of a batch's line",
        around('{"id":"x#1","exec":["true"]}'),
        batch(2, { 2: "bad id" }),
      ],
      ["a NUL in an argument", around('{"exec":["echo","\\u0000"]}'), batch(2, { 2: "exec.1: " })],
      [
        "no program",
        around('{"exec":[]}', '{"exec":[""]}'),
        batch(2, { 2: "exec: ", 3: "exec[0]" }),
      ],
    ],
    ".ndjson",
  ),
  ...contents(
    "what JSON.parse forgives in a line",
    [
      [
        "a key twice",
        around('{"id":"x","prompt":"a","id":"y"}', '{"payload":{"a" :1, "a" :2}}'),
        batch(2, { 2: 'the key "id" is used twice', 3: 'the key "a" is used twice' }),
      ],
      [
        "a key twice, one of them escaped",
        around('{"prompt":"a","\\u0070rompt":"b:"}'),
        batch(2, { 2: 'the key "prompt" is used twice' }),
      ],
      [
        "a dangerous key",
        around('{"prompt":"a","metadata":{"__proto__":{"x":1}}}'),
        batch(2, { 2: 'the key "__proto__" is not allowed' }),
      ],
      [
        "colons in strings, dangerous keys inside payload",
        around(
          '{"exec":["true"],"title":"a: b \\": c : d","payload":{"__proto__":1,"u":"https://x"}}',
        ),
        batch(3),
      ],
    ],
    ".ndjson",
  ),
  ...contents(
    "nesting of lines",
    [
      ["64", around(deep(64)), batch(3)],
      ["65", around(deep(65)), batch(2, { 2: "nested deeper than 64" })],
      ["100,000", around(deep(100_000)), batch(2, { 2: "nested deeper than 64" })],
      [
        "100,000 in a field of ours",
        around(`{"exec":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
        batch(2, { 2: "nested deeper than 64" }),
      ],
      [
        "100,000 and no end",
        around("[".repeat(100_000)),
        batch(2, { 2: "expected a JSON object" }),
      ],
    ],
    ".ndjson",
  ),
];
