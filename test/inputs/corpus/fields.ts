/** Tasks that are whole JSON and break a rule of a field, or stand just at its limit. */
import { NUMBER_FIELDS, TEXT_FIELDS } from "../../support/task-fields.ts";
import { contents, GOOD, type InputCase, RUNS, refused, WAITS } from "./input-case.ts";

type Row = readonly [string, string, ReturnType<typeof refused>];

const NO_TEXTS = ["1", "null", "true", '["a"]', '{"a":1}'];
const NO_INTEGERS = [
  "1.5",
  '"1"',
  "null",
  "1e999",
  "true",
  "[1]",
  "12345678901234567890",
  "-1e999",
  "{}",
];
const SECONDS_MAX = 253402300799;

/** A task that runs, with more members. */
const task = (members: string): string => `{"exec":["true"],${members}}`;
const long = (count: number, member: string): string => `[${Array(count).fill(member).join()}]`;

const wrongTexts: Row[] = TEXT_FIELDS.flatMap((field, i) =>
  // Two of five for each, in turn: each field and each wrong type has its turn.
  [0, 1].map((j): Row => {
    const value = NO_TEXTS[(2 * i + j) % NO_TEXTS.length] ?? "1";
    const text = field === "prompt" ? `{"prompt":${value}}` : task(`"${field}":${value}`);
    return [`${field} is ${value}`, text, refused(`${field}: `)];
  }),
);

const wrongNumbers: Row[] = NUMBER_FIELDS.flatMap((field, i) =>
  [0, 1, 2].map((j): Row => {
    const value = NO_INTEGERS[(3 * i + j) % NO_INTEGERS.length] ?? "null";
    return [`${field} is ${value}`, task(`"${field}":${value}`), refused(`${field}: `)];
  }),
);

/** Just outside, and at, the ends of each range. */
function range(field: string, min: number, max: number): Row[] {
  const rows: Row[] = [];
  for (const value of [min, max])
    rows.push([`${field} ${value}`, task(`"${field}":${value}`), RUNS]);
  for (const value of [min - 1, max + 1])
    rows.push([`${field} ${value}`, task(`"${field}":${value}`), refused(`${field}: `)]);
  return rows;
}

export const FIELDS: InputCase[] = [
  ...contents("a text of another type", wrongTexts),
  ...contents("a number of another type", wrongNumbers),
  ...contents("times at their limits", [
    ...["claimed_at", "created_at", "updated_at"].flatMap((field) => range(field, 0, SECONDS_MAX)),
    ["not_before 0", task('"not_before":0'), RUNS],
    ["not_before -1", task('"not_before":-1'), refused("not_before: ")],
    ["not_before in the year 9999", task(`"not_before":${SECONDS_MAX}`), WAITS],
    [
      "not_before in the year 10000",
      task(`"not_before":${SECONDS_MAX + 1}`),
      refused("not_before"),
    ],
    ["not_before in milliseconds", task('"not_before":1795328475000'), refused("not_before: ")],
    ["a date as text", task('"created_at":"2026-01-01T00:00:00Z"'), refused("created_at: ")],
    ["a date that is none", task('"updated_at":"2026-02-30"'), refused("updated_at: ")],
  ]),
  ...contents("counts at their limits", [
    ...range("max_attempts", 1, 1000),
    ...range("priority", -1_000_000_000, 1_000_000_000),
    ...range("timeout_ms", 1000, 2_147_483_647).filter(([title]) => !title.endsWith(" 999")),
    ["timeout_ms 0", task('"timeout_ms":0'), refused("timeout_ms: ")],
    ["attempts -1", task('"attempts":-1'), refused("attempts: ")],
    ["attempts 1001", task('"attempts":1001'), refused("attempts: ")],
    ["attempts 0", task('"attempts":0'), RUNS],
    ["sequence_number 2^53-1", task('"sequence_number":9007199254740991'), RUNS],
    ["sequence_number -(2^53-1)", task('"sequence_number":-9007199254740991'), RUNS],
    [
      "sequence_number 2^53",
      task('"sequence_number":9007199254740992'),
      refused("sequence_number"),
    ],
    ["a number with an exponent", task('"priority":1e2'), RUNS],
    ["a whole number with a point", task('"priority":5.0'), RUNS],
    ["minus nothing", task('"priority":-0'), RUNS],
  ]),
  ...contents("lists at their limits", [
    ["no argument at all", '{"exec":[]}', refused("exec: ")],
    ["4096 arguments", `{"exec":${long(4096, '"true"')}}`, RUNS],
    ["4097 arguments", `{"exec":${long(4097, '"true"')}}`, refused("exec: ")],
    ["1025 capabilities", task(`"capabilities":${long(1025, '"a"')}`), refused("capabilities: ")],
    ["a capability without a name", task('"capabilities":[""]'), refused("capabilities.0: ")],
    [
      "a capability of 257",
      task(`"capabilities":["${"c".repeat(257)}"]`),
      refused("capabilities.0"),
    ],
    [
      "1025 dependencies",
      task(`"metadata":{"dependencies":${long(1025, '"a"')}}`),
      refused("metadata.dependencies: "),
    ],
    ["65 programs that verify", task(`"verify":${long(65, '["true"]')}`), refused("verify: ")],
    ["64 programs that verify", task(`"verify":${long(64, '["true"]')}`), RUNS],
    ["an agent's name of 129", `{"prompt":"x","agent":"${"a".repeat(129)}"}`, refused("agent: ")],
    ["an agent without a name", '{"prompt":"x","agent":""}', refused("agent: ")],
  ]),
  ...contents("target", [
    ["a name with two dots", task('"target":"bad..name"'), refused("target: ")],
    ["an option", task('"target":"--force"'), refused("target: ")],
    ["a folder that is hidden", task('"target":"a/.b"'), refused("target: ")],
    ["a name of git's locks", task('"target":"main.lock"'), refused("target: ")],
    ["a branch in folders", task('"target":"a/b.c/d-1"'), RUNS],
  ]),
  ...contents("exec", [
    ["a string", '{"exec":"true"}', refused("exec: ")],
    ["null", '{"exec":null}', refused("exec: ")],
    ["an object", '{"exec":{"program":"true"}}', refused("exec: ")],
    ["a program without a name", '{"exec":[""]}', refused("exec[0]")],
    ["a number among the arguments", '{"exec":["sleep",1]}', refused("exec.1: ")],
    ["null among the arguments", '{"exec":["true",null]}', refused("exec.1: ")],
    ["a list among the arguments", '{"exec":["true",["a"]]}', refused("exec.1: ")],
    ["a NUL in the program", '{"exec":["tr\\u0000ue"]}', refused("exec.0: ")],
    ["a NUL in an argument", '{"exec":["echo","a\\u0000b"]}', refused("exec.1: ")],
    ["empty arguments", '{"exec":["true","",""]}', RUNS],
    ["line breaks in an argument", '{"exec":["true","a\\nb\\r\\n"]}', RUNS],
    [
      "shell code in an argument",
      '{"exec":["echo","-n","$(touch pwned);`touch pwned`"]}',
      { kind: "runs", output: "$(touch pwned);`touch pwned`" },
    ],
    ["a wrong spelling", '{"Exec":["true"]}', refused("nothing to run")],
  ]),
  ...contents("verify", [
    ["a string", task('"verify":"true"'), refused("verify: ")],
    ["a number", task('"verify":1'), refused("verify: ")],
    ["a program without a name", task('"verify":[""]'), refused("verify[0][0]")],
    ["the second without a name", task('"verify":[["true"],[""]]'), refused("verify[1][0]")],
    ["an empty program", task('"verify":[[]]'), refused("verify: ")],
    ["a mixture", task('"verify":["true",["true"]]'), refused("verify: ")],
    ["a NUL", task('"verify":["true","\\u0000"]'), refused("verify: ")],
    ["nothing", task('"verify":[]'), RUNS],
    ["one program", task('"verify":["true"]'), RUNS],
  ]),
  ...contents("env", [
    ["a list", task('"env":["A=1"]'), refused("env: ")],
    ["a string", task('"env":"A=1"'), refused("env: ")],
    ["a number", task('"env":{"A":1}'), refused("env.A: ")],
    ["null as a value", task('"env":{"A":null}'), refused("env.A: ")],
    ["true as a value", task('"env":{"A":true}'), refused("env.A: ")],
    ["'=' in a name", task('"env":{"A=B":"x"}'), refused("env")],
    ["no name", task('"env":{"":"x"}'), refused("env")],
    ["a NUL in a name", task('"env":{"A\\u0000":"x"}'), refused("env")],
    ["a NUL in a value", task('"env":{"A":"x\\u0000"}'), refused("env.A: ")],
    ["an object as a value", task('"env":{"A":{"b":1}}'), refused("env.A: ")],
    [
      "a secret of another type is not shown",
      task('"env":{"TOKEN":[123456789]}'),
      refused("found a list of "),
    ],
    [
      "an empty value",
      '{"exec":["sh","-c","printf \\"[$A]\\""],"env":{"A":""}}',
      { kind: "runs", output: "[]" },
    ],
    [
      "line breaks",
      '{"exec":["sh","-c","printf %s \\"$A\\""],"env":{"A":"x\\ny"}}',
      { kind: "runs", output: "x\ny" },
    ],
    ["none", task('"env":{}'), RUNS],
  ]),
  ...contents("metadata", [
    ["a list", task('"metadata":[]'), refused("metadata: ")],
    ["null", task('"metadata":null'), refused("metadata: ")],
    ["a string", task('"metadata":"x"'), refused("metadata: ")],
    [
      "a worktree that is a number",
      task('"metadata":{"worktree":1}'),
      refused("metadata.worktree: "),
    ],
    [
      "a worktree with a NUL",
      task('"metadata":{"worktree":"a\\u0000"}'),
      refused("metadata.worktree"),
    ],
    [
      "dependencies as a string",
      task('"metadata":{"dependencies":"a"}'),
      refused("metadata.dependencies: "),
    ],
    [
      "dependencies as an object",
      task('"metadata":{"dependencies":{"a":1}}'),
      refused("metadata.dependencies: "),
    ],
    ["anything else in it", task('"metadata":{"x":[null,{"y":1e400}]}'), RUNS],
  ]),
  ...contents("dependencies", [
    [
      "a path",
      task('"metadata":{"dependencies":["../../etc/passwd"]}'),
      refused('"../../etc/passwd": an id begins with'),
    ],
    ["a NUL", task('"metadata":{"dependencies":["a\\u0000b"]}'), refused("dependencies")],
    [
      "250 bytes",
      task(`"metadata":{"dependencies":["${"d".repeat(250)}"]}`),
      refused("longer than 96"),
    ],
    ["a number", task('"metadata":{"dependencies":[1]}'), refused("dependencies.0: ")],
    ["no name", task('"metadata":{"dependencies":[""]}'), refused("dependencies.0: ")],
    ["a device of Windows", task('"metadata":{"dependencies":["NUL"]}'), refused("Windows device")],
    ["two points", task('"metadata":{"dependencies":["a..b"]}'), refused("'..'")],
    ["none", task('"metadata":{"dependencies":[]}'), RUNS],
    ["one that never comes", task('"metadata":{"dependencies":["never"]}'), WAITS],
    [
      "one that never comes, a thousand times",
      task(`"metadata":{"dependencies":${long(1024, '"never"')}}`),
      WAITS,
    ],
  ]),
  {
    group: "dependencies",
    title: "itself, in capitals",
    name: "self.json",
    content: '{"prompt":"x","metadata":{"dependencies":["SELF"]}}',
    answer: refused("depends on itself"),
  },
  ...contents("the id inside", [
    ["another one", '{"id":"other","exec":["true"]}', refused('the body says id "other"')],
    ["a number", '{"id":1,"exec":["true"]}', refused("id: ")],
    ["null", '{"id":null,"exec":["true"]}', refused("id: ")],
    ["empty", '{"id":"","exec":["true"]}', refused("id: ")],
    ["97 characters", `{"id":"${"i".repeat(97)}","exec":["true"]}`, refused("id: ")],
    ["a path", '{"id":"../x","exec":["true"]}', refused('the body says id "../x"')],
    ["in capitals", '{"id":"THE-ID-INSIDE-7","exec":["true"]}', refused("the body says id")],
    ["the same", '{"id":"the-id-inside-8","exec":["true"]}', RUNS],
    [
      "with a space behind",
      '{"id":"the-id-inside-9 ","exec":["true"]}',
      refused("the body says id"),
    ],
  ]),
  ...contents("nothing to run", [
    ["an empty object", "{}", refused("nothing to run")],
    ["only a priority", '{"priority":1}', refused("nothing to run")],
    ["only unknown fields", '{"command":"true","args":[]}', refused("nothing to run")],
    ["only an env", '{"env":{"A":"b"}}', refused("nothing to run")],
    ["only an id", '{"id":"nothing-to-run-5"}', refused("nothing to run")],
    ["only a verify", '{"verify":["true"]}', refused("nothing to run")],
  ]),
  ...contents("unknown fields", [
    ["some", '{"exec":["true"],"x-note":{"kept":[1,2]},"Exec":1}', RUNS],
    ["with odd names", '{"exec":["true"],"":1," ":2,"a\\nb":3,"\\u202e":4}', RUNS],
    [
      "that look like ours",
      '{"exec":["true"],"max-attempts":0,"timeoutMs":"x","depends_on":[]}',
      RUNS,
    ],
    ["of a result", '{"exec":["true"],"task_id":"x","code":"ErrBug","kind":"exit"}', RUNS],
    ["of another queue", '{"exec":["true"],"jobId":7,"queue":"default","opts":{"delay":5}}', RUNS],
  ]),
  ...contents("text that acts on a terminal", [
    [
      "escape sequences and bidi marks beside a fault",
      '{"title":"\\u001b]0;x\\u0007\\u202e","bad":\u001b[31m}',
      refused("found U+001B"),
    ],
    ["in an unknown agent's name", '{"prompt":"x","agent":"\\u001b[2J\\u202e"}', WAITS],
    [
      "in a wrong value",
      '{"exec":["true"],"priority":"\\u001b[2J\\r\\nok"}',
      refused("priority: "),
    ],
    ["in a wrong id", '{"exec":["true"],"id":"\\u001b[2J\\u2066"}', refused("the body says id")],
    [
      "in a key that is there twice",
      '{"exec":["true"],"\u202e":1,"\u202e":2}',
      refused("used twice", 25),
    ],
    [
      "in a dependency",
      '{"exec":["true"],"metadata":{"dependencies":["\\u009b31m"]}}',
      refused("an id begins with"),
    ],
    ["C1 control characters", '{"exec":["true"],"type":"\u009b31m\u0085"}', RUNS],
  ]),
  ...contents("tasks that wait", [
    ["for an agent that is not configured", '{"prompt":"x","agent":"nobody"}', WAITS],
    ["for an agent at all", '{"prompt":"x"}', WAITS],
    ["for a capability", '{"prompt":"x","capabilities":["cobol"]}', WAITS],
    ["for a capability of 256", `{"prompt":"x","capabilities":["${"c".repeat(256)}"]}`, WAITS],
    ["for an agent with a name of 128", `{"prompt":"x","agent":"${"a".repeat(128)}"}`, WAITS],
    ["for their time", GOOD.replace("}", ',"not_before":4102444800}'), WAITS],
  ]),
];
