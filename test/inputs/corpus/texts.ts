/** Bytes that are not a JSON object, or one that JSON.parse alone would take in silence. */
import { contents, GOOD, type InputCase, RUNS, refused } from "./input-case.ts";

const bytes = (latin1: string): Buffer => Buffer.from(latin1, "latin1");
const utf16 = (text: string): Buffer => Buffer.from(text, "utf16le");

function utf32(text: string): Buffer {
  const buffer = Buffer.alloc(4 * text.length);
  for (let i = 0; i < text.length; i++) buffer.writeUInt32LE(text.charCodeAt(i), 4 * i);
  return buffer;
}

/** @param depth of the whole text, the task included */
function nested(depth: number, field: string): string {
  return `{"exec":["true"],"${field}":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
}

function nestedObjects(depth: number): string {
  return `{"exec":["true"],"x":${'{"a":'.repeat(depth - 1)}1${"}".repeat(depth - 1)}}`;
}

function padded(size: number): string {
  const head = '{"exec":["true"],"payload":"';
  return `${head}${"x".repeat(size - head.length - 2)}"}`;
}

const MIB = 1024 * 1024;
const keys = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":0`).join();
const ECHO = '["sh","-c","cat \\"$MAILCHUTE_TASK_FILE\\""]';
const EXACT = `{"exec":${ECHO},"payload":[1e999,12345678901234567890,1.10,-0,{"__proto__":1}]}`;
const echoes = (
  title: string,
  payload: string,
): [string, string, { kind: "runs"; output: string }] => {
  const text = `{"exec":${ECHO},"payload":${payload}}`;
  return [title, text, { kind: "runs", output: text }];
};

export const TEXTS: InputCase[] = [
  ...contents("empty", [
    ["no byte", "", refused("the file is empty", 0)],
    ["white space", " \n\t ", refused("the file is empty", 4)],
    ["line breaks of Windows", "\r\n\r\n", refused("the file is empty", 4)],
    ["4 KiB of spaces", " ".repeat(4096), refused("the file is empty", 4096)],
    ["only a byte order mark", "\ufeff", refused("the file is empty")],
    ["a mark and a line break", "\ufeff\n", refused("the file is empty", 4)],
  ]),
  ...contents("cut short", [
    ["after the brace", "{", refused("the text ends where", 1)],
    ["in a key", '{"exec":["true"],"ti', refused("the text ends inside a string", 20)],
    ["before the colon", '{"exec"', refused("the text ends where ':'", 7)],
    ["after the colon", '{"exec":', refused("the text ends where a value", 8)],
    ["in a list", '{"exec":["true"', refused("the text ends where", 15)],
    ["after a comma", '{"exec":["true"],', refused("the text ends where", 17)],
    ["before the end", '{"exec":["true"]', refused("the text ends where", 16)],
    ["in a number", '{"exec":["true"],"priority":-', refused("ends inside a number")],
    ["in an exponent", '{"exec":["true"],"priority":1e', refused("ends inside a number")],
    ["in a word", '{"exec":["true"],"x":tru', refused("the text ends where", 24)],
    ["in an escape", '{"prompt":"a\\', refused("the text ends inside a string", 13)],
    ["in a \\u escape", '{"prompt":"a\\u00', refused("a bad \\u escape", 12)],
    ["in a character of two bytes", bytes('{"title":"\xc3'), refused("UTF-8", 10)],
    ["in a character of four bytes", bytes('{"title":"\xf0\x9f\x98'), refused("UTF-8", 10)],
    ["deep inside", '{"metadata":{"a":[{"b":', refused("the text ends where a value", 23)],
  ]),
  ...contents("no object", [
    ["a list", `[${GOOD}]`, refused("expected a JSON object", 0)],
    ["a string", '"task"', refused("expected a JSON object", 0)],
    ["a number", "42", refused("expected a JSON object", 0)],
    ["null", "null", refused("expected a JSON object", 0)],
    ["true", "true", refused("expected a JSON object", 0)],
    ["a word", "task", refused("expected a JSON object", 0)],
    ["a closing brace", "}", refused("expected a JSON object", 0)],
    ["JSON in a string", JSON.stringify(GOOD), refused("expected a JSON object", 0)],
    ["YAML", "exec: [true]\n", refused("expected a JSON object", 0)],
    ["XML", '<?xml version="1.0"?><task/>', refused("expected a JSON object", 0)],
    ["a shell script", "#!/bin/sh\ntrue\n", refused("expected a JSON object", 0)],
    [
      "an archive",
      Buffer.from("H4sIAAAAAAAAA6tWSq1ITVayilYqKSpNVYqtBQCpkR5s", "base64"),
      refused("NUL"),
    ],
    ["a picture", bytes("\x89PNG\r\n\x1a\n"), refused("UTF-8", 0)],
    ["a line of shell output", "total 0\n", refused("expected a JSON object", 0)],
  ]),
  ...contents("more than one", [
    ["two objects", `${GOOD}\n${GOOD}`, refused("more text after the JSON object", 18)],
    ["the lines of a batch", `${GOOD}\n${GOOD}\n${GOOD}\n`, refused("more text after", 18)],
    ["a brace too many", `${GOOD}}`, refused("more text after", 17)],
    ["a comma behind", `${GOOD},`, refused("more text after", 17)],
    ["a word behind", `${GOOD} ok`, refused("more text after", 18)],
    ["a record separator before", `\u001e${GOOD}`, refused("expected a JSON object", 0)],
    ["the mark of a pasted prompt", `> ${GOOD}`, refused("expected a JSON object", 0)],
    ["a fence of Markdown", `\`\`\`json\n${GOOD}\n\`\`\`\n`, refused("expected a JSON object", 0)],
  ]),
  ...contents("other dialects", [
    ["a comment before", `// task\n${GOOD}`, refused("expected a JSON object", 0)],
    ["a comment inside", '{/* x */"exec":["true"]}', refused("expected a key", 1)],
    ["a comment behind", `${GOOD} # done`, refused("more text after", 18)],
    ["a trailing comma", '{"exec":["true"],}', refused("expected a key", 17)],
    ["a trailing comma in a list", '{"exec":["true",]}', refused("expected a value", 16)],
    ["two commas", '{"exec":["true"],,"x":1}', refused("expected a key", 17)],
    ["single quotes", "{'exec':['true']}", refused("expected a key", 1)],
    ["a bare key", '{exec:["true"]}', refused("expected a key", 1)],
    ["'=' for ':'", '{"exec"=["true"]}', refused("expected ':'", 7)],
    ["a missing comma", '{"exec":["true"] "x":1}', refused("expected ',' or '}'", 17)],
    ["NaN", '{"exec":["true"],"priority":NaN}', refused("expected a value", 28)],
    ["Infinity", '{"exec":["true"],"x":-Infinity}', refused("expected a value", 21)],
    ["undefined", '{"exec":["true"],"x":undefined}', refused("expected a value", 21)],
    ["True of Python", '{"exec":["true"],"x":True}', refused("expected a value", 21)],
    ["None of Python", '{"exec":["true"],"x":None}', refused("expected a value", 21)],
    ["a hexadecimal number", '{"exec":["true"],"x":0x1f}', refused("expected ',' or '}'", 22)],
    ["a leading zero", '{"exec":["true"],"x":012}', refused("expected ',' or '}'", 22)],
    ["a leading plus", '{"exec":["true"],"x":+1}', refused("expected a value", 21)],
    ["a leading point", '{"exec":["true"],"x":.5}', refused("expected a value", 21)],
    ["a trailing point", '{"exec":["true"],"x":5.}', refused("expected", 22)],
    ["underscores", '{"exec":["true"],"x":1_000}', refused("expected ',' or '}'", 22)],
    ["typographic quotes", "{“exec”:[“true”]}", refused("expected a key", 1)],
    ["a space that is none of JSON's", '{\u00a0"exec":["true"]}', refused("expected a key", 1)],
    ["a form feed", '{\f"exec":["true"]}', refused("expected a key", 1)],
    ["a literal TAB key", '{"exec":["true"],"x":1\u000b}', refused("expected ',' or '}'", 22)],
  ]),
  ...contents("strings", [
    ["a raw control character", '{"exec":["\u001b[2J"]}', refused("raw U+001B", 10)],
    ["a raw line break", '{"prompt":"a\nb"}', refused("raw U+000A", 12)],
    ["a raw tab", '{"prompt":"a\tb"}', refused("raw U+0009", 12)],
    ["an escape of C", '{"prompt":"\\x41"}', refused("an unknown escape", 11)],
    ["an escaped line break", '{"prompt":"a\\\nb"}', refused("an unknown escape", 12)],
    ["an escaped apostrophe", `{"prompt":"it\\'s"}`, refused("an unknown escape", 13)],
    ["bad hexadecimal digits", '{"prompt":"\\u12G4"}', refused("a bad \\u escape", 11)],
    ["braces of another language", '{"prompt":"\\u{41}"}', refused("a bad \\u escape", 11)],
    ["three digits", '{"prompt":"\\u041"}', refused("a bad \\u escape", 11)],
    ["a backslash of Windows", '{"cwd":"C:\\work","prompt":"x"}', refused("an unknown escape", 10)],
    ["every escape there is", '{"exec":["true"],"x":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041"}', RUNS],
    ["raw line separators", '{"exec":["true"],"x":"\u2028\u2029"}', RUNS],
    ["a raw DEL", '{"exec":["true"],"x":"\u007f"}', RUNS],
    ["an escaped NUL in a text of its own", '{"exec":["true"],"x":"a\\u0000b"}', RUNS],
  ]),
  ...contents("surrogates", [
    [
      "a high one alone",
      '{"exec":["true"],"title":"\\ud83d"}',
      refused("title: it has half of a character", 26),
    ],
    [
      "a low one alone",
      '{"exec":["true"],"title":"\\ude00"}',
      refused("title: it has half of a character", 26),
    ],
    [
      "a pair the wrong way round",
      '{"exec":["true"],"title":"\\ude00\\ud83d"}',
      refused("title: it has half of a character", 26),
    ],
    ["a pair", '{"exec":["true"],"title":"\\ud83d\\ude00"}', RUNS],
    ["as raw bytes", bytes('{"title":"\xed\xa0\x80"}'), refused("UTF-8", 10)],
    ["a pair as raw bytes", bytes('{"x":"\xed\xa0\xbd\xed\xb8\x80"}'), refused("UTF-8", 6)],
  ]),
  ...contents("byte order mark", [
    ["before an object", `\ufeff${GOOD}`, RUNS],
    ["and white space", `\ufeff \n${GOOD}\n`, RUNS],
    ["twice", `\ufeff\ufeff${GOOD}`, refused("expected a JSON object", 3)],
    ["behind", `${GOOD}\ufeff`, refused("more text after", 17)],
    ["inside", `{\ufeff"exec":["true"]}`, refused("expected a key", 1)],
    ["inside a text", '{"exec":["true"],"title":"\ufeff"}', RUNS],
    ["half a mark", bytes(`\xef\xbb${GOOD}`), refused("UTF-8", 0)],
  ]),
  ...contents("UTF-16 and UTF-32", [
    ["little-endian, marked", utf16(`\ufeff${GOOD}`), refused("UTF-16")],
    ["little-endian", utf16(GOOD), refused("UTF-16", 1)],
    ["big-endian, marked", utf16(`\ufeff${GOOD}`).swap16(), refused("UTF-16")],
    ["big-endian", utf16(GOOD).swap16(), refused("UTF-16", 0)],
    ["only its mark", bytes("\xff\xfe"), refused("UTF-16")],
    ["UTF-32", utf32(GOOD), refused("UTF-32")],
    ["UTF-32, marked", utf32(`\ufeff${GOOD}`), refused("UTF-32")],
    ["begun in UTF-8", Buffer.concat([bytes(GOOD), utf16(GOOD)]), refused("NUL bytes", 18)],
  ]),
  ...contents("NUL bytes", [
    ["one at the end", `${GOOD}\0`, refused("NUL bytes", GOOD.length)],
    ["one in front", `\0${GOOD}`, refused("NUL bytes", 0)],
    ["one in a text", '{"prompt":"a\0b"}', refused("NUL bytes", 12)],
    ["a block of them", Buffer.alloc(4096), refused("NUL bytes", 0)],
    [
      "a block behind: the tail of a power cut",
      Buffer.concat([bytes(GOOD), Buffer.alloc(4079)]),
      refused("NUL bytes", 17),
    ],
    ["only one", "\0", refused("NUL bytes", 0)],
  ]),
  ...contents("bad UTF-8", [
    ["Latin-1", bytes('{"title":"\xe9t\xe9"}'), refused("not valid UTF-8", 10)],
    ["Windows-1252", bytes('{"title":"\x93x\x94"}'), refused("not valid UTF-8", 10)],
    ["Shift-JIS", bytes('{"title":"\x93\xfa\x96\x7b"}'), refused("not valid UTF-8", 10)],
    ["an overlong slash", bytes('{"title":"\xc0\xaf"}'), refused("UTF-8", 10)],
    ["an overlong NUL", bytes('{"title":"\xc0\x80"}'), refused("UTF-8", 10)],
    ["overlong in three bytes", bytes('{"title":"\xe0\x80\xaf"}'), refused("UTF-8", 10)],
    ["above U+10FFFF", bytes('{"title":"\xf4\x90\x80\x80"}'), refused("UTF-8", 10)],
    ["five bytes", bytes('{"title":"\xf8\x88\x80\x80\x80"}'), refused("UTF-8", 10)],
    ["a continuation alone", bytes('{"title":"\x80"}'), refused("UTF-8", 10)],
    ["a character cut in its middle", bytes('{"title":"\xe2\x82"}'), refused("UTF-8", 10)],
    ["in a key", bytes('{"prompt":"x","\xff":1}'), refused("UTF-8", 15)],
    ["after the object", bytes(`${GOOD}\xff`), refused("UTF-8", 17)],
    [
      "rubbish",
      Buffer.from(Array.from({ length: 512 }, (_, i) => 128 + ((i * 73) % 128))),
      refused("UTF-8", 0),
    ],
  ]),
  ...contents("duplicate keys", [
    ["at the top", '{"exec":["true"],"exec":["false"]}', refused('"exec" is used twice', 17)],
    ["escaped", '{"exec":["true"],"\\u0065xec":[]}', refused("used twice", 17)],
    ["inside", '{"prompt":"x","metadata":{"a":1,"a":2}}', refused("twice", 32)],
    ["in a payload", '{"payload":{"a":1,"a":1}}', refused("twice", 18)],
    [
      "far apart",
      `{"exec":["true"],"a":${JSON.stringify("x".repeat(5000))},"a":1}`,
      refused("twice", 5024),
    ],
    ["empty ones", '{"exec":["true"],"":1,"":2}', refused("twice", 22)],
    ["that differ in case", '{"exec":["true"],"a":1,"A":2}', RUNS],
    ["that differ in composition", '{"exec":["true"],"\u00e9":1,"e\u0301":2}', RUNS],
    ["in different objects", '{"exec":["true"],"metadata":{"exec":1}}', RUNS],
  ]),
  ...contents("nesting", [
    ["63", nested(63, "extra"), RUNS],
    ["64", nested(64, "extra"), RUNS],
    ["65", nested(65, "extra"), refused("nested deeper than 64")],
    ["64 in the payload", nested(64, "payload"), RUNS],
    ["65 in the payload", nested(65, "payload"), refused("nested deeper than 64")],
    ["64 objects", nestedObjects(64), RUNS],
    ["65 objects", nestedObjects(65), refused("nested deeper than 64")],
    ["200,000 lists and nothing else", "[".repeat(200_000), refused("expected a JSON object", 0)],
    ["200,000 inside", nested(200_000, "payload"), refused("nested deeper than 64")],
    ["200,000 objects, never closed", '{"a":'.repeat(200_000), refused("nested deeper than 64")],
    ["50,000 lists side by side", `{"exec":["true"],"x":[${"[],".repeat(50_000)}[]]}`, RUNS],
  ]),
  ...contents("size", [
    ["a byte below the limit", padded(MIB - 1), RUNS],
    ["the limit", padded(MIB), RUNS],
    ["a byte above", padded(MIB + 1), refused("more than the limit of 1048576")],
    ["white space beyond the limit", `${GOOD}${" ".repeat(MIB)}`, refused("more than the limit")],
    ["8 MiB", padded(8 * MIB), refused("more than the limit of 1048576")],
    ["10,000 keys", `{"exec":["true"],${keys(9_999)}}`, RUNS],
    ["10,001 keys", `{"exec":["true"],${keys(10_000)}}`, refused("more than 10000 members")],
    [
      "a mebibyte of keys",
      `{"exec":["true"],"payload":{${keys(90_000)}}}`,
      refused("more than 10000 members"),
    ],
    ["30,000 objects", `{"exec":["true"],"payload":[${'{"a":1},'.repeat(30_000)}0]}`, RUNS],
    ["a key of 500,000 characters", `{"exec":["true"],"${"k".repeat(500_000)}":0}`, RUNS],
    [
      "such a key twice",
      `{"exec":["true"],"${"k".repeat(500_000)}":0,"${"k".repeat(500_000)}":0}`,
      refused("twice"),
    ],
    ["a number of 500,000 digits", `{"exec":["true"],"payload":${"9".repeat(500_000)}}`, RUNS],
    ["80,000 escapes", `{"exec":["true"],"x":"${"\\u0041".repeat(80_000)}"}`, RUNS],
  ]),
  ...contents("numbers kept", [
    ["20 digits and 1e999 in the payload", EXACT, { kind: "runs", output: EXACT }],
    echoes("a fraction with a zero behind", "1.50"),
    echoes("exponents in every form", "[1E5,1e+5,1e-5,1.0e05]"),
    echoes("too small", "1e-999"),
    echoes("minus nothing", "[-0,-0.0,0e0]"),
    echoes("beyond the safe integers", "[9007199254740993,-9007199254740993]"),
    echoes("17 digits", "0.1000000000000000055511151231257827"),
  ]),
  ...contents("dangerous keys", [
    [
      "__proto__",
      '{"exec":["true"],"__proto__":{"agent":"x"}}',
      refused('"__proto__" is not allowed', 17),
    ],
    ["__proto__, escaped", '{"exec":["true"],"\\u005f_proto__":{}}', refused("not allowed", 17)],
    ["constructor", '{"exec":["true"],"constructor":1}', refused("not allowed", 17)],
    ["prototype", '{"exec":["true"],"prototype":{}}', refused("not allowed", 17)],
    [
      "constructor in metadata",
      '{"prompt":"x","metadata":{"constructor":1}}',
      refused("not allowed", 26),
    ],
    [
      "__proto__ in metadata",
      '{"prompt":"x","metadata":{"__proto__":{"a":1}}}',
      refused("not allowed", 26),
    ],
    ["prototype in env", '{"exec":["true"],"env":{"prototype":"x"}}', refused("not allowed", 24)],
    ["__proto__ in env", '{"exec":["true"],"env":{"__proto__":"x"}}', refused("not allowed", 24)],
    [
      "__proto__ in an unknown field",
      '{"exec":["true"],"x":[{"__proto__":1}]}',
      refused("not allowed", 23),
    ],
    echoes("__proto__ in the payload", '{"__proto__":{"a":1},"constructor":{"prototype":{}}}'),
    ["names of methods", '{"exec":["true"],"toString":1,"hasOwnProperty":2,"valueOf":3}', RUNS],
    ["__proto__ as a value", '{"exec":["true"],"title":"__proto__"}', RUNS],
  ]),
];
