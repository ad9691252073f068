/** A pool that is not root: files that it cannot read or remove are named, nothing is lost, and other work goes on. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { canDropRoot, NOBODY } from "../../support/other-user.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, placeOfNobody } from "./place.ts";

const FILES = {
  file: ["new", "echo secret > new; chmod 000 new"],
  tracked: ["README.md", "echo changed > README.md; chmod 000 README.md"],
  folder: ["d/", "mkdir d; echo secret > d/x; chmod 000 d"],
  listed: ["d/x", "mkdir d; echo secret > d/x; chmod 600 d"],
} as const;

test.skipIf(!canDropRoot())(
  "files that cannot be read are named, and stay; the rest of the work is saved",
  async () => {
    const { pool, worktree } = placeOfNobody();
    const more = { land: "merge" };
    for (const [id, [, script]] of Object.entries(FILES))
      pool.drop(id, inWorktree(`${script}; echo fine > fine`, more));
    pool.drop("failed", inWorktree("echo secret > new; chmod 000 new; exit 64"));
    await (await pool.start(["--drain"])).ended;
    const told = pool.alerts().map((one) => String(one["message"]));
    for (const [id, [name]] of Object.entries(FILES)) {
      const left = `${name} cannot be read`;
      expect(await pool.result(id)).toMatchObject({ landing: "pending", work_left: [left] });
      expect((await pool.error(`${id}.land`))["error"]).toContain(left);
      expect(told.filter((one) => one.includes(`task ${id} has completed`))).toEqual([
        expect.stringContaining(left),
      ]);
      expect((await pool.run(["worktrees", "clean", id])).stdout).toContain(left);
    }
    expect(await pool.error("failed")).toMatchObject({ work_left: ["new cannot be read"] });
    for (const id of [...Object.keys(FILES), "failed"])
      expect(fs.existsSync(worktree(id))).toBe(true);
  },
);

test.skipIf(!canDropRoot())(
  "closed folders go with their worktree; files of another user stay, and hold up no other",
  async () => {
    const { pool, repo, worktree } = placeOfNobody();
    // As Go leaves its modules.
    pool.drop(
      "closed",
      inWorktree("mkdir -p d/e; echo in > d/e/x; chmod 500 d/e d .", { land: "merge" }),
    );
    const waits = "mkdir d; touch ready; while ! test -e go; do sleep 0.1; done; rm ready go";
    if (process.getuid?.() === 0) pool.drop("other", inWorktree(waits));
    const running = await pool.start(["--drain"]);
    if (process.getuid?.() === 0) {
      const at = (name: string): string => join(worktree("other"), name);
      await waitFor(() => fs.existsSync(at("ready")), { what: "the run" });
      // As a container leaves it.
      fs.mkdirSync(at("d/of-root"));
      for (const name of ["d/of-root/readable", "go"])
        fs.writeFileSync(at(name), "x", { mode: 0o644 });
      fs.writeFileSync(at("secret"), "x", { mode: 0o600 });
    }
    await running.ended;
    expect(await pool.result("closed.land")).toMatchObject({ output: { landing: "landed" } });
    expect(fs.existsSync(worktree("closed"))).toBe(false);
    const trash = join(pool.state, "worktrees", ".removed");
    expect(fs.existsSync(trash)).toBe(false);
    if (process.getuid?.() !== 0) return;
    expect(await pool.result("other")).toMatchObject({ work_left: ["secret cannot be read"] });
    fs.rmSync(join(worktree("other"), "secret"));
    const cleaned = await pool.run(["worktrees", "clean", "other"]);
    expect(cleaned).toMatchObject({ code: 0, stdout: expect.stringContaining("other removed") });
    expect(cleaned.stderr).toMatch(
      /files of a removed worktree stay in .+ remove them as their owner/,
    );
    expect(fs.existsSync(worktree("other"))).toBe(false);
    const asked = [
      "--git-dir",
      join(repo.dir, ".git"),
      "show",
      "mailchute/other:d/of-root/readable",
    ];
    const asNobody = { cwd: repo.dir, uid: NOBODY, gid: NOBODY, encoding: "utf8" } as const;
    expect(execFileSync("git", asked, asNobody)).toBe("x");
    // What stays there holds up no later one.
    pool.drop("later", inWorktree("true"));
    await (await pool.start(["--drain"])).ended;
    await pool.result("later");
    expect(fs.existsSync(worktree("later"))).toBe(false);
    expect(pool.alerts().filter((one) => String(one["message"]).includes("later"))).toEqual([]);
  },
);
