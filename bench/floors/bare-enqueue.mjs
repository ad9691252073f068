/**
 * What `enqueue --file` cannot do without, and nothing else: reads a file of lines, parses each as JSON for its id, and submits it.
 * It checks no task and no id, looks for nobody who has the id already, and counts nothing. Prints one JSON object: seconds from the
 * first task to the last.
 *
 *   node bare-enqueue.mjs FILE DIR    into DIR/inbox, by way of DIR/.tmp
 */

import { randomBytes } from "node:crypto";
import fs from "node:fs";

const [file, dir] = process.argv.slice(2);
const NEWLINE = 0x0a;
const token = randomBytes(5).toString("hex");

function submit(id, bytes) {
  const staged = `${dir}/.tmp/${id}-${token}.json.tmp`;
  const fd = fs.openSync(staged, "wx", 0o600);
  fs.writeSync(fd, bytes);
  fs.closeSync(fd);
  fs.linkSync(staged, `${dir}/inbox/${id}.json`);
  fs.unlinkSync(staged);
}

let startedMs;
let rest = Buffer.alloc(0);
for await (const chunk of fs.createReadStream(file, { highWaterMark: 2 ** 20 })) {
  startedMs ??= performance.now();
  const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
  let from = 0;
  for (let at = data.indexOf(NEWLINE); at !== -1; at = data.indexOf(NEWLINE, from)) {
    const line = data.subarray(from, at + 1);
    from = at + 1;
    submit(JSON.parse(line.toString("utf8")).id, line);
  }
  rest = data.subarray(from);
}
process.stdout.write(JSON.stringify({ submit_s: (performance.now() - startedMs) / 1000 }));
