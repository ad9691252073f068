/** Files that are written before everybody's eyes: slowly, in part, again, or by somebody who changes his mind. */
import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { hostKind } from "../../../src/host/host-kind.ts";
import { type Answer, batch, GONE, type InputCase, refused } from "./input-case.ts";

/** Between two steps of a slow producer (ms): less than what is waited for him. */
const STEP_MS = 60;

type Write = NonNullable<InputCase["write"]>;

const echo = (word: string): string => `{"exec":["echo","-n","${word}"]}`;
const says = (output: string): Answer => ({ kind: "runs", output });

/** Piece by piece into the file itself, which is open all the time. */
function inPieces(text: string, pieces: number): Write {
  return async (path) => {
    const fd = fs.openSync(path, "wx");
    const size = Math.ceil(text.length / pieces);
    for (let at = 0; at < text.length; at += size) {
      fs.writeSync(fd, text.slice(at, at + size));
      await pause(STEP_MS);
    }
    fs.closeSync(fd);
  };
}

/** The same, opened anew for each piece. */
function appended(...pieces: string[]): Write {
  return async (path) => {
    for (const piece of pieces) {
      fs.appendFileSync(path, piece);
      await pause(STEP_MS);
    }
  };
}

function replaced(path: string, text: string): void {
  const staged = `${path}.tmp`;
  fs.writeFileSync(staged, text);
  fs.renameSync(staged, path);
}

const CASES: [title: string, write: Write, answer: Answer, ending?: ".ndjson"][] = [
  ["byte by byte", inPieces(echo("slow"), 25), says("slow")],
  ["in two halves", inPieces(echo("halves"), 2), says("halves")],
  ["by two who append", appended('{"exec":["echo",', '"-n","two"]}'), says("two")],
  ["made empty, filled later", appended("", echo("later")), says("later")],
  [
    "held open far beyond the settle time",
    async (path) => {
      const fd = fs.openSync(path, "wx");
      fs.writeSync(fd, '{"exec":["echo",');
      // Longer than it may be quiet, but its writer is there.
      for (let step = 0; step < 12; step++) await pause(STEP_MS);
      fs.writeSync(fd, '"-n","patience"]}');
      fs.closeSync(fd);
    },
    says("patience"),
  ],
  [
    "given up in its middle",
    appended('{"exec":["ec'),
    refused("the text ends inside a string", 12),
  ],
  [
    "given up by one who had it open",
    inPieces('{"exec":["ec', 3),
    refused("the text ends inside a string", 12),
  ],
  [
    "half of it, then taken away",
    async (path) => {
      fs.writeFileSync(path, '{"exec":');
      await pause(STEP_MS);
      fs.unlinkSync(path);
    },
    GONE,
  ],
  [
    "half of it, then renamed to what is not ours",
    async (path) => {
      fs.writeFileSync(path, '{"exec":');
      await pause(STEP_MS);
      fs.renameSync(path, path.replace(/inbox\/(.*)$/, "$1.moved"));
    },
    GONE,
  ],
  [
    "half of it, then replaced by a whole one",
    async (path) => {
      fs.writeFileSync(path, '{"exec":');
      await pause(STEP_MS);
      replaced(path, echo("replaced"));
    },
    says("replaced"),
  ],
  [
    "half of it, then by a link",
    async (path) => {
      fs.writeFileSync(path, '{"exec":');
      await pause(STEP_MS);
      fs.unlinkSync(path);
      fs.symlinkSync("/dev/zero", path);
    },
    refused("not a regular file"),
  ],
  [
    "half of it, then by a directory",
    async (path) => {
      fs.writeFileSync(path, '{"exec":');
      await pause(STEP_MS);
      fs.unlinkSync(path);
      fs.mkdirSync(path);
    },
    refused("a directory, not a file"),
  ],
  [
    "one that waits, then emptied",
    async (path) => {
      replaced(path, '{"exec":["true"],"not_before":4102444800}');
      for (let step = 0; step < 4; step++) await pause(STEP_MS);
      fs.truncateSync(path, 0);
    },
    refused("the file is empty", 0),
  ],
  [
    "one that waits, then made to run",
    async (path) => {
      replaced(path, '{"exec":["true"],"not_before":4102444800}');
      for (let step = 0; step < 4; step++) await pause(STEP_MS);
      replaced(path, echo("at last"));
    },
    says("at last"),
  ],
  [
    "one that waits, then taken away",
    async (path) => {
      replaced(path, '{"prompt":"x","agent":"nobody"}');
      for (let step = 0; step < 4; step++) await pause(STEP_MS);
      fs.unlinkSync(path);
    },
    GONE,
  ],
  [
    "one that waits, then overwritten with rubbish",
    async (path) => {
      replaced(path, '{"exec":["true"],"metadata":{"dependencies":["never"]}}');
      for (let step = 0; step < 4; step++) await pause(STEP_MS);
      replaced(path, "rubbish");
    },
    refused("expected a JSON object", 0),
  ],
  [
    "a task that grows a second one",
    async (path) => {
      fs.writeFileSync(path, '{"exec":["true"]');
      await pause(STEP_MS);
      fs.appendFileSync(path, '}\n{"exec":["true"]}');
    },
    refused("more text after", 18),
  ],
  [
    "saved by link, as we do it",
    async (path) => {
      const staged = `${path}.tmp`;
      fs.writeFileSync(staged, echo("linked"));
      fs.linkSync(staged, path);
      await pause(STEP_MS);
      fs.unlinkSync(staged);
    },
    says("linked"),
  ],
  [
    "a copy that takes its times along",
    async (path) => {
      const fd = fs.openSync(path, "wx");
      fs.writeSync(fd, '{"exec":["echo","-n"');
      fs.futimesSync(fd, 1, 1);
      await pause(STEP_MS);
      fs.writeSync(fd, ',"times"]}');
      fs.futimesSync(fd, 1, 1);
      fs.closeSync(fd);
    },
    says("times"),
  ],
  [
    "one that grows beyond the limit",
    async (path) => {
      // Open all the time: it is neither quiet, nor made again after it was refused.
      const fd = fs.openSync(path, "wx");
      fs.writeSync(fd, '{"prompt":"');
      for (let step = 0; step < 5; step++) {
        fs.writeSync(fd, "x".repeat(256 * 1024));
        await pause(STEP_MS);
      }
      fs.closeSync(fd);
    },
    refused("more than the limit"),
  ],
  ["a batch, line by line", inPieces(`${echo("1")}\n`.repeat(8), 8), batch(8), ".ndjson"],
  [
    "a batch in the middle of its lines",
    inPieces(`${echo("1")}\n`.repeat(5), 7),
    batch(5),
    ".ndjson",
  ],
  [
    "a batch that ends in the middle of a line",
    appended(`${echo("1")}\n{"exec":`),
    batch(1, { 2: "not JSON" }),
    ".ndjson",
  ],
];

/** Taken for whole by how long they are quiet, where no writer can be seen: a busy machine decides. */
const BY_WRITER = ["byte by byte", "in two halves", "held open far beyond the settle time"];

const POSSIBLE = CASES.filter(([title]) => hostKind() === "proc" || !BY_WRITER.includes(title));

export const ARRIVALS: InputCase[] = POSSIBLE.map(
  ([title, write, answer, ending = ".json"], i) => ({
    group: "written before everybody's eyes",
    title,
    name: `arrival-${i + 1}${ending}`,
    write,
    answer,
  }),
);
