/** The oracle of a night: what git and the records say, held against each other, the plan of the items and the report. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { read } from "../../scripts/demo-stage.mjs";
import { CANNOT_LAND } from "./items.mjs";
import { bookedIn } from "./service.mjs";

export const TARGET = "mailchute/integration";
/** Of the items that can land, this share must have landed. */
const SHARE = 0.95;
/** Kinds whose trouble lies with the service: none of it may use up an attempt. */
const OF_SERVICE = new Set(
  "plain shared window throttled overloaded refused login overflow".split(" "),
);
const SAYS_SERVICE = /429|529|401|limit|overloaded|quota|account|permission|denied|too long/i;
/** What one answer of a model costs (tokens), see mock-api/format.ts and the stand-ins. */
const ANSWER_TOKENS = 1030;

/** @returns what is wrong; empty for a good night */
export async function judge(night) {
  const wrong = [];
  judgeItems(night, wrong);
  judgeTarget(night, wrong);
  judgeCommits(night, wrong);
  judgeCosts(night, wrong);
  const { stage } = night;
  const report = JSON.parse(stage.mailchute("report", "--since", "1h", "--json"));
  const named = report.work.filter(({ state }) => state === "landed").map((one) => one.task_id);
  if (new Set(named).size !== night.landed)
    wrong.push(`the report says that ${new Set(named).size} landed, git ${night.landed}`);
  const left = stage.inFlight().filter((name) => !night.isAsked(name));
  if (left.length > 0) wrong.push(`left: ${left.join(", ")}`);
  if (stage.pids().length > 0) wrong.push(`processes are left: ${stage.pids().join(", ")}`);
  const fsck = night.git("fsck", "--connectivity-only");
  if (/missing|broken/.test(fsck)) wrong.push(`git fsck: ${fsck}`);
  return wrong;
}

function judgeItems(night, wrong) {
  const { stage, items } = night;
  const shared = night.git("show", `${TARGET}:shared.txt`).split("\n");
  const files = new Set(night.git("ls-tree", "-r", "--name-only", TARGET).split("\n"));
  const retries = stage.events().filter(({ event }) => event === "retry_scheduled");
  night.landed = 0;
  night.waiting = [];
  const waitsS = [];
  for (const { id, kind } of items) {
    const times =
      kind === "shared"
        ? shared.filter((line) => line === `item ${id}`).length
        : Number(files.has(`files/${id}.txt`));
    const record = stage.recordOf(id);
    const end = stage.recordOf(`${id}.land`) ?? record;
    const says = end?.status === "completed" && end.output?.landing === "landed";
    const who = `${id} (${kind})`;
    if (times > 1) wrong.push(`${who} landed ${times} times`);
    if (says !== (times === 1))
      wrong.push(`${who}: its record says ${says ? "" : "not "}landed, and git says ${times}`);
    if (times === 1 && CANNOT_LAND.has(kind)) wrong.push(`${who} landed, and cannot be done`);
    if (times === 1) {
      night.landed++;
      waitsS.push(end.completed_at - record.completed_at);
    } else
      night.waiting.push(
        `${who}: ${night.isAsked(id) ? "a question" : firstLine(end?.error ?? "no record")} (${record?.attempts} attempts)`,
      );
    if (times === 0 && !night.isAsked(id) && !isTrueReason(kind, end))
      wrong.push(`${who} waits for no true reason`);
    const used = retries.filter((one) => one.task_id === id && SAYS_SERVICE.test(one.error));
    if (OF_SERVICE.has(kind) && used.length > 0)
      wrong.push(`${who}: the service used up an attempt: ${firstLine(used[0].error)}`);
  }
  waitsS.sort((a, b) => a - b);
  night.toLandedS = { median: waitsS[waitsS.length >> 1], max: waitsS.at(-1) };
  night.can = items.filter(({ kind }) => !CANNOT_LAND.has(kind)).length;
  if (night.landed < SHARE * night.can)
    wrong.push(`${night.landed} of ${night.can} items that can land have landed`);
}

const firstLine = (text) => String(text).split("\n")[0].slice(0, 160);

/** What was planted must be what the record names. */
function isTrueReason(kind, end) {
  const error = String(end?.error);
  // The kills of the night may end its last attempt, too.
  if (kind === "impossible") return /bad: files\/|worker died|SIGKILL/.test(error);
  return end?.status === "failed" && error.length > 0;
}

function judgeTarget(night, wrong) {
  const files = new Set(night.git("ls-tree", "-r", "--name-only", TARGET).split("\n"));
  for (const name of night.people)
    if (!files.has(name)) wrong.push(`the commit of a person is gone: ${name}`);
  const log = night.git("reflog", "show", "--format=%H", `refs/heads/${TARGET}`).split("\n");
  const tips = new Set(log);
  for (const tip of tips) if (!isGreen(night, tip)) wrong.push(`the target was red at ${tip}`);
  night.tips = tips.size;
  const patches = new Map();
  for (const commit of night.git("rev-list", "--no-merges", `main..${TARGET}`).split("\n")) {
    const patch = patchOf(night, commit);
    if (patch !== "" && patches.has(patch))
      wrong.push(`the same change twice: ${commit}, ${patches.get(patch)}`);
    patches.set(patch, commit);
  }
}

/** Whether the check of the project is green at a commit. */
function isGreen({ root, project }, commit) {
  const dir = join(root, `at-${commit}`);
  fs.mkdirSync(dir);
  const tar = execFileSync("git", ["archive", commit], { cwd: project, maxBuffer: 1 << 26 });
  execFileSync("tar", ["-x"], { cwd: dir, input: tar });
  const end = spawnSync("sh", ["check.sh"], { cwd: dir });
  fs.rmSync(dir, { recursive: true });
  return end.status === 0;
}

function patchOf({ project }, commit) {
  const diff = execFileSync("git", ["diff-tree", "-p", commit], { cwd: project });
  const id = execFileSync("git", ["patch-id", "--stable"], { input: diff }).toString();
  return id.split(" ")[0];
}

/** Each commit that an agent has made (work.mjs notes them) is on a ref, or its change is on the target. */
function judgeCommits(night, wrong) {
  const made = new Set(read(join(night.root, "commits")).split("\n").filter(Boolean));
  const kept = new Set(night.git("rev-list", "--all").split("\n"));
  const landed = night.git("rev-list", "--no-merges", TARGET).split("\n");
  const patches = new Set(landed.map((commit) => patchOf(night, commit)));
  night.commits = made.size;
  for (const commit of made)
    if (!kept.has(commit) && !patches.has(patchOf(night, commit)))
      wrong.push(`a commit of an agent is on no ref: ${commit}`);
}

/** The books name what was charged. A program that is killed may have kept nothing of its last answer. */
function judgeCosts(night, wrong) {
  const charged = night.service.charged();
  const booked = bookedIn(join(night.stage.state, "analytics"));
  night.cost = { charged, booked };
  const apart = Math.abs(charged.input + charged.output - booked.input - booked.output);
  if (apart > night.kills * ANSWER_TOKENS)
    wrong.push(`the books name ${JSON.stringify(booked)}, charged was ${JSON.stringify(charged)}`);
}
