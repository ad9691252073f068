/**
 * The tool of the agents in a night: does the work of the item whose worktree it runs in. How often it was called decides what it does, as
 * an agent that mends its work does something else than before. `NIGHT` is the folder with items.json.
 */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { basename, join } from "node:path";

const night = process.env.NIGHT ?? process.argv[2];
const id = basename(process.cwd());
const item = JSON.parse(fs.readFileSync(join(night, "items.json"), "utf8")).find(
  (one) => one.id === id,
);
fs.appendFileSync(join(night, `${id}.calls`), ".");
const calls = fs.statSync(join(night, `${id}.calls`)).size;
const TARGET = "mailchute/integration";
const git = (...args) => spawnSync("git", args, { encoding: "utf8" });
const linesOf = (text) => text.split("\n").filter((line) => line.startsWith("item "));

/** Brings the target in, and keeps the lines of both sides. */
function bringTargetIn() {
  if (git("rev-parse", "--verify", "--quiet", TARGET).status !== 0) return;
  git("add", "-A");
  git("commit", "--quiet", "--message", `${id}: as it is`);
  if (git("merge", "--quiet", "--message", `${id}: with the target`, TARGET).status === 0) return;
  const both = [git("show", "HEAD:shared.txt").stdout, git("show", `${TARGET}:shared.txt`).stdout];
  const all = [...new Set(both.flatMap(linesOf))].sort((a, b) => (a < b ? -1 : 1));
  fs.writeFileSync("shared.txt", `The list\n${all.join("\n")}\n`);
  git("add", "-A");
  execFileSync("git", ["commit", "--quiet", "--message", `${id}: both`]);
}

/** For the oracle: each commit of an agent must be found in the morning. */
const noteCommit = () => fs.appendFileSync(join(night, "commits"), git("rev-parse", "HEAD").stdout);

if (item.kind === "shared" && calls > 1) bringTargetIn();
if (item.ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, item.ms);
if (item.kind === "shared") {
  const before = fs.readFileSync("shared.txt", "utf8");
  if (!before.includes(`item ${id}\n`)) fs.writeFileSync("shared.txt", `${before}item ${id}\n`);
} else {
  const isBad = item.kind === "impossible" || (item.kind === "red" && calls === 1);
  fs.mkdirSync("files", { recursive: true });
  fs.writeFileSync(`files/${id}.txt`, `${isBad ? "bad" : "good"} ${id}\n`);
  // Some agents commit by themselves, others leave that to the pool.
  if (item.commits) {
    git("add", "-A");
    git("commit", "--quiet", "--message", `${id}: done`);
    noteCommit();
  }
}
console.log("The work is there.");
