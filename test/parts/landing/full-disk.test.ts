/** A full disk at a landing: it says so and waits, nothing is lost, and the work lands when there is room. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newRepository } from "../../support/git-repository.ts";
import { canMount, smallDisk } from "../../support/small-disk.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";

const TARGET = "mailchute/integration";

test.skipIf(!canMount()).each(["repository", "worktrees"])(
  "the disk of the %s is full",
  async (what) => {
    const disk = smallDisk();
    const isOfRepository = what === "repository";
    const config = isOfRepository ? "" : `worktrees_dir: ${join(disk.dir, "worktrees")}\n`;
    const { pool, repo: other } = newPlace(config);
    const repo = isOfRepository ? newRepository(join(disk.dir, "repo")) : other;
    const script = "seq 1 9000 > large.txt; commit";
    pool.drop("a", inWorktree(script, { cwd: repo.dir, verify: ["test", "-s", "large.txt"] }));
    await (await pool.start(["--drain"])).ended;
    const tip = repo.git("rev-parse", "mailchute/a");
    repo.git("checkout", "-q", "-b", TARGET);
    const old = repo.commit({ "other.txt": "other\n" }, "other work");
    repo.git("checkout", "-q", "main");
    expect((await pool.run(["land", "a"])).code).toBe(0);

    disk.fill(0);
    await pool.start();
    const told = await waitFor(
      () => pool.alerts().find(({ message }) => String(message).startsWith("a.land waits")),
      { what: "a landing that waits for room" },
    );
    const place = isOfRepository ? join(repo.dir, ".git") : join(disk.dir, "worktrees");
    expect(told["message"]).toContain("no room on the disk of ");
    expect(told["message"]).toContain(fs.realpathSync(place));
    expect((await pool.run(["show", "a.land"])).stdout).toMatch(/no room on the\s+disk/);
    expect(pool.errors()).toEqual([]);
    expect(repo.git("rev-parse", "mailchute/a", TARGET)).toBe(`${tip}\n${old}`);

    disk.free();
    expect((await pool.result("a.land")).output).toMatchObject({ landing: "landed" });
    await pool.stop();
    expect(pool.errors()).toEqual([]);
    expect(repo.git("log", "--format=%s", TARGET)).toBe("work\nother work\nfirst");
    expect(repo.git("show", `${TARGET}:large.txt`).split("\n")).toHaveLength(9000);
    expect(repo.git("fsck", "--strict", "--no-dangling")).toBe("");
    expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
  },
);
