/** A lone surrogate, as json.dump writes a file name that is not UTF-8, is refused by name at each door. */
import { expect, it } from "vitest";
import { decodeLine } from "../../src/codec/batch-codec.ts";
import { decodeCommand } from "../../src/codec/command-codec.ts";
import { decodeTask } from "../../src/codec/task-codec.ts";
import { findHalfCharacter } from "../../src/codec/well-formed.ts";
import { messageOf } from "../../src/core/errors.ts";
import { decodePost } from "../../src/parts/mail/post/decode-post.ts";
import { parseRoadmap } from "../../src/parts/plan/read/document.ts";
import { readSchedule } from "../../src/parts/schedules/schedule.ts";

const HOME = { project: "p", branch: "b" };
/** Python's json.dump of os.listdir: the byte 0x80. */
const HALF = "\\udc80";
const WHOLE = "\\ud83d\\ude00";

type Door = (text: string) => unknown;

/** What each door takes, with the text in the place of `%`, and how it names that place. */
const DOORS: Readonly<Record<string, readonly [Door, string, string]>> = {
  task: [(text) => decodeTask(Buffer.from(text), "a"), '{"exec": ["cat", "x%y"]}', "exec[1]: "],
  "payload of a task": [
    (text) => decodeTask(Buffer.from(text), "a"),
    '{"exec": ["true"], "payload": {"files": [{"name": "%"}]}}',
    "payload.files[0].name: ",
  ],
  "key in a payload": [
    (text) => decodeTask(Buffer.from(text), "a"),
    '{"exec": ["true"], "payload": {"%": 1}}',
    "a key of payload: ",
  ],
  "line of a batch": [(text) => decodeLine(text, "b", 1), '{"exec": ["cat", "%"]}', "exec[1]: "],
  command: [
    (text) => decodeCommand(Buffer.from(text), "c"),
    '{"command": "cancel", "args": {"node": "%"}}',
    "args.node: ",
  ],
  mail: [
    (text) => decodePost(Buffer.from(text), "m", HOME),
    '{"from_agent": "x", "content": "%"}',
    "content: ",
  ],
  schedule: [
    (text) => readSchedule("s", text, "s.yaml", "UTC"),
    'every: 1h\ntask: {exec: ["cat", "%"]}\n',
    "task.exec: ",
  ],
  plan: [
    (text) => {
      const { problems } = parseRoadmap(text);
      if (problems[0] !== undefined) throw new Error(problems[0].message);
    },
    'nodes:\n  - {id: a, title: "%", status: pending}\n',
    "nodes.title: ",
  ],
};

it.each(Object.entries(DOORS))("refuses one in a %s, and takes a whole character", (_, door) => {
  const [open, text, name] = door;
  expect(() => open(text.replace("%", WHOLE))).not.toThrow();
  let message = "taken";
  try {
    open(text.replace("%", HALF));
  } catch (error) {
    message = messageOf(error);
  }
  expect(message).toContain(`${name}it has half of a character`);
});

it("finds the place, and no half in text of any other kind", () => {
  expect(findHalfCharacter({ a: [{ b: "x" }, { b: "\udc80" }] })).toBe("a[1].b");
  expect(findHalfCharacter({ a: "\u{1f600}\ufffd\0" })).toBeUndefined();
});
