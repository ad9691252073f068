/** The verdict on one dropped file: what it is, and whether it counts at once. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import { decodeCommand } from "../../../src/codec/command-codec.ts";
import { decodeTask } from "../../../src/codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../../../src/core/limits.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { inspectFile } from "../../../src/supervisor/inbox/inspect-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

const TASKS = { uids: [], batches: 1000, decode: decodeTask };
const COMMANDS = { uids: [], batches: "there are no batches", decode: decodeCommand };

const newTrays = () => openTrays(join(tempDir(), "mailbox"), { durability: "process" });

it.each<[string, string, string, object]>([
  ["a dotfile is ignored", ".a.json", "{", { is: "ignored" }],
  ["an id that cannot be is no name", "a..b.json", "{}", { is: "misnamed" }],
  ["a whole task", "a.json", '{"prompt":"x"}', { is: "accepted", when: "now", id: "a" }],
  ["half a task", "a.json", '{"prompt":', { is: "rejected", when: "quiet", offset: 10 }],
  ["an empty file", "a.json", "", { is: "rejected", when: "quiet" }],
  ["a bad field", "a.json", '{"prompt":7}', { is: "rejected", when: "now" }],
  ["a large task", "a.json", " ".repeat(TASK_BYTES_MAX + 1), { is: "rejected", when: "quiet" }],
  ["a batch just written", "a.ndjson", "{}\n", { is: "accepted", when: "quiet", isBatch: true }],
  ["a batch without a line", "a.ndjson", "\n", { is: "rejected", when: "quiet" }],
  ["a large batch", "a.ndjson", "x".repeat(1001), { is: "rejected", when: "quiet" }],
])("%s", (_, name, text, verdict) => {
  const trays = newTrays();
  const path = join(trays.inbox, name);
  fs.writeFileSync(path, text);
  // Its content is no older than its last change: it was not moved in.
  fs.utimesSync(path, Date.now() / 1000 + 60, Date.now() / 1000 + 60);
  expect(inspectFile(trays, name, TASKS)).toMatchObject(verdict);
});

test("a batch that was moved in counts once no process writes to it", () => {
  const trays = newTrays();
  const path = join(trays.inbox, "a.ndjson");
  fs.writeFileSync(path, "{}\n");
  fs.utimesSync(path, 1, 1);
  expect(inspectFile(trays, "a.ndjson", TASKS)).toMatchObject({ is: "accepted", when: "closed" });
});

test("a directory is refused at once, a file with a second name when it stays so", () => {
  const trays = newTrays();
  fs.mkdirSync(join(trays.inbox, "dir.json"));
  fs.writeFileSync(join(trays.inbox, "a.json"), "{}");
  fs.linkSync(join(trays.inbox, "a.json"), join(trays.dir, "other"));
  expect(inspectFile(trays, "dir.json", TASKS)).toMatchObject({ is: "rejected", when: "now" });
  expect(inspectFile(trays, "a.json", TASKS)).toMatchObject({ is: "linked", when: "quiet" });
});

test("a command is judged alike, with its own decoder and without batches", () => {
  const trays = newTrays();
  fs.writeFileSync(join(trays.inbox, "a.json"), '{"command":"pause"}');
  fs.writeFileSync(join(trays.inbox, "b.json"), '{"command":"dance"}');
  const is = (name: string): object => inspectFile(trays, name, COMMANDS);
  expect(is("a.json")).toMatchObject({ is: "accepted", value: { command: "pause" } });
  expect(is("b.json")).toMatchObject({ is: "rejected", when: "now" });
  expect(is("c.ndjson")).toEqual({ is: "misnamed", reason: "there are no batches" });
  expect(() => is("gone.json")).toThrow("ENOENT");
});
