/**
 * The file-system calls that one task costs, and nothing else, in one Node process: no JSON, no events, no decisions.
 * The same loop as loop.c. Prints one JSON object: seconds of submitting, seconds of the rest.
 *
 *   node loop.mjs DIR COUNT submit|protocol|minimal
 *
 * submit    create under another name, write, link, unlink (`submitAll`)
 * protocol  that, then what a drain does with each task, as `strace -f` shows it: the supervisor reads and accepts, a worker
 *           claims, reads, stages, commits, links, unlinks twice; six journal lines, those of a group in one write each
 * minimal   that, then claim by rename, read, four lines appended one by one, the result by write and rename, unlink
 */
import fs from "node:fs";

const [dir, countText, mode] = process.argv.slice(2);
const count = Number(countText);
/** Tasks whose journal lines share a write: the slots that a worker process has in these runs. */
const GROUP = 8;
const BODY_BYTES = 600;
const body = Buffer.alloc(BODY_BYTES, "x");
const record = Buffer.alloc(860, "x");
const line = Buffer.from(`${"x".repeat(214)}\n`);
const input = Buffer.alloc(BODY_BYTES + 1);
const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_NOATIME } = fs.constants;
const READ = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME;

const inbox = (i) => `${dir}/inbox/t${i}.json`;
const staged = (i) => `${dir}/.tmp/t${i}.json`;
const ready = (i) => `${dir}/processing/t${i}@abcdefgh.1~ready.json`;
const claimed = (i) => `${dir}/processing/t${i}@abcdefgh.1~w-0123456789ab-abc-abcd-1.json`;
const marker = (i) => `${dir}/processing/t${i}@abcdefgh.1~ok-0123456789ab-abc-abcd-1.json`;
const stagedRecord = (i) => `${dir}/.tmp/t${i}@abcdefgh.1~ok-0123456789ab-abc-abcd-1.json`;
const plainClaim = (i) => `${dir}/processing/t${i}.json`;
const result = (i) => `${dir}/outbox/t${i}_result.json`;

function create(path, bytes) {
  const fd = fs.openSync(path, "wx", 0o600);
  fs.writeSync(fd, bytes);
  fs.closeSync(fd);
}

/** As storage reads: open without following links, look, read. */
function readWhole(path) {
  const fd = fs.openSync(path, READ);
  fs.fstatSync(fd);
  fs.readSync(fd, input, 0, BODY_BYTES + 1, 0);
  fs.closeSync(fd);
}

const linesOf = Array.from({ length: 2 * GROUP + 1 }, (_, n) => Buffer.alloc(n * 215, line));
const append = (fd, n) => fs.writeSync(fd, linesOf[n]);

function submit(i) {
  create(staged(i), body);
  fs.linkSync(staged(i), inbox(i));
  fs.unlinkSync(staged(i));
}

function runGroup(from, to, events, leases) {
  const n = to - from;
  for (let i = from; i < to; i++) readWhole(inbox(i));
  append(events, n);
  for (let i = from; i < to; i++) fs.renameSync(inbox(i), ready(i));
  for (let i = from; i < to; i++) {
    fs.renameSync(ready(i), claimed(i));
    readWhole(claimed(i));
  }
  append(leases, n);
  append(events, 2 * n);
  for (let i = from; i < to; i++) create(stagedRecord(i), record);
  for (let i = from; i < to; i++) fs.renameSync(claimed(i), marker(i));
  for (let i = from; i < to; i++) fs.linkSync(stagedRecord(i), result(i));
  append(leases, n);
  append(events, n);
  for (let i = from; i < to; i++) {
    fs.unlinkSync(marker(i));
    fs.unlinkSync(stagedRecord(i));
  }
}

function runMinimal(i, events) {
  append(events, 1);
  fs.renameSync(inbox(i), plainClaim(i));
  append(events, 1);
  readWhole(plainClaim(i));
  append(events, 1);
  create(staged(i), record);
  fs.renameSync(staged(i), result(i));
  append(events, 1);
  fs.unlinkSync(plainClaim(i));
}

for (const tray of ["inbox", "processing", "outbox", ".tmp"])
  fs.mkdirSync(`${dir}/${tray}`, { mode: 0o700 });
const events = fs.openSync(`${dir}/events.jsonl`, "a+", 0o600);
const leases = fs.openSync(`${dir}/leases.jsonl`, "a+", 0o600);

const submitFrom = performance.now();
for (let i = 0; i < count; i++) submit(i);
const drainFrom = performance.now();
if (mode === "protocol")
  for (let i = 0; i < count; i += GROUP) runGroup(i, Math.min(i + GROUP, count), events, leases);
else if (mode === "minimal") for (let i = 0; i < count; i++) runMinimal(i, events);
const end = performance.now();
console.log(
  JSON.stringify({ submit_s: (drainFrom - submitFrom) / 1000, drain_s: (end - drainFrom) / 1000 }),
);
