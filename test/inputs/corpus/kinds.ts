/** Things that are no regular file, or not ours to trust, and files whose facts are odd. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import {
  type Answer,
  fails,
  GOOD,
  IGNORED,
  type InputCase,
  isRoot,
  RUNS,
  refused,
} from "./input-case.ts";

type Make = NonNullable<InputCase["make"]>;

const STRANGER = 65_534;
const NO_FILE = refused("not a regular file");

/** A good file, and then something is done to it. */
function good(then: (path: Buffer, dir: string) => void): Make {
  return (path, dir) => {
    fs.writeFileSync(path, GOOD);
    then(path, dir);
  };
}

function kinds(
  group: string,
  cases: readonly (readonly [
    title: string,
    make: Make,
    answer: Answer,
    options?: Partial<InputCase>,
  ])[],
): InputCase[] {
  const stem = group.replace(/[^a-z0-9]+/gi, "-");
  return cases.map(([title, make, answer, options], i) => ({
    group,
    title,
    name: `${stem}-${i + 1}.json`,
    make,
    answer,
    ...options,
  }));
}

const node =
  (...args: string[]): Make =>
  (path) => {
    execFileSync("mknod", [path.toString(), ...args]);
  };

const program = (mode: number, text: string): Make => {
  return (path, dir) => {
    const file = join(dir, `program-${path.toString().replace(/\W+/g, "-")}`);
    fs.writeFileSync(file, text, { mode });
    fs.writeFileSync(path, JSON.stringify({ exec: [file], max_attempts: 1 }));
  };
};

const task =
  (members: object): Make =>
  (path) =>
    fs.writeFileSync(path, JSON.stringify({ exec: ["true"], max_attempts: 1, ...members }));

export const KINDS: InputCase[] = [
  ...kinds("links", [
    [
      "to a good file",
      (path, dir) => {
        const target = join(dir, "link-target.json");
        fs.writeFileSync(target, GOOD);
        fs.symlinkSync(target, path);
      },
      NO_FILE,
    ],
    ["to nothing", (path) => fs.symlinkSync("/nowhere/at/all", path), NO_FILE],
    ["to an endless file", (path) => fs.symlinkSync("/dev/zero", path), NO_FILE],
    ["to a directory", (path) => fs.symlinkSync("/", path), NO_FILE],
    ["to itself", (path) => fs.symlinkSync("links-5.json", path), NO_FILE],
    ["to a file of secrets", (path) => fs.symlinkSync("/etc/passwd", path), NO_FILE],
    ["to the memory of whoever reads", (path) => fs.symlinkSync("/proc/self/mem", path), NO_FILE],
    ["to its standard input", (path) => fs.symlinkSync("/dev/stdin", path), NO_FILE],
    ["to the tray beside", (path) => fs.symlinkSync("../outbox", path), NO_FILE],
    ["of a long target", (path) => fs.symlinkSync("x".repeat(4000), path), NO_FILE],
    [
      "named as a batch",
      (path) => fs.symlinkSync("/dev/zero", path),
      NO_FILE,
      { name: "link.ndjson" },
    ],
    [
      "with another ending",
      (path) => fs.symlinkSync("/dev/zero", path),
      IGNORED,
      { name: "link.txt" },
    ],
  ]),
  ...kinds("pipes and sockets", [
    ["a pipe", (path) => execFileSync("mkfifo", [path.toString()]), NO_FILE],
    [
      "a pipe named as a batch",
      (path) => execFileSync("mkfifo", [path.toString()]),
      NO_FILE,
      { name: "pipe.ndjson" },
    ],
    [
      "a pipe that nobody may read",
      (path) => execFileSync("mkfifo", ["-m", "000", path.toString()]),
      NO_FILE,
    ],
    [
      "a socket",
      (path, dir) => {
        // Ends without closing, which would remove it. Bound elsewhere: a socket's path has a limit of about 100 characters.
        const text = 'require("net").createServer().listen(process.argv[1], () => process.exit())';
        execFileSync(process.execPath, ["-e", text, join(dir, "s")]);
        fs.renameSync(join(dir, "s"), path);
      },
      NO_FILE,
    ],
  ]),
  ...kinds("devices", [
    ["that gives zeros", node("c", "1", "5"), NO_FILE, { isPossible: isRoot }],
    ["that gives nothing", node("c", "1", "3"), NO_FILE, { isPossible: isRoot }],
    ["of blocks", node("b", "7", "200"), NO_FILE, { isPossible: isRoot }],
    ["that is not there", node("c", "240", "77"), NO_FILE, { isPossible: isRoot }],
  ]),
  ...kinds("directories", [
    [
      "with a file",
      (path) => {
        fs.mkdirSync(path);
        fs.writeFileSync(join(path.toString(), "inner.json"), GOOD);
      },
      refused("a directory, not a file"),
    ],
    ["empty", (path) => fs.mkdirSync(path), refused("a directory, not a file")],
    [
      "closed",
      (path) => fs.mkdirSync(path, { mode: 0 }),
      refused("a directory, not a file"),
      { isPossible: isRoot },
    ],
    [
      "named as a batch",
      (path) => fs.mkdirSync(path),
      refused("a directory, not a file"),
      { name: "directory.ndjson" },
    ],
    ["with another ending", (path) => fs.mkdirSync(path), IGNORED, { name: "directory" }],
    [
      "with a bad name",
      (path) => fs.mkdirSync(path),
      refused("an id begins with"),
      { name: "a directory.json" },
    ],
  ]),
  ...kinds("hard links", [
    [
      "that last",
      good((path, dir) => fs.linkSync(path, join(dir, "other-name.json"))),
      refused("a second hard link"),
    ],
    [
      "three of them",
      good((path, dir) => {
        for (const other of ["third.json", "fourth.json"]) fs.linkSync(path, join(dir, other));
      }),
      refused("a second hard link"),
    ],
    [
      "of a bad file",
      (path, dir) => {
        fs.writeFileSync(path, "{");
        fs.linkSync(path, join(dir, "bad-other-name.json"));
      },
      refused("a second hard link"),
    ],
    [
      "of a batch",
      good((path, dir) => fs.linkSync(path, join(dir, "other.ndjson"))),
      refused("a second hard link"),
      { name: "hard.ndjson" },
    ],
  ]),
  ...kinds("holes", [
    [
      "4 TiB",
      (path) => {
        fs.writeFileSync(path, "");
        fs.truncateSync(path, 4 * 1024 ** 4);
      },
      refused("more than the limit"),
    ],
    [
      "1 MiB",
      (path) => {
        fs.writeFileSync(path, "");
        fs.truncateSync(path, 1024 ** 2);
      },
      refused("NUL bytes", 0),
    ],
    [
      "behind a task",
      good((path) => fs.truncateSync(path, 64 * 1024)),
      refused("NUL bytes", GOOD.length),
    ],
    [
      "4 TiB of a batch",
      (path) => {
        fs.writeFileSync(path, "");
        fs.truncateSync(path, 4 * 1024 ** 4);
      },
      refused("more than the limit"),
      { name: "hole.ndjson" },
    ],
  ]),
  ...kinds("owners", [
    [
      "another one",
      good((path) => fs.chownSync(path, STRANGER, STRANGER)),
      refused(`belongs to uid ${STRANGER}`),
      { isPossible: isRoot },
    ],
    [
      "one that does not exist",
      good((path) => fs.chownSync(path, 4_000_000, 0)),
      refused("belongs to uid 4000000"),
      { isPossible: isRoot },
    ],
    [
      "another group",
      good((path) => fs.chownSync(path, 0, STRANGER)),
      RUNS,
      { isPossible: isRoot },
    ],
    [
      "a stranger's batch",
      good((path) => fs.chownSync(path, STRANGER, STRANGER)),
      refused(`belongs to uid ${STRANGER}`),
      { isPossible: isRoot, name: "stranger.ndjson" },
    ],
  ]),
  ...kinds("modes", [
    ["executable, and writable by all", good((path) => fs.chmodSync(path, 0o777)), RUNS],
    ["set-user-id", good((path) => fs.chmodSync(path, 0o4755)), RUNS],
    ["read only", good((path) => fs.chmodSync(path, 0o400)), RUNS],
    [
      "for nobody, which is nothing to root",
      good((path) => fs.chmodSync(path, 0)),
      RUNS,
      { isPossible: isRoot },
    ],
  ]),
  ...kinds("file times", [
    ["1970", good((path) => fs.utimesSync(path, 0, 0)), RUNS],
    ["before 1970", good((path) => fs.utimesSync(path, -1000, -1000)), RUNS],
    ["the year 2100", good((path) => fs.utimesSync(path, 4_102_444_800, 4_102_444_800)), RUNS],
    ["the year 2400", good((path) => fs.utimesSync(path, 13_569_465_600, 13_569_465_600)), RUNS],
    [
      "a batch of the year 2100",
      good((path) => fs.utimesSync(path, 4_102_444_800, 4_102_444_800)),
      { kind: "batch", completed: 1, bad: 0, faults: {} },
      { name: "future.ndjson" },
    ],
    [
      "a bad file of the year 2100",
      (path) => {
        fs.writeFileSync(path, "{");
        fs.utimesSync(path, 4_102_444_800, 4_102_444_800);
      },
      refused("the text ends where"),
    ],
  ]),
  ...kinds("programs that cannot start", [
    [
      "none of that name",
      task({ exec: ["no-such-program-anywhere"] }),
      fails("spawn", "no-such-program-anywhere"),
    ],
    ["a path to nothing", task({ exec: ["/nowhere/at/all"] }), fails("spawn", "/nowhere/at/all")],
    ["a directory", task({ exec: ["/"] }), fails("spawn", "EACCES")],
    ["not executable", program(0o600, "#!/bin/sh\n"), fails("spawn", "EACCES")],
    [
      "an interpreter that is not there",
      program(0o700, "#!/nowhere/sh\n"),
      fails("spawn", "ENOENT"),
    ],
    [
      "a name of 5,000 characters",
      task({ exec: ["x".repeat(5000)] }),
      fails("spawn", "ENAMETOOLONG"),
    ],
    ["a name with a line break", task({ exec: ["a\nb"] }), fails("spawn", "ENOENT")],
    [
      "an argument of 200,000 bytes",
      task({ exec: ["true", "x".repeat(200_000)] }),
      fails("spawn", "E2BIG"),
    ],
  ]),
  ...kinds("places to run in", [
    ["that are not there", task({ cwd: "/nowhere/at/all" }), fails("spawn", "/nowhere")],
    ["that are a file", task({ cwd: "/etc/passwd" }), fails("spawn", "ENOTDIR")],
    ["of no name", task({ cwd: "" }), RUNS],
    [
      "a worktree that is not there",
      task({ metadata: { worktree: "/nowhere/at/all" } }),
      fails("spawn", "/nowhere"),
    ],
    ["of 5,000 characters", task({ cwd: `/${"x".repeat(5000)}` }), fails("spawn", "ENAMETOOLONG")],
  ]),
  ...kinds("runs that go wrong", [
    ["exit 1", task({ exec: ["false"] }), fails("exit", "1")],
    ["exit 65", task({ exec: ["sh", "-c", "exit 65"], max_attempts: 3 }), fails("exit", "65")],
    ["a signal", task({ exec: ["sh", "-c", "kill -9 $$"] }), fails("signal", "SIGKILL")],
    ["too long", task({ exec: ["sleep", "100"], timeout_ms: 1 }), fails("timeout", "1 ms")],
    ["what verifies it fails", task({ verify: ["false"] }), fails("verify", "false")],
    [
      "what verifies it is not there",
      task({ verify: ["no-such-program-anywhere"] }),
      fails("verify", "no-such-program-anywhere"),
    ],

    [
      "its result file is a directory",
      task({ exec: ["sh", "-c", 'mkdir "$MAILCHUTE_RESULT_FILE"'] }),
      RUNS,
    ],
    [
      "its result file is an endless one",
      task({ exec: ["sh", "-c", 'ln -s /dev/zero "$MAILCHUTE_RESULT_FILE"'] }),
      RUNS,
    ],
    [
      "its result file is a pipe",
      task({ exec: ["sh", "-c", 'mkfifo "$MAILCHUTE_RESULT_FILE"'] }),
      RUNS,
    ],
    [
      "its result nests 100,000 deep",
      task({
        exec: [
          "sh",
          "-c",
          'printf "{\\"output\\":" > "$MAILCHUTE_RESULT_FILE"; head -c 100000 /dev/zero | tr "\\0" "[" >> "$MAILCHUTE_RESULT_FILE"; head -c 100000 /dev/zero | tr "\\0" "]" >> "$MAILCHUTE_RESULT_FILE"; printf "}" >> "$MAILCHUTE_RESULT_FILE"',
        ],
      }),
      RUNS,
    ],
    [
      "its output nests 100,000 deep",
      task({
        exec: [
          "sh",
          "-c",
          'printf "<result>{\\"output\\":"; head -c 100000 /dev/zero | tr "\\0" "["; head -c 100000 /dev/zero | tr "\\0" "]"; printf "}</result>"',
        ],
      }),
      RUNS,
    ],
    ["it says rubbish", task({ exec: ["sh", "-c", "head -c 100000 /dev/urandom"] }), RUNS],
  ]),
];
