/** A pool beside a repository, for tests of worktrees. */
import fs from "node:fs";
import { join } from "node:path";
import {
  GIT_ENVIRONMENT,
  makeObjectFolders,
  newRepository,
  type TestRepository,
} from "../../support/git-repository.ts";
import { NOBODY } from "../../support/other-user.ts";
import { newPool, type Pool, type PoolOptions, QUICK_CONFIG } from "../../support/pool.ts";

export interface Place {
  pool: Pool;
  repo: TestRepository;
  /** The environment of everything that the pool starts from now on. */
  env: Record<string, string>;
  /** Where the worktree of a task is. */
  worktree: (id: string) => string;
  /** `mailchute ARGS --json`, parsed. */
  ask: (...args: string[]) => Promise<{ code: number | null; json: never; stderr: string }>;
}

/** @param init more arguments of `git init` */
export function newPlace(config = "", more: PoolOptions = {}, init: readonly string[] = []): Place {
  const env: Record<string, string> = { ...GIT_ENVIRONMENT };
  const pool = newPool({ ...more, config: QUICK_CONFIG + config, env });
  // As in a shell that a git hook has started: none of our calls may obey these.
  Object.assign(env, {
    GIT_DIR: "/nowhere",
    GIT_WORK_TREE: "/nowhere",
    GIT_INDEX_FILE: "/nowhere",
  });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const repo = newRepository(join(pool.dir, "repo"), ...init);
  makeObjectFolders(repo);
  return {
    pool,
    repo,
    env,
    worktree: (id) => join(fs.realpathSync(pool.state), "worktrees", id),
    ask: async (...args) => {
      const { code, stdout, stderr } = await pool.run([...args, "--json"]);
      return { code, json: JSON.parse(stdout) as never, stderr };
    },
  };
}

/** As a person who is not root. */
export function placeOfNobody(): Place {
  if (process.getuid?.() !== 0) return newPlace();
  const place = newPlace("", { uid: NOBODY });
  const { dir } = place.repo;
  for (const path of [dir, ...fs.readdirSync(dir, { recursive: true }).map(String)])
    fs.lchownSync(path === dir ? dir : join(dir, path), NOBODY, NOBODY);
  return place;
}

/** A task that runs a shell script in a worktree of the repository. */
export function inWorktree(script: string, more: object = {}): Record<string, unknown> {
  const commit = "commit() { git add -A; git -c user.name=x -c user.email=x@x commit -qm work; }";
  return {
    exec: ["sh", "-ec", `${commit}; ${script}`],
    cwd: "repo",
    worktree: "auto",
    max_attempts: 1,
    ...more,
  };
}
