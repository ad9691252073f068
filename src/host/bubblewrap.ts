/** Finds the program that builds walls around other programs, and whether this machine lets it. */
import { spawnSync } from "node:child_process";
import { findProgram } from "./find-program.ts";

const NAME = "bwrap";
const LIMIT_MS = 10_000;
type Bubblewrap = { program: string; fault?: undefined } | { fault: string };
let found: Bubblewrap | undefined;

/** Asked once in each process. @returns its path, or why this machine has no walls, with what to do */
export function findBubblewrap(): Bubblewrap {
  found ??= find();
  return found;
}

/** @returns why this machine has no walls; undefined when it has */
export function explainNoWalls(): string | undefined {
  return findBubblewrap().fault;
}

function find(): Bubblewrap {
  if (process.platform !== "linux")
    return { fault: "walls need Linux; sandbox: open works without them" };
  const program = findProgram(NAME, process.env["PATH"], "/");
  if (program === undefined) return { fault: "install bubblewrap (apt-get install bubblewrap)" };
  const asked = ["--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--proc", "/proc"];
  const argv = [...asked, "--dev", "/dev", "--tmpfs", "/run", "true"];
  const { error, status, stderr } = spawnSync(program, argv, { timeout: LIMIT_MS });
  if (status === 0) return { program };
  const said = stderr?.toString().trim().split("\n").at(-1) || error?.message || `${NAME} fails`;
  return {
    fault: `${said}: allow user namespaces (kernel.unprivileged_userns_clone, AppArmor, the options of the container)`,
  };
}
