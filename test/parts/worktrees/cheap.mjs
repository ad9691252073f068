#!/usr/bin/env node
/**
 * cheap.mjs: what many worktrees of a repository with large dependencies cost, without and with `cache`: bytes on the disk, and seconds.
 * `setup` is `npm ci`, without a network. Each run also changes one of these files, in place if it can.
 *
 *   --worktrees N   how many (default 50)        --files N   of the dependencies (default 20000)
 *   --mb N          their bytes (default 500)    --slots N   of the pool (default 4)
 *   --fs A,B        where: here, btrfs, xfs (default here,btrfs,xfs). The last two are made in a file here, which needs root and their tools
 *   --ways A,B      without, cache, link (default all)
 *
 * Prints a row for each. Ends with 1 when setup ran more than once with a cache, when a task failed, or when a run has changed the file of
 * another one. As root it runs the pool as another user, because root is never given hard links.
 */
import "../../../scripts/own-folders.mjs";
import { execFileSync, spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFlags } from "../../../scripts/flags.mjs";

const text = (value) => ({ type: "string", default: value });
const { values } = readFlags(import.meta.url, {
  options: {
    worktrees: text("50"),
    files: text("20000"),
    mb: text("500"),
    slots: text("4"),
    fs: text("here,btrfs,xfs"),
    ways: text("without,cache,link"),
  },
});
const [WORKTREES, FILES, MB] = [values.worktrees, values.files, values.mb].map(Number);
const LAUNCHER = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const isRoot = process.getuid() === 0;
const USER = isRoot ? { uid: 65_534, gid: 65_534 } : {};
const root = fs.mkdtempSync(join(os.tmpdir(), "mailchute-cheap-"));
fs.chmodSync(root, 0o755);
const run = (program, ...args) => execFileSync(program, args, { stdio: ["ignore", "pipe", 2] });

/** Archives of packages with a hundred files each. @returns package.json and package-lock.json */
function makePackages() {
  const bytes = Buffer.alloc(Math.ceil((MB * 1024 * 1024) / FILES));
  const dependencies = {};
  const packages = { "": { dependencies } };
  for (let n = 0; n < FILES / 100; n++) {
    const dir = join(root, "package");
    const [name, version] = [`p${n}`, "1.0.0"];
    fs.mkdirSync(dir);
    fs.writeFileSync(join(dir, "package.json"), JSON.stringify({ name, version }));
    for (let m = 1; m < 100; m++) fs.writeFileSync(join(dir, `f${m}.js`), randomFillSync(bytes));
    const archive = join(root, `${name}.tgz`);
    run("tar", "-C", root, "-czf", archive, "package");
    fs.rmSync(dir, { recursive: true });
    dependencies[name] = `file:${archive}`;
    packages[`node_modules/${name}`] = { version, resolved: `file:${archive}` };
  }
  return {
    "package.json": JSON.stringify({ dependencies }),
    "package-lock.json": JSON.stringify({ lockfileVersion: 3, requires: true, packages }),
  };
}

/** A folder on a file system of this kind, and what removes it. */
function openPlace(kind) {
  const dir = join(root, kind);
  fs.mkdirSync(dir);
  if (kind === "here") return { dir, close: () => {} };
  const image = join(root, `${kind}.img`);
  fs.writeFileSync(image, "");
  fs.truncateSync(image, (WORKTREES * MB * 1.5 + 2048) * 1024 * 1024);
  run(`mkfs.${kind}`, "-q", image);
  run("mount", "-o", "loop", image, dir);
  const close = () => {
    run("umount", dir);
    fs.rmSync(image);
  };
  return { dir, close };
}

function usedBytes(dir) {
  run("sync", "-f", dir);
  const { blocks, bfree, bsize } = fs.statfsSync(dir);
  return (blocks - bfree) * bsize;
}

function makeTree(top, way, files) {
  const repo = join(top, "repo");
  run("git", "init", "-q", "--initial-branch=main", repo);
  fs.writeFileSync(join(repo, ".gitignore"), "node_modules/\n");
  for (const [name, all] of Object.entries(files)) fs.writeFileSync(join(repo, name), all);
  run("git", "-C", repo, "add", "--all");
  run("git", "-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first");
  const inbox = join(top, "state", "mailbox", "inbox");
  run("mkdir", "-p", inbox);
  const calls = join(top, "calls");
  fs.writeFileSync(calls, "");
  const config = `workers: ${values.slots}\ndurability: process\n`;
  fs.writeFileSync(join(top, "state", "config.yaml"), config);
  const cache = { paths: ["node_modules"], key: Object.keys(files) };
  const wish =
    way === "without" ? {} : { cache: way === "link" ? { ...cache, link: true } : cache };
  const setup = `echo x >> ${calls}; npm ci --offline --ignore-scripts --no-audit --no-fund`;
  // A file that is read-only is replaced. The bytes tell whether another run was there.
  const script = `f=node_modules/p0/f1.js; ! grep -q own-bytes $f || exit 64
    printf own-bytes 1<> $f || { cp $f new && mv -f new $f && chmod u+w $f && printf own-bytes 1<> $f; }
    touch "$MAILCHUTE_TASK_ID"`;
  for (let n = 0; n < WORKTREES; n++) {
    const exec = ["sh", "-c", script];
    const task = { exec, cwd: "repo", worktree: "auto", setup: ["sh", "-ec", setup], ...wish };
    fs.writeFileSync(join(inbox, `t${n}.json`), JSON.stringify({ ...task, max_attempts: 1 }));
  }
  if (isRoot) run("chown", "-R", `${USER.uid}:${USER.gid}`, top);
  return { state: join(top, "state"), calls };
}

async function play(dir, way, files) {
  const top = fs.mkdtempSync(join(dir, "run-"));
  const { state, calls } = makeTree(top, way, files);
  const before = usedBytes(dir);
  const began = performance.now();
  const log = fs.openSync(join(root, "run.err"), "a");
  const env = { ...process.env, XDG_STATE_HOME: top, XDG_DATA_HOME: top, HOME: top };
  const words = [LAUNCHER, "run", "--state", state, "--drain"];
  const child = spawn(process.execPath, words, {
    cwd: top,
    env,
    stdio: ["ignore", log, log],
    ...USER,
  });
  await once(child, "exit");
  fs.closeSync(log);
  const seconds = (performance.now() - began) / 1000;
  if (child.exitCode !== 0) console.error(fs.readFileSync(join(root, "run.err"), "utf8"));
  const bytes = usedBytes(dir) - before;
  const count = (tray, ending) =>
    fs.readdirSync(join(state, "mailbox", tray)).filter((name) => name.endsWith(ending)).length;
  const setups = fs.readFileSync(calls, "utf8").length / 2;
  const done = count("outbox", "_result.json");
  return { seconds, bytes, setups, done, remove: () => fs.rmSync(top, { recursive: true }) };
}

let isRight = true;
try {
  const files = makePackages();
  console.log(
    `${WORKTREES} worktrees, each with ${MB} MB of dependencies in ${FILES} files, ${values.slots} at once`,
  );
  console.log("| file system | way | bytes | seconds | setup ran | tasks done |");
  console.log("|---|---|---|---|---|---|");
  for (const kind of values.fs.split(",")) {
    const { dir, close } = openPlace(kind);
    const type = run("findmnt", "-no", "FSTYPE", "-T", dir).toString().trim();
    try {
      for (const way of values.ways.split(",")) {
        const { bytes, seconds, setups, done, remove } = await play(dir, way, files);
        const mb = (bytes / 1024 / 1024).toFixed(0);
        console.log(
          `| ${type} | ${way} | ${mb} MB | ${seconds.toFixed(0)} | ${setups} | ${done} |`,
        );
        if (done !== WORKTREES || (way !== "without" && setups !== 1)) isRight = false;
        remove();
      }
    } finally {
      close();
    }
  }
} finally {
  fs.rmSync(root, { recursive: true, force: true });
}
process.exitCode = isRight ? 0 : 1;
