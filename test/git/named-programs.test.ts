/**
 * A run writes into the settings of the repository, of one inside and of a submodule each way in which git starts a program. Then mailchute
 * does everything that it does with git: none of the programs may run.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { inWorktree, newPlace, type Place } from "../parts/worktrees/place.ts";
import { newRepository } from "../support/git-repository.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { HOOKS, hostileSettings, missingWays } from "./ways.ts";

const GIT = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
const ALLOW = ["-c", "protocol.file.allow=always"];
const LINES = ["1", "2", "3", "4", "5", "6", "7", "8", "9", ""].join("\n");

interface Trap {
  /** Which programs ran, as `<place>:<way>`; each once. */
  ran: () => string[];
  /** A shell script that writes the settings, without git. */
  script: string;
}

function setTrap({ pool, repo }: Place): Trap {
  const log = join(pool.dir, "ran");
  const program = join(pool.dir, "program");
  // A filter passes the file on. One that would be asked for many files ends at once: it does not speak git's language.
  const body = `echo "$1" >> ${log}\ncase $1 in *clean | *smudge) exec cat ;; *) exit 1 ;; esac\n`;
  fs.writeFileSync(program, `#!/bin/sh\n${body}`, { mode: 0o755 });
  const script: string[] = [];
  const hooks = join(pool.dir, "hooks");
  fs.mkdirSync(hooks);
  for (const hook of HOOKS)
    fs.writeFileSync(join(hooks, hook), `#!/bin/sh\n${program} hook:${hook}; exit 0\n`, {
      mode: 0o755,
    });
  for (const [place, gitDir] of [
    ["main", join(repo.dir, ".git")],
    ["inner", "inner/.git"],
    ["submodule", '"$(sed "s/^gitdir: //" .git)"'],
    ["persons-submodule", join(repo.dir, ".git/modules/sub")],
  ] as const) {
    const file = join(pool.dir, `${place}.config`);
    fs.writeFileSync(file, hostileSettings(program, place, hooks));
    const at = place === "submodule" ? `(cd sub; cat ${file} >> ${gitDir}/config)` : undefined;
    script.push(at ?? `cat ${file} >> ${gitDir}/config; cp ${hooks}/* ${gitDir}/hooks/`);
  }
  const worktreeConfig = `printf '[filter "w"]\\n\\tclean = "${program} worktree:filter.w.clean"\\n' > "$(sed 's/^gitdir: //' .git)/config.worktree"`;
  script.push(
    worktreeConfig,
    `printf '* filter=e diff=e merge=e\\n' | tee inner/.gitattributes ${repo.dir}/sub/.gitattributes > sub/.gitattributes`,
    // Other times than in the index, so that git would read these files anew.
    `touch -d 2001-01-01 README.md inner/* sub/* ${repo.dir}/README.md ${repo.dir}/sub/README.md`,
    "echo w | tee aw.txt > p.txt",
  );
  return {
    ran: () =>
      fs.existsSync(log)
        ? [...new Set(fs.readFileSync(log, "utf8").trim().split("\n"))].sort()
        : [],
    script: script.join("; "),
  };
}

interface Scene extends Place, Trap {}

/** A repository with a submodule, and a run that has set all the traps. @param env more variables of everything that mailchute starts */
async function trapped(env: Record<string, string> = {}): Promise<Scene> {
  const place = newPlace();
  const { pool, repo } = place;
  Object.assign(place.env, env);
  const remote = newRepository(join(pool.dir, "remote"));
  repo.git(...ALLOW, "submodule", "--quiet", "add", remote.dir, "sub");
  repo.commit({
    ".gitattributes": "* filter=e diff=e merge=e\naw* filter=w\np* filter=p\n",
    "README.md": LINES,
  });
  const inner = newRepository(join(pool.dir, "inner"));
  const trap = setTrap(place);
  const setup = ["git", "submodule", "--quiet", "update", "--init"];
  const hostile = `cp -r ${inner.dir} inner; ${trap.script}; echo x > x.txt; echo y > sub/y.txt`;
  const setupEnv = { GIT_ALLOW_PROTOCOL: "file" };
  pool.drop("hostile", inWorktree(hostile, { land: "merge", setup, env: setupEnv }));
  await (await pool.start(["--drain"])).ended;
  return { ...place, ...trap };
}

/** The settings are as the run has left them, and mailchute goes on. */
function goOn({ pool }: Place): void {
  const edit = (n: number): string => `sed -i s/^${n}$/${n}${n}/ README.md`;
  const lands = { land: "merge" };
  const checkout = { ...lands, target: "main", land_into_checkout: true };
  pool.drop("b", inWorktree(edit(2), lands));
  pool.drop("c", inWorktree(edit(8), lands));
  pool.drop("d", inWorktree("echo d > d.txt", checkout));
  pool.drop("e", inWorktree("echo e > e.txt; exit 1", lands));
}

/** As a person does it at a terminal, where git starts a pager. */
function atTerminal({ pool }: Place, command: string): string {
  const { GIT_PAGER: _git, PAGER: _pager, ...env } = process.env;
  return execFileSync("script", ["-qec", command, "/dev/null"], {
    cwd: pool.dir,
    encoding: "utf8",
    env: { ...env, TERM: "xterm" },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** A file that git reads anew, through its filters. */
function touchUp({ worktree }: Place): void {
  fs.appendFileSync(join(worktree("hostile"), "README.md"), "more\n");
}

/** What the error of the landing sends people to. */
async function lookAround(scene: Place): Promise<void> {
  const { pool } = scene;
  touchUp(scene);
  expect(await pool.run(["review", "hostile", "--diff"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/x\.txt.*\n@@ /s),
  });
  expect(await pool.run(["worktrees", "ls"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("a run of hostile changed settings or hooks"),
  });
  const { error } = await pool.error("hostile.land");
  const [, command = ""] = /\((git [^()]+ --list)\)/.exec(String(error)) ?? [];
  expect(atTerminal(scene, command)).toContain("filter.e.clean=");
}

async function useVerbs({ pool }: Place): Promise<void> {
  await pool.run(["worktrees", "clean", "--dry-run"]);
  await pool.run(["worktrees", "clean", "hostile", "--ignored"]);
  await pool.run(["rescue"]);
  await pool.run(["rescue", "e", "--to", join(pool.dir, "rescued")]);
  pool.drop("waits", inWorktree("true"));
  await pool.run(["doctor", "--night"]);
}

test("none of the programs that a run names is started, in whichever repository it names them", async () => {
  const scene = await trapped();
  const { pool, repo, ran } = scene;
  await pool.result("hostile");
  goOn(scene);
  await (await pool.start(["--drain"])).ended;
  await lookAround(scene);
  await useVerbs(scene);
  expect(ran()).toEqual([]);
  // All of it was really done.
  expect((await pool.error("hostile.land")).error).toContain("changed settings or hooks");
  for (const id of ["b", "c", "d"])
    expect((await pool.result(`${id}.land`)).status).toBe("completed");
  const landed = repo.git(
    "-c",
    "core.fsmonitor=false",
    "cat-file",
    "-p",
    "mailchute/integration:README.md",
  );
  expect(landed).toBe(LINES.replace("2", "22").replace("8", "88").trimEnd());
  expect(fs.readFileSync(join(repo.dir, "d.txt"), "utf8")).toBe("d\n");
});

/** The door without its settings, its common directory and its options: what git did before. */
const BROKEN = `#!/bin/sh
unset GIT_COMMON_DIR GIT_PAGER GIT_EDITOR
n=$#
while [ $n -gt 0 ]; do
  word=$1; shift; n=$((n - 1))
  case $word in
    -c) shift; n=$((n - 1)) ;;
    --ignore-submodules=dirty | --no-ext-diff | --no-textconv) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec ${GIT} "$@"
`;

test("without the door they run: filters, merge drivers, hooks, monitors, those of a submodule and of a worktree", async () => {
  const bin = tempDir();
  fs.writeFileSync(join(bin, "git"), BROKEN, { mode: 0o755 });
  const scene = await trapped({ PATH: `${bin}${delimiter}${process.env["PATH"]}` });
  const { pool, ran } = scene;
  const ways = [
    "hook:reference-transaction",
    "main:core.fsmonitor",
    "main:filter.e.clean",
    "main:filter.e.smudge",
    "main:filter.p.process",
    "main:merge.e.driver",
    "persons-submodule:filter.e.clean",
    "worktree:filter.w.clean",
  ];
  goOn(scene);
  // It does not drain: with such filters the tree of the person is never clean.
  await pool.start();
  await pool.run(["review", "hostile", "--diff"]);
  await pool.run(["worktrees", "ls"]);
  const missing = (): string[] => ways.filter((way) => !ran().includes(way));
  await waitFor(() => missing().length === 0, { what: "each of these ways" }).catch(() => {});
  expect(missing()).toEqual([]);
});

test("without the door, review and worktrees ls run them; so does a look at the settings with a pager", async () => {
  const scene = await trapped();
  const { pool, repo, ran } = scene;
  expect(ran()).toEqual([]);
  atTerminal(scene, `git -C ${repo.dir} config --local --list`);
  expect(ran()).toEqual(["main:pager.config"]);
  const bin = tempDir();
  fs.writeFileSync(join(bin, "git"), BROKEN, { mode: 0o755 });
  scene.env["PATH"] = `${bin}${delimiter}${process.env["PATH"]}`;
  touchUp(scene);
  for (const verb of [
    ["review", "hostile"],
    ["worktrees", "ls"],
  ]) {
    fs.rmSync(join(pool.dir, "ran"));
    await pool.run(verb);
    expect(ran()).toEqual(expect.arrayContaining(["main:core.fsmonitor", "main:filter.e.clean"]));
  }
});

test("the table has each setting that this git knows as a program, and a new one is noticed", () => {
  const names = execFileSync(GIT, ["help", "--config"], { encoding: "utf8" }).split("\n");
  expect(missingWays(names)).toEqual([]);
  const fresh = [
    "gc.afterCommand",
    "sendemail.newCmd",
    "merge.<driver>.helper",
    "http.tokenProgram",
  ];
  expect(missingWays([...names, ...fresh])).toEqual(fresh);
});
