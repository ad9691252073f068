/**
 * Inputs of every kind that end up in an inbox, each with the answer it must get. Functions, not files: many of these
 * names and kinds survive no version control.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";

/** What must become of a dropped file. */
export type Answer =
  /** Moved to `failed/`, whole, with a record. `reason` is part of its `error`. */
  | { kind: "refused"; reason: string; code?: string; offset?: number }
  | { kind: "runs"; output?: string }
  /** Not ours: it stays where it is and nothing is said. */
  | { kind: "ignored" };

export interface InputCase {
  /** Class and case, as in "content: empty". */
  title: string;
  /** The name in the inbox; bytes when it is not UTF-8. */
  name: string | Buffer;
  /** Content of a regular file … */
  content?: string | Buffer;
  /** … or how to make what is no regular file. `path` is where, `dir` a directory outside of the mailbox. */
  make?: (path: Buffer, dir: string) => void;
  /** False when this machine cannot make it; said on stderr. */
  isPossible?: boolean;
  answer: Answer;
}

const GOOD = '{"exec":["true"]}';
const isRoot = process.getuid?.() === 0;

const refused = (reason: string, offset?: number): Answer => ({
  kind: "refused",
  reason,
  ...(offset === undefined ? {} : { offset }),
});
const RUNS: Answer = { kind: "runs" };
const IGNORED: Answer = { kind: "ignored" };

let count = 0;

/** A case of content under a name that is fine. */
function content(title: string, bytes: string | Buffer, answer: Answer): InputCase {
  return { title: `content: ${title}`, name: `content-${++count}.json`, content: bytes, answer };
}

/** A case of a name; the content is fine. */
function named(title: string, name: string | Buffer, answer: Answer): InputCase {
  return { title: `name: ${title}`, name, content: GOOD, answer };
}

function utf32(text: string): Buffer {
  const bytes = Buffer.alloc(4 * text.length);
  for (let i = 0; i < text.length; i++) bytes.writeUInt32LE(text.charCodeAt(i), 4 * i);
  return bytes;
}

function nested(depth: number, field: string): string {
  return `{"exec":["true"],"${field}":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
}

function padded(size: number): string {
  const head = '{"exec":["true"],"payload":"';
  return `${head}${"x".repeat(size - head.length - 2)}"}`;
}

const ECHO_PAYLOAD = '["sh","-c","cat \\"$MAILCHUTE_TASK_FILE\\""]';
const EXACT = `{"exec":${ECHO_PAYLOAD},"payload":[1e999,12345678901234567890,1.10,-0,{"__proto__":1}]}`;

const CONTENT: InputCase[] = [
  content("empty", "", refused("the file is empty", 0)),
  content("white space only", " \n\t ", refused("the file is empty", 4)),
  content("cut in a key", '{"exec":["true"],"ti', refused("the text ends inside a string", 20)),
  content("cut before the end", '{"exec":["true"]', refused("the text ends where", 16)),
  content("cut in a number", '{"exec":["true"],"priority":-', refused("ends inside a number")),
  content("array", `[${GOOD}]`, refused("expected a JSON object", 0)),
  content("string", '"task"', refused("expected a JSON object", 0)),
  content("number", "42", refused("expected a JSON object", 0)),
  content("null", "null", refused("expected a JSON object", 0)),
  content("two objects", `${GOOD}\n${GOOD}`, refused("more text after the JSON object", 18)),
  content("a comment", `// task\n${GOOD}`, refused("expected a JSON object", 0)),
  content("a trailing comma", '{"exec":["true"],}', refused("expected a key", 17)),
  content("NaN", '{"exec":["true"],"priority":NaN}', refused("expected a value", 28)),
  content("single quotes", "{'exec':['true']}", refused("expected a key", 1)),
  content("a raw control character", '{"exec":["\u001b[2J"]}', refused("raw U+001B", 10)),
  content("UTF-8 byte order mark", `\ufeff${GOOD}`, RUNS),
  content("only a byte order mark", "\ufeff", refused("the file is empty")),
  content("UTF-16 LE with mark", Buffer.from(`\ufeff${GOOD}`, "utf16le"), refused("UTF-16")),
  content("UTF-16 LE without mark", Buffer.from(GOOD, "utf16le"), refused("UTF-16", 1)),
  content("UTF-16 BE", Buffer.from(`\ufeff${GOOD}`, "utf16le").swap16(), refused("UTF-16")),
  content("UTF-32", utf32(GOOD), refused("UTF-32")),
  content("a NUL byte late", `${GOOD}\0`, refused("NUL bytes", GOOD.length)),
  content("only NUL bytes", Buffer.alloc(4096), refused("NUL bytes", 0)),
  content(
    "Latin-1",
    Buffer.from('{"title":"\xe9t\xe9"}', "latin1"),
    refused("not valid UTF-8", 10),
  ),
  content("overlong UTF-8", Buffer.from('{"title":"\xc0\xaf"}', "latin1"), refused("UTF-8", 10)),
  content("a surrogate", Buffer.from('{"title":"\xed\xa0\x80"}', "latin1"), refused("UTF-8", 10)),
  content("UTF-8 cut at its end", Buffer.from('{"title":"\xc3', "latin1"), refused("UTF-8", 10)),
  content(
    "duplicate key",
    '{"exec":["true"],"exec":["false"]}',
    refused('"exec" is there twice', 17),
  ),
  content(
    "duplicate key, escaped",
    '{"exec":["true"],"\\u0065xec":[]}',
    refused("there twice", 17),
  ),
  content("duplicate key inside", '{"prompt":"x","metadata":{"a":1,"a":2}}', refused("twice", 32)),
  content("nesting of 64", nested(64, "extra"), RUNS),
  content("nesting of 65", nested(65, "extra"), refused("nested deeper than 64")),
  content("nesting of 65 in payload", nested(65, "payload"), refused("nested deeper than 64")),
  content("200,000 brackets", "[".repeat(200_000), refused("expected a JSON object", 0)),
  content("200,000 brackets inside", nested(200_000, "payload"), refused("nested deeper than 64")),
  content("1 MiB", padded(1024 * 1024), RUNS),
  content("1 MiB and a byte", padded(1024 * 1024 + 1), refused("more than the limit of 1048576")),
  content("1e999 in our field", '{"prompt":"x","priority":1e999}', refused("priority: ")),
  content(
    "20 digits in our field",
    '{"prompt":"x","created_at":12345678901234567890}',
    refused("created_at: "),
  ),
  content("20 digits and 1e999 in payload", EXACT, { kind: "runs", output: EXACT }),
  content(
    "__proto__",
    '{"exec":["true"],"__proto__":{"agent":"x"}}',
    refused('"__proto__" is not allowed', 17),
  ),
  content(
    "constructor inside metadata",
    '{"prompt":"x","metadata":{"constructor":1}}',
    refused("not allowed", 26),
  ),
  content(
    "prototype inside env",
    '{"exec":["true"],"env":{"prototype":"x"}}',
    refused("not allowed", 24),
  ),
  content("unknown fields", '{"exec":["true"],"x-note":{"kept":[1,2]},"Exec":1}', RUNS),
  content(
    "another id in the body",
    '{"id":"other","exec":["true"]}',
    refused('the body says id "other"'),
  ),
  content(
    "a dependency that is no id",
    '{"prompt":"x","metadata":{"dependencies":["../../etc/passwd"]}}',
    refused('"../../etc/passwd": an id begins with'),
  ),
  content(
    "a dependency with a NUL",
    '{"prompt":"x","metadata":{"dependencies":["a\\u0000b"]}}',
    refused("dependencies"),
  ),
  content(
    "a dependency of 250 bytes",
    `{"prompt":"x","metadata":{"dependencies":["${"d".repeat(250)}"]}}`,
    refused("longer than 96"),
  ),
  content("nothing to run", '{"priority":1}', refused("nothing to run")),
  content("exec is a string", '{"exec":"true"}', refused("exec: ")),
  content("exec is empty", '{"exec":[]}', refused("exec: ")),
  content("exec of an empty name", '{"exec":[""]}', refused("exec[0]")),
  content("exec holds a NUL", '{"exec":["echo","a\\u0000b"]}', refused("exec.1: ")),
  content("a number in env", '{"exec":["true"],"env":{"A":1}}', refused("env.A: ")),
  content("an '=' in a variable's name", '{"exec":["true"],"env":{"A=B":"x"}}', refused("env")),
  content("max_attempts of 0", '{"exec":["true"],"max_attempts":0}', refused("max_attempts: ")),
  content(
    "a control sequence",
    '{"title":"\\u001b]0;x\\u0007\\u202e","bad":\u001b[31m}',
    refused("found U+001B"),
  ),
];

const NAMES: InputCase[] = [
  {
    title: "content: a dependency on itself",
    name: "self.json",
    content: '{"prompt":"x","metadata":{"dependencies":["SELF"]}}',
    answer: refused("depends on itself"),
  },
  named("'@'", "a@b.json", refused("an id begins with")),
  named("like an accepted task", "x@abcdefgh.1~ready.json", refused("an id begins with")),
  named("like a committed task", "x@abcdefgh.1~ok-zz.json", refused("an id begins with")),
  named("'~'", "a~b.json", refused("an id begins with")),
  named("a space", "a b.json", refused("an id begins with")),
  named("a leading dash", "-rf.json", refused("an id begins with")),
  named("a leading underscore", "_x.json", refused("an id begins with")),
  named("a newline", "a\nb.json", refused("an id begins with")),
  named("a control sequence", "a\u001b[2Jb.json", refused("an id begins with")),
  named("bidi marks", "a\u202egpj.json", refused("an id begins with")),
  named("a backslash", "x\\..\\..\\y.json", refused("an id begins with")),
  named("percent escapes", "%2e%2e%2fx.json", refused("an id begins with")),
  named("shell code", "$(touch pwned);x.json", refused("an id begins with")),
  named("letters beyond ASCII", "tâche.json", refused("an id begins with")),
  named("a replacement character", "a\ufffdb.json", refused("not UTF-8")),
  named("'..' inside", "a..b.json", refused("'..'")),
  named("97 characters", `${"a".repeat(97)}.json`, refused("longer than 96")),
  named("255 bytes", `${"b".repeat(250)}.json`, refused("longer than 96")),
  named("96 characters", `${"c".repeat(96)}.json`, RUNS),
  named("a Windows device", "con.json", refused("Windows device")),
  named("a Windows device with an ending", "LPT1.txt.json", refused("Windows device")),
  named("like a result", "x_result.json", RUNS),
  named("dots and dashes", "v1.2-rc_3.json", RUNS),
  named("bytes that are not UTF-8", Buffer.from("bytes-\xff.json", "latin1"), refused("not UTF-8")),
  named(
    "other bytes that look the same",
    Buffer.from("bytes-\xfe.json", "latin1"),
    refused("not UTF-8"),
  ),
  named("such bytes and no ending", Buffer.from("bytes-\xff", "latin1"), refused("not UTF-8")),
  named("another ending", "notes.txt", IGNORED),
  named("an ending in capitals", "task.JSON", IGNORED),
  named("no ending", "4913", IGNORED),
  named("only an ending", ".json", IGNORED),
  named("a dotfile", ".hidden.json", IGNORED),
  named("leading dots", "..\\..\\x.json", IGNORED),
  named("a backup", "task.json~", IGNORED),
  named("a swap file", ".task.json.swp", IGNORED),
  named("an Emacs file", "#task.json#", IGNORED),
  named("a staged file", "task.json.tmp", IGNORED),
];

/** Things that are no regular file, or not ours to trust. */
const KINDS: InputCase[] = [
  {
    title: "kind: a link to a good file",
    name: "link.json",
    make(path, dir) {
      const target = join(dir, "link-target.json");
      fs.writeFileSync(target, GOOD);
      fs.symlinkSync(target, path);
    },
    answer: refused("not a regular file"),
  },
  {
    title: "kind: a link to nothing",
    name: "dangling.json",
    make: (path) => fs.symlinkSync("/nowhere/at/all", path),
    answer: refused("not a regular file"),
  },
  {
    title: "kind: a link to an endless file",
    name: "endless.json",
    make: (path) => fs.symlinkSync("/dev/zero", path),
    answer: refused("not a regular file"),
  },
  {
    title: "kind: a FIFO",
    name: "fifo.json",
    make: (path) => execFileSync("mkfifo", [path.toString()]),
    answer: refused("not a regular file"),
  },
  {
    title: "kind: a socket",
    name: "socket.json",
    make(path, dir) {
      // Ends without closing, which would remove it. Bound elsewhere: a socket's path has a limit of about 100 characters.
      const program = 'require("net").createServer().listen(process.argv[1], () => process.exit())';
      execFileSync(process.execPath, ["-e", program, join(dir, "s")]);
      fs.renameSync(join(dir, "s"), path);
    },
    answer: refused("not a regular file"),
  },
  {
    title: "kind: a device",
    name: "device.json",
    make: (path) => execFileSync("mknod", [path.toString(), "c", "1", "5"]),
    isPossible: isRoot,
    answer: refused("not a regular file"),
  },
  {
    title: "kind: a directory",
    name: "directory.json",
    make(path) {
      fs.mkdirSync(path);
      fs.writeFileSync(join(path.toString(), "inner.json"), GOOD);
    },
    answer: refused("a directory, not a file"),
  },
  {
    title: "kind: a hard link that lasts",
    name: "hard.json",
    make(path, dir) {
      const other = join(dir, "other-name.json");
      fs.writeFileSync(other, GOOD);
      fs.linkSync(other, path);
    },
    answer: refused("a second hard link"),
  },
  {
    title: "kind: a file of 4 TiB that is all hole",
    name: "huge.json",
    make(path) {
      fs.writeFileSync(path, "");
      fs.truncateSync(path, 4 * 1024 ** 4);
    },
    answer: refused("more than the limit"),
  },
  {
    title: "rights: another owner",
    name: "stranger.json",
    make(path) {
      fs.writeFileSync(path, GOOD);
      fs.chownSync(path, 65_534, 65_534);
    },
    isPossible: isRoot,
    answer: refused("belongs to uid 65534"),
  },
  {
    title: "rights: executable, and writable by all",
    name: "open-to-all.json",
    make(path) {
      fs.writeFileSync(path, GOOD);
      fs.chmodSync(path, 0o777);
    },
    answer: RUNS,
  },
];

export const CORPUS: readonly InputCase[] = [...CONTENT, ...NAMES, ...KINDS];
