/** What `setup` has made is there in later worktrees without it (`cache`): real pools, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { canDropRoot } from "../../support/other-user.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place, placeOfNobody } from "./place.ts";

/** Makes `build/`, as `npm ci` makes `node_modules/`, and leaves a line for each call. */
const SETUP = `echo x >> "$CALLS"; mkdir -p build/bin; cp README.md build/made-of; echo lib > build/lib
  printf '#!%s/build/bin/tool\\n' "$PWD" > build/bin/shebang; ln -s "$PWD/build/lib" build/link
  touch -d @1000000000 build/lib`;
const CACHE = { paths: ["build"], key: ["README.md"] };

interface CachePlace extends Place {
  /** A task with this cache and setup. */
  task: (script: string, more?: object) => Record<string, unknown>;
  /** How often setup ran. */
  calls: () => number;
  entries: () => string[];
  setupLog: (id: string) => string;
}

function cachePlace(place: Place = newPlace()): CachePlace {
  const { pool } = place;
  const calls = join(pool.dir, "calls");
  fs.writeFileSync(calls, "");
  fs.chmodSync(calls, 0o666);
  const dir = join(pool.state, "worktrees", ".cache");
  return {
    ...place,
    task: (script, more = {}) =>
      inWorktree(script, {
        setup: ["sh", "-ec", SETUP],
        cache: CACHE,
        env: { CALLS: calls },
        ...more,
      }),
    calls: () => fs.readFileSync(calls, "utf8").length / 2,
    entries: () => fs.readdirSync(dir).filter((name) => /^[0-9a-f]{32}$/.test(name)),
    setupLog: (id) => {
      const runs = fs.readdirSync(join(pool.state, "runs"), { recursive: true, encoding: "utf8" });
      const logs = runs.filter((name) => name.includes(`/${id}@`) && name.endsWith("setup.log"));
      return logs.map((name) => fs.readFileSync(join(pool.state, "runs", name), "utf8")).join("");
    },
  };
}

test("setup runs once for six tasks that start at once, and each worktree has its own files", async () => {
  const { pool, task, calls, worktree, setupLog } = cachePlace();
  const ids = Array.from({ length: 6 }, (_, n) => `t${n}`);
  // Each run changes what setup has made, in place, whatever its mode is.
  const script = `cat build/lib; echo "$MAILCHUTE_TASK_ID" >> build/lib; cat build/bin/shebang; readlink build/link
    stat -c %Y build/made-of > /dev/null; touch keep.txt`;
  for (const id of ids) pool.drop(id, task(script));
  await pool.start(["--drain", "--workers", "6"]);
  for (const id of ids) {
    const own = `${worktree(id)}/build`;
    expect((await pool.result(id)).output).toBe(`lib\n#!${own}/bin/tool\n${own}/lib\n`);
  }
  expect(calls()).toBe(1);
  expect(pool.alerts()).toEqual([]);
  const logs = ids.map(setupLog);
  expect(logs.filter((log) => log.includes("kept for other worktrees"))).toHaveLength(1);
  expect(logs.filter((log) => log.includes("from the cache, so setup does not run"))).toHaveLength(
    5,
  );
});

test("a worktree that was filled from the cache goes with its task, as one that setup has made", async () => {
  const { pool, task, worktree, ask } = cachePlace();
  for (const id of ["a", "b"]) {
    pool.drop(id, task("stat -c %Y build/lib"));
    await (await pool.start(["--drain"])).ended;
    // Compilers compare times.
    expect((await pool.result(id)).output).toBe("1000000000\n");
    expect(fs.existsSync(worktree(id))).toBe(false);
  }
  const { json } = await ask("worktrees", "ls");
  expect(json).toMatchObject({ worktrees: [], cache: [{ paths: ["build"] }] });
});

test("another lock file, another setup or other variables have another entry", async () => {
  const { pool, repo, task, calls, entries } = cachePlace();
  pool.drop("a", task("cat build/made-of"));
  await (await pool.start(["--drain"])).ended;
  repo.commit({ "README.md": "2\n" });
  pool.drop("b", task("cat build/made-of"));
  pool.drop("c", task("true", { setup: ["sh", "-ec", `${SETUP}; true`] }));
  await (await pool.start(["--drain"])).ended;
  expect((await pool.result("b")).output).toBe("2\n");
  await pool.result("c");
  expect(calls()).toBe(3);
  expect(entries()).toHaveLength(3);
});

test("a worktree that a run has had makes no entry, and one that begins at work that has not landed makes none", async () => {
  const { pool, repo, task, entries, calls } = cachePlace();
  // The first setup fails, so the second one is not in a new worktree.
  const fails = `[ -s "$CALLS" ] || { echo x >> "$CALLS"; exit 1; }; ${SETUP}`;
  pool.drop("a", task("true", { setup: ["sh", "-ec", fails], max_attempts: 2 }));
  await (await pool.start(["--drain"])).ended;
  await pool.result("a");
  // A run changes what setup reads, but no file of the key.
  pool.drop("b", task("echo bad > .npmrc; commit", { setup: [] }));
  await (await pool.start(["--drain"])).ended;
  repo.git("checkout", "-q", "--detach", "mailchute/b");
  pool.drop("c", task("true"));
  await (await pool.start(["--drain"])).ended;
  await pool.result("c");
  expect(calls()).toBe(3);
  expect(entries()).toEqual([]);
});

test("an entry that was changed is thrown away with an alert, and made again", async () => {
  const { pool, task, calls, entries } = cachePlace();
  pool.drop("a", task("cat build/lib"));
  await (await pool.start(["--drain"])).ended;
  const [entry = ""] = entries();
  const file = join(pool.state, "worktrees/.cache", entry, "files/0/lib");
  const { atime, mtime } = fs.statSync(file);
  expect(fs.statSync(file).mode & 0o222).toBe(0);
  fs.chmodSync(file, 0o644);
  fs.writeFileSync(file, "bad");
  fs.utimesSync(file, atime, mtime);
  fs.chmodSync(file, 0o444);
  pool.drop("b", task("cat build/lib"));
  pool.drop("c", task("cat build/lib"));
  await (await pool.start(["--drain", "--workers", "1"])).ended;
  for (const id of ["b", "c"]) expect((await pool.result(id)).output).toBe("lib\n");
  expect(calls()).toBe(2);
  expect(pool.alerts()).toMatchObject([
    { alert: "cache", message: expect.stringContaining("was changed after it was kept") },
  ]);
});

test("a setup that also makes other files runs in each worktree, and one alert says why", async () => {
  const { pool, task, calls, entries, setupLog } = cachePlace();
  const setup = ["sh", "-ec", `${SETUP}; echo more > more.log`];
  for (const id of ["a", "b"]) pool.drop(id, task("cat more.log", { setup }));
  await (await pool.start(["--drain", "--workers", "1"])).ended;
  for (const id of ["a", "b"]) expect((await pool.result(id)).output).toBe("more\n");
  expect(calls()).toBe(2);
  expect(entries()).toEqual([]);
  expect(setupLog("a")).toContain("setup has made or changed more.log, which is not in paths");
  expect(pool.alerts()).toHaveLength(1);
});

test.each(["new-", "fill-"])(
  "all processes are killed while %s… is copied: each task ends right, and what is kept is whole",
  async (staged) => {
    const { pool, task, calls, entries } = cachePlace();
    // A run that is repeated repeats it in the worktree that is there.
    const many = `rm -rf build; ${SETUP}; for n in $(seq 3000); do echo $n > build/f$n; done`;
    const one = (): object =>
      task("ls build | wc -l", { setup: ["sh", "-ec", many], max_attempts: 3 });
    const dir = join(pool.state, "worktrees", ".cache");
    const isCopied = (): boolean =>
      fs.existsSync(dir) && fs.readdirSync(dir).some((name) => name.startsWith(staged));
    await pool.start();
    pool.drop("a", one());
    if (staged === "fill-") {
      await pool.result("a");
      pool.drop("b", one());
    }
    await waitFor(isCopied, { what: "the copy" });
    await pool.killAll();
    // On a quick disk the copy may have ended before the kill.
    const kept = entries().length;
    await pool.start();
    for (const id of ["b", "c"]) if (id !== "b" || staged !== "fill-") pool.drop(id, one());
    for (const id of ["a", "b", "c"]) expect((await pool.result(id)).output).toBe("3004\n");
    expect(entries()).toHaveLength(1);
    expect(calls()).toBe(staged === "fill-" ? 1 : 3 - kept);
    expect(pool.alerts()).toEqual([]);
  },
);

test("worktrees clean removes an entry that was not used for retention.cache_days", async () => {
  const { pool, task, entries } = cachePlace(newPlace("retention: {cache_days: 2}\n"));
  pool.drop("a", task("true"));
  await (await pool.start(["--drain"])).ended;
  await pool.run(["worktrees", "clean"]);
  const [entry = ""] = entries();
  const dir = join(pool.state, "worktrees/.cache");
  const old = Date.now() / 1000 - 3 * 24 * 60 * 60;
  fs.utimesSync(join(dir, entry, "note.json"), old, old);
  fs.mkdirSync(join(dir, "new-half"));
  fs.utimesSync(join(dir, "new-half"), old, old);
  await pool.run(["worktrees", "clean"]);
  expect(entries()).toEqual([]);
  expect(fs.readdirSync(dir)).not.toContain("new-half");
});

test.skipIf(!canDropRoot())(
  "with link: true the files of worktrees are the same, and cannot be written by mistake",
  async () => {
    const place = cachePlace(placeOfNobody());
    const { pool, task, ask, worktree, calls } = place;
    fs.chmodSync(pool.dir, 0o755);
    const cache = { ...CACHE, link: true };
    const script = `echo bad >> build/lib || echo refused; rm build/made-of; echo own > build/made-of; touch "$MAILCHUTE_TASK_ID.txt"`;
    for (const id of ["a", "b"]) pool.drop(id, task(script, { cache }));
    pool.drop("plain", task("true", { cache }));
    await (await pool.start(["--drain", "--workers", "1"])).ended;
    for (const id of ["a", "b"]) expect((await pool.result(id)).output).toBe("refused\n");
    const inodes = ["a", "b"].map((id) => fs.statSync(join(worktree(id), "build/lib")).ino);
    expect(inodes[0]).toBe(inodes[1]);
    expect(calls()).toBe(1);
    // Other names that came and went do not keep a worktree.
    await pool.result("plain");
    expect(fs.existsSync(worktree("plain"))).toBe(false);
    const { json } = await ask("worktrees", "ls");
    expect(json).toMatchObject({
      worktrees: [
        { id: "a", ignored: ["build/made-of"] },
        { id: "b", ignored: ["build/made-of"] },
      ],
    });
  },
);
