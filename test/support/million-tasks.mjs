/** A state tree with 1,000,000 tasks. */
import fs from "node:fs";
import { join } from "node:path";

/**
 * Puts 1,000,000 tasks into the trays. Most are links to a few files: a million files of their own would fill the memory.
 * @param source a folder that is made for these files
 */
export function fillTree(state, source) {
  const mailbox = join(state, "mailbox");
  fs.mkdirSync(source);
  const task = { prompt: "x".repeat(200) };
  const done = { task_id: "t", status: "completed", task, attempts: 1, completed_at: 1 };
  const failed = { ...done, status: "failed", kind: "exit", error: "connect ECONNREFUSED" };
  const kinds = [
    { tray: "outbox", ending: "_result.json", record: done, count: 800_000 },
    { tray: "inbox", ending: ".json", record: task, count: 150_000 },
    { tray: "failed", ending: "_error.json", record: { ...failed, failed_at: 1 }, count: 50_000 },
  ];
  for (const { tray, ending, record, count } of kinds) {
    const dir = join(mailbox, tray);
    if (!fs.existsSync(dir)) fs.mkdirSync(dir);
    const file = join(source, tray);
    fs.writeFileSync(file, JSON.stringify(record));
    for (let n = 0; n < count; n++) {
      const path = join(dir, `${tray}-${n}${ending}`);
      if (n % 100 === 0) fs.copyFileSync(file, path);
      else fs.linkSync(file, path);
    }
  }
}
