/** A worktree is made where there is room for its usual size: a real pool, with its worktrees on a small disk. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { canMount, smallDisk } from "../../support/small-disk.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";

/** Of a disk of 1 MiB, of which an eighth must stay free. */
const SETUP = ["sh", "-ec", "mkdir -p build; head -c 500000 /dev/zero > build/made"];

async function begin(
  config = "",
  prepare: (place: Place) => void = () => {},
): Promise<{
  place: Place;
  dir: string;
  drop: (id: string, then: string) => void;
}> {
  const dir = join(smallDisk().dir, "worktrees");
  const place = newPlace(`worktrees_dir: ${dir}\n${config}`);
  const drop = (id: string, then: string): void => {
    const program = `echo x > ${id}.txt; ${then}`;
    place.pool.drop(id, inWorktree(program, { setup: SETUP, max_attempts: 1 }));
  };
  prepare(place);
  await place.pool.start(["--workers", "1"]);
  return { place, dir, drop };
}

const namesIn = (dir: string): string[] =>
  fs.readdirSync(dir).filter((name) => !name.startsWith("."));

test.skipIf(!canMount())(
  "while there is no room for a new worktree, those of ended tasks go, and branches with work that has not landed stay",
  async () => {
    const { place, dir, drop } = await begin();
    const { pool, repo } = place;
    for (const id of ["a", "b", "c"]) {
      drop(id, "commit");
      await pool.result(id);
      expect(namesIn(dir)).toEqual([id]);
      expect(repo.git("show", `mailchute/${id}:${id}.txt`)).toBe("x");
    }
    expect(pool.errors()).toEqual([]);
  },
);

test.skipIf(!canMount())(
  "a new worktree waits at a gate while ended ones hold files that no branch has, and ended ones are looked at again",
  async () => {
    const { place, dir, drop } = await begin();
    const { pool } = place;
    drop("fails", "exit 1");
    await pool.error("fails");
    const waits = async (id: string): Promise<string> => {
      drop(id, "exit 1");
      return waitFor(
        async () => {
          const { stdout } = await pool.run(["why", id]);
          return stdout.includes("a worktree usually takes") ? stdout : undefined;
        },
        { what: `${id} waits for room` },
      );
    };
    expect(await waits("next")).toContain("make room on the disk");
    expect((await pool.run(["status"])).stdout).toContain("a worktree usually takes");
    await pool.run(["worktrees", "clean", "fails"]);
    await pool.error("next");
    await waits("last");
    // It holds nothing any more, but takes the room as before.
    fs.rmSync(join(dir, "next", "next.txt"));
    const longAgo = new Date(Date.now() - 3_600_000);
    fs.utimesSync(join(dir, ".room", "tidied"), longAgo, longAgo);
    await pool.error("last");
    expect(namesIn(dir)).toEqual(["last"]);
  },
);

/** Commits its first half and asks; with an answer it needs that half. */
const ASKS = `
if ! test -e first.txt; then
  echo half > first.txt; git add -A; git -c user.name=x -c user.email=x@x commit -qm half
  echo '<result>{"status": "checkpoint", "checkpoint": {"question": "Go on?"}}</result>'
else
  cat first.txt > second.txt; git add -A; git -c user.name=x -c user.email=x@x commit -qm whole
  echo '<result>{"status": "success"}</result>'
fi
`;

test.skipIf(!canMount())(
  "a node that waits for an answer gives its room to another task, and goes on with its commits in a new worktree",
  async () => {
    const agent = { name: "asks", kind: "exec", program: "sh", args: ["-ec", ASKS] };
    const more = { phases: ["IMPLEMENT"], worktree: "auto", setup: SETUP };
    const { place, dir, drop } = await begin(
      `agents: [${JSON.stringify({ ...agent, ...more })}]\n`,
      ({ pool, repo }) =>
        fs.writeFileSync(
          join(pool.state, "roadmap.yaml"),
          `nodes: [{ id: node, agent: asks, cwd: ${repo.dir} }]\n`,
        ),
    );
    const { pool, repo } = place;
    await waitFor(async () => (await pool.run(["status"])).stdout.includes("Go on?"), {
      what: "the question",
    });
    expect(namesIn(dir)).toEqual(["node"]);
    drop("other", "commit");
    await pool.result("other");
    expect(namesIn(dir)).toEqual(["other"]);
    expect(repo.git("show", "mailchute/node:first.txt")).toBe("half");
    expect(await pool.run(["answer", "node", "yes"])).toMatchObject({ code: 0 });
    await waitFor(
      () => repo.git("ls-tree", "--name-only", "mailchute/node").includes("second.txt"),
      { what: "the second half" },
    );
    expect(repo.git("show", "mailchute/node:second.txt")).toBe("half");
    expect(repo.git("log", "--format=%s", "-2", "mailchute/node")).toBe("whole\nhalf");
  },
);
