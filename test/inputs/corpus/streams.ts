/** What programs print, and the result that must be found in it. */
export interface StreamCase {
  group: string;
  title: string;
  stdout: string | Buffer;
  /** Content of the result file, if it writes one. */
  file?: string | Buffer;
  answer: /** An envelope that holds this. */
    | { kind: "envelope"; holds: object }
    /** A result that cannot be used, and why. */
    | { kind: "invalid"; reason: string }
    /** Nothing was said. */
    | { kind: "silent" };
}

type Answer = StreamCase["answer"];
type Row = readonly [
  title: string,
  stdout: string | Buffer,
  answer: Answer,
  file?: string | Buffer,
];

const envelope = (holds: object): Answer => ({ kind: "envelope", holds });
const invalid = (reason: string): Answer => ({ kind: "invalid", reason });
const SILENT: Answer = { kind: "silent" };
const OK = envelope({ status: "success", summary: "ok" });
const block = (json: string): string => `<result>${json}</result>`;
const GOOD = block('{"status":"success","summary":"ok"}');
const fields = (members: string): string => block(`{"status":"success",${members}}`);
const MIB = 1024 * 1024;
const brackets = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

function texts(group: string, rows: readonly Row[]): StreamCase[] {
  return rows.map(([title, stdout, answer, file]) => ({
    group,
    title,
    stdout,
    answer,
    ...(file === undefined ? {} : { file }),
  }));
}

export const STREAM_CASES: readonly StreamCase[] = [
  ...texts("found", [
    ["alone", GOOD, OK],
    ["with white space", `<result>\n  {"status": "success",\n "summary": "ok"}\n</result>\n`, OK],
    ["after a lot", `${"line\n".repeat(1000)}${GOOD}\nbye\n`, OK],
    ["within a line", `done: ${GOOD}.`, OK],
    ["after an example", `${block('{"status":"fail","summary":"example"}')}\n${GOOD}`, OK],
    ["before one that is no JSON", `${GOOD}\n${block("{…}")}`, OK],
    ["before one that is a list", `${GOOD}\n${block("[1]")}`, OK],
    ["before one that is cut", `${GOOD}\n<result>{"status":"fail"`, OK],
    ["after one that is cut", `<result>{"status":"fail"\n${GOOD}`, OK],
    [
      "between rubbish",
      Buffer.concat([Buffer.from([0xff, 0x00, 0x1b]), Buffer.from(GOOD), Buffer.from([0xfe])]),
      OK,
    ],
    ["after an end without a beginning", `</result>${GOOD}`, OK],
    ["with an end too many", `${GOOD}</result>`, OK],
    ["with line ends of Windows", GOOD.replace("{", "{\r\n").replace("}", "\r\n}\r\n"), OK],
    ["after 2 MiB", `${"x".repeat(2 * MIB)}${GOOD}`, OK],
    ["in a megabyte of ends", `${GOOD}${"</result>".repeat(50_000)}`, OK],
    ["after a megabyte of beginnings", `${"<result>".repeat(100_000)}${GOOD}`, OK],
  ]),
  ...texts("not found", [
    ["nothing", "", SILENT],
    ["words", "all done\n", SILENT],
    ["behind 30,000 that look like one", `${GOOD}${"}</result>".repeat(30_000)}`, SILENT],
    ["JSON without its mark", '{"status":"success"}', SILENT],
    ["another mark", '<Result>{"status":"success"}</Result>', SILENT],
    ["an escaped one", GOOD.replaceAll("<", "&lt;"), SILENT],
    ["cut before its end", GOOD.slice(0, -3), SILENT],
    ["cut before its beginning", GOOD.slice(3), SILENT],
    ["a number", block("1"), SILENT],
    ["null", block("null"), SILENT],
    ["a string", block('"success"'), SILENT],
    ["empty", block(""), SILENT],
    ["single quotes", block("{'status':'success'}"), SILENT],
    ["a trailing comma", block('{"status":"success",}'), SILENT],
    ["before 2 MiB of other things", `${GOOD}${"x".repeat(2 * MIB)}`, SILENT],
    ["nested 100,000 deep", fields(`"output":${brackets(100_000)}`), SILENT],
    ["nested 513 deep", fields(`"output":${brackets(512)}`), SILENT],
    ["a NUL inside", block('{"status":"success",\0"summary":"ok"}'), SILENT],
  ]),
  ...texts("status", [
    ["missing", block('{"summary":"ok"}'), invalid("status: ")],
    ["misspelt", block('{"status":"sucess"}'), invalid('did you mean "success"')],
    ["a number", block('{"status":0}'), invalid("status: ")],
    ["null", block('{"status":null}'), invalid("status: ")],
    ["a list", block('{"status":["success"]}'), invalid("status: ")],
    ["in capitals", block('{"status":" SUCCESS "}'), envelope({ status: "success" })],
    ["nested deep", block(`{"status":${brackets(400)}}`), invalid("status: ")],
    ["under __proto__", block('{"__proto__":{"status":"success"}}'), invalid("status: ")],
    [
      "twice: the last counts",
      block('{"status":"fail","status":"success"}'),
      envelope({ status: "success" }),
    ],
  ]),
  ...texts("fields", [
    ["a summary that is an object", fields('"summary":{}'), invalid("summary: ")],
    [
      "a summary of 500,000 characters",
      fields(`"summary":"${"x".repeat(500_000)}"`),
      envelope({ status: "success" }),
    ],
    ["confidence beyond", fields('"confidence":1e999'), invalid("confidence: ")],
    ["confidence below", fields('"confidence":-0.1'), invalid("confidence: ")],
    ["confidence as a word", fields('"confidence":"high"'), invalid("confidence: ")],
    ["outputs as a list", fields('"outputs":[1]'), invalid("outputs: ")],
    ["outputs under __proto__", fields('"outputs":{"__proto__":1}'), invalid("outputs: ")],
    ["outputs under a path", fields('"outputs":{"../x":1}'), invalid("outputs: ")],
    [
      "outputs with our keys",
      fields('"outputs":{"out.summary":1}'),
      invalid("written by mailchute itself"),
    ],
    [
      "an output nested deep",
      fields(`"outputs":{"a":${brackets(500)}}`),
      envelope({ status: "success" }),
    ],
    ["next as a list", fields('"next":[]'), invalid("next: ")],
    ["an unknown part of next", fields('"next":{"__proto__":1}'), invalid("next.")],
    [
      "files as numbers",
      fields('"filesChanged":[1,null,{"path":"a"}]'),
      envelope({ filesChanged: ["1", "a"] }),
    ],
    [
      "text that acts on a terminal",
      fields('"confidence":"\\u001b[2J\\u202e"'),
      invalid("found a text of 5 characters"),
    ],
  ]),
  ...texts("nodes it adds", [
    ["a text", fields('"next":{"addNodes":["x"]}'), invalid("next.addNodes[0]: ")],
    ["no id", fields('"next":{"addNodes":[{}]}'), invalid("next.addNodes[0].id: ")],
    ["a path", fields('"next":{"addNodes":[{"id":"../x"}]}'), invalid("next.addNodes[0].id: ")],
    ["one twice", fields('"next":{"addNodes":[{"id":"a"},{"id":"A"}]}'), invalid("used twice")],
    [
      "1001",
      fields(
        `"next":{"addNodes":[${Array.from({ length: 1001 }, (_, i) => `{"id":"n${i}"}`).join()}]}`,
      ),
      invalid("more than 1000"),
    ],
    [
      "waiting for itself",
      fields('"next":{"addNodes":[{"id":"a","after":"a"}]}'),
      invalid("cannot wait for itself"),
    ],
    [
      "a NUL in its program",
      fields('"next":{"addNodes":[{"id":"a","exec":["a\\u0000"]}]}'),
      invalid(".exec: "),
    ],
    [
      "a secret in its env is not shown",
      fields('"next":{"addNodes":[{"id":"a","env":{"T":["s3cret"]}}]}'),
      invalid("expected texts by name"),
    ],
    [
      "a payload nested 63 deep",
      fields(`"next":{"addNodes":[{"id":"a","payload":${brackets(63)}}]}`),
      envelope({ status: "success" }),
    ],
    [
      "a payload nested 64 deep",
      fields(`"next":{"addNodes":[{"id":"a","payload":${brackets(64)}}]}`),
      invalid("payload: is nested deeper"),
    ],
    [
      "a status of no node",
      fields('"next":{"setStatus":[{"status":"done"}]}'),
      invalid("next.setStatus[0].id: "),
    ],
    [
      "a status that is none",
      fields('"next":{"setStatus":[{"id":"a","status":"finished"}]}'),
      invalid("next.setStatus[0].status: "),
    ],
  ]),
  ...texts("result file", [
    ["instead of stdout", "", OK, '{"status":"success","summary":"ok"}'],
    ["before stdout", block('{"status":"fail"}'), OK, '{"status":"success","summary":"ok"}'],
    ["empty", GOOD, OK, ""],
    ["half", GOOD, OK, '{"status":"fail"'],
    ["a list", GOOD, OK, "[]"],
    ["UTF-16", GOOD, OK, Buffer.from('{"status":"fail"}', "utf16le")],
    ["2 MiB", GOOD, OK, `{"status":"fail","x":"${"x".repeat(2 * MIB)}"}`],
    ["nested 100,000 deep", GOOD, OK, `{"status":"fail","x":${brackets(100_000)}}`],
    ["NUL bytes", GOOD, OK, "\0".repeat(100)],
    ["rubbish", "", SILENT, "done"],
  ]),
];
