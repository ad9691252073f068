/** A pool whose agents work behind walls, outside /tmp, and for a user other than root where that can be. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { hasDebianPackage } from "../../support/debian-package.ts";
import { newRepository, type TestRepository } from "../../support/git-repository.ts";
import { canDropRoot, NOBODY } from "../../support/other-user.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";

export interface WalledPlace {
  pool: Pool;
  home: string;
  /** The machine's folder for temporary files. */
  temporary: string;
  repository: TestRepository;
  /** Whether the user of the pool can start this program. */
  canStart: (program: string) => boolean;
  /** Submits a program that works in a worktree of the repository. */
  submit: (id: string, program: string, more?: Record<string, unknown>) => void;
  /** Gives everything to the user of the pool. */
  own: () => void;
}

/** @param sandbox the setting, as YAML. @returns why this machine has no walls */
export function walledPlace(
  sandbox: string,
  env: Record<string, string> = {},
): WalledPlace | string {
  if (!hasDebianPackage("bubblewrap", "bwrap")) return "apt-get install bubblewrap";
  const parent = tempDir(undefined, "/var/tmp");
  fs.chmodSync(parent, 0o755);
  const home = join(parent, "home");
  const temporary = join(parent, "tmp");
  for (const dir of [home, temporary]) fs.mkdirSync(dir);
  const uid = process.getuid?.() === 0 && canDropRoot() ? { uid: NOBODY } : {};
  const repository = newRepository(join(parent, "repo"));
  const pool = newPool({
    parent,
    ...uid,
    env: { HOME: home, XDG_STATE_HOME: join(home, "state"), TMPDIR: temporary, ...env },
    config: `${QUICK_CONFIG}
roots: [${JSON.stringify(parent)}]
sandbox: ${sandbox}
agents:
  - {name: hands, kind: exec, program: ${process.execPath}, args: [-e, "eval(JSON.parse(require('fs').readFileSync(process.env.MAILCHUTE_TASK_FILE)).payload.program)"], worktree: auto}
`,
  });
  const own = (): void => {
    if (uid.uid !== undefined) giveTo(parent, uid.uid);
  };
  return {
    pool,
    home,
    temporary,
    repository,
    own,
    canStart(program) {
      const env = { ...process.env, HOME: home };
      return spawnSync(program, ["--version"], { stdio: "ignore", env, ...uid }).status === 0;
    },
    submit(id, program, more = {}) {
      const payload = { program };
      pool.drop(id, { agent: "hands", cwd: repository.dir, payload, prompt: "-", ...more });
    },
  };
}

function giveTo(path: string, uid: number): void {
  fs.lchownSync(path, uid, uid);
  if (!fs.lstatSync(path).isDirectory()) return;
  for (const name of fs.readdirSync(path)) giveTo(join(path, name), uid);
}

/** What its program has printed in all attempts; undefined until a line is whole. */
export function saidBy({ state }: Pool, id: string): string | undefined {
  const runs = join(state, "runs");
  if (!fs.existsSync(runs)) return undefined;
  const files = fs.readdirSync(runs, { recursive: true, encoding: "utf8" });
  const logs = files.filter((path) => path.includes(`/${id}@`) && path.endsWith("/stdout.log"));
  const text = logs.map((log) => fs.readFileSync(join(runs, log), "utf8")).join("");
  return text.endsWith("\n") ? text : undefined;
}
