/** What the file system refuses: a code of ours, the system's own, the place, and what to do. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { canMount, smallDisk } from "../support/small-disk.ts";
import { type Cli, newCli } from "./run-cli.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const NOBODY = 65_534;

/** The error that a command ends with, as `--json` tells it. */
async function errorOf(cli: Cli, args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await cli([...args, "--json"]);
  expect(code, stderr).toBe(74);
  expect(stdout).toBe("");
  return JSON.parse(stderr).error;
}

describe.skipIf(!canMount())("with a full disk", () => {
  test("a verb that writes says where and what to do, and init leaves no half file", async () => {
    const cli = newCli();
    const disk = smallDisk();
    const state = join(disk.dir, "state");
    expect((await cli(["init", state])).code).toBe(0);
    const [roadmap, config] = ["roadmap.yaml", "config.yaml"].map((name) => join(state, name));
    fs.rmSync(config ?? "");
    fs.writeFileSync(roadmap ?? "", "nodes:\n  - { id: build, exec: [make] }\n");
    disk.fill(0);
    const commands = [
      ["kv", "put", "build", "ctx.a", "b"],
      ["node", "set-status", "build", "done"],
      ["init"],
    ];
    for (const words of commands) {
      const error = await errorOf(cli, [...words, "--state", state]);
      expect(error).toMatchObject({
        code: "ErrIo",
        message: expect.stringContaining("ENOSPC"),
        path: expect.stringContaining(state),
        hint: expect.stringContaining("make room"),
      });
    }
    expect(fs.readdirSync(state).filter((name) => name.startsWith("config"))).toEqual([]);
    disk.free();
    const again = await cli(["init", state]);
    expect(again.stdout).toContain(`written     ${config}`);
    expect(fs.readFileSync(config ?? "", "utf8")).toContain("workers");
  });

  test("clean makes room also where not one more file can be made", async () => {
    const cli = newCli();
    const { dir } = smallDisk(100);
    const state = join(dir, "state");
    expect((await cli(["init", state])).code).toBe(0);
    const old = join(state, "mailbox", "outbox", "old_result.json");
    fs.writeFileSync(old, "{}");
    fs.utimesSync(old, 1, 1);
    const fresh = join(state, "mailbox", "outbox", "fresh_result.json");
    fs.writeFileSync(fresh, "{}");
    const fill = () => {
      for (let i = 0; ; i++) fs.writeFileSync(join(dir, `filler-${i}`), "");
    };
    expect(fill).toThrow("ENOSPC");
    const { stdout, stderr } = await cli(["clean", "--state", state]);
    expect(stdout, stderr).toContain("removed 1 results");
    expect([old, fresh].map((path) => fs.existsSync(path))).toEqual([false, true]);
  });
});

test("a state tree below a file is told with its path", async () => {
  const cli = newCli();
  const { code, stderr } = await cli(["ls", "--state", "/dev/null", "--json"]);
  expect(code).toBe(3);
  expect(JSON.parse(stderr).error).toMatchObject({
    code: "ErrNoState",
    path: "/dev/null",
    hint: expect.stringContaining("check --state"),
  });
});

test.skipIf(process.getuid?.() !== 0)(
  "another user's state tree is told with its path",
  async () => {
    const cli = newCli();
    expect((await cli(["init"])).code).toBe(0);
    fs.chmodSync(cli.dir, 0o755);
    fs.chmodSync(join(cli.dir, "state"), 0o755);
    for (const verb of ["status", "ls"]) {
      const { status, stderr } = spawnSync(process.execPath, [LAUNCHER, verb], {
        cwd: cli.dir,
        uid: NOBODY,
        gid: NOBODY,
        encoding: "utf8",
      });
      expect(stderr).toMatch(/^mailchute: ErrIo: .*EACCES/);
      expect(stderr).toContain(`  where: ${join(cli.dir, "state", "mailbox")}`);
      expect(stderr).toContain("check its owner and rights");
      expect(status).toBe(74);
    }
  },
);

test.skipIf(process.getuid?.() !== 0)(
  "who cannot read who supervises is not told that nobody does",
  async () => {
    const cli = newCli();
    expect((await cli(["init"])).code).toBe(0);
    const state = join(cli.dir, "state");
    for (const dir of [cli.dir, state]) fs.chmodSync(dir, 0o755);
    fs.writeFileSync(join(state, "supervisor.json"), "{}", { mode: 0o600 });
    const { status, stderr } = spawnSync(process.execPath, [LAUNCHER, "stop"], {
      cwd: cli.dir,
      uid: NOBODY,
      gid: NOBODY,
      encoding: "utf8",
    });
    expect(stderr).toMatch(/^mailchute: ErrIo: EACCES.*supervisor\.json/);
    expect(status).toBe(74);
  },
);

test.skipIf(process.getuid?.() !== 0)(
  "a task is put into the inbox where few threads may be had",
  () => {
    const cli = newCli();
    fs.chmodSync(cli.dir, 0o777);
    // Of its own: the limit is on all that a user runs.
    const uid = 54_321;
    const { status, stdout, stderr } = spawnSync(
      "bash",
      [
        "-c",
        'ulimit -c 0 -u 40; "$@"',
        "bash",
        process.execPath,
        LAUNCHER,
        "enqueue",
        "--id=a",
        "--title=x",
      ],
      { cwd: cli.dir, uid, gid: uid, encoding: "utf8" },
    );
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: "a\n" });
  },
);

test("from a directory that was deleted everything works but what needs it", async () => {
  const cli = newCli();
  expect((await cli(["init"])).code).toBe(0);
  const gone = join(cli.dir, "gone");
  fs.mkdirSync(gone);
  const inGone = (words: string) =>
    spawnSync(
      "sh",
      [
        "-c",
        `cd "$1" && rmdir "$1" && shift && exec "$@" ${words}`,
        "sh",
        gone,
        process.execPath,
        LAUNCHER,
      ],
      {
        encoding: "utf8",
      },
    );
  const state = join(cli.dir, "state");
  for (const words of [
    "help",
    "schema task",
    `status --state ${state}`,
    `config --state ${state}`,
  ]) {
    fs.mkdirSync(gone, { recursive: true });
    const { status, stderr } = inGone(words);
    expect(stderr, words).not.toContain("Err");
    expect(status, words).toBe(0);
  }
  fs.mkdirSync(gone);
  const relative = inGone("status");
  expect(relative.stderr).toContain("ErrNoState");
  expect(relative.stderr).toContain(join(gone, "state"));
  expect(relative.status).toBe(3);
});
