/** A pool that works while the pages are looked at: tasks in each state, with texts as people write them. One for all tests of a file. */
import { afterAll } from "vitest";
import { newPool, type Pool } from "../../../support/pool.ts";
import { waitFor } from "../../../support/wait-for.ts";

export interface PageOfPool {
  path: string;
  /** Its heading. */
  title: string;
  /** The name of its picture in the documents. */
  image?: string;
  /** An empty pool has it, too. */
  isAlways: boolean;
}

export const PAGES: readonly PageOfPool[] = [
  { path: "/", title: "Overview", image: "overview", isAlways: true },
  { path: "/tasks", title: "Tasks: waiting", isAlways: true },
  { path: "/tasks?state=failed", title: "Tasks: failed", image: "tasks", isAlways: true },
  { path: "/tasks?state=done&q=crawl", title: "Tasks: done", isAlways: true },
  { path: "/tasks/build-docs", title: "build-docs", image: "task", isAlways: false },
  { path: "/tasks/deploy-eu", title: "deploy-eu", isAlways: false },
  { path: "/tasks/sync-a", title: "sync-a", isAlways: false },
];

const CONFIG = `
workers: 3
durability: process
retry: {max_attempts: 2, backoff_ms: 20, backoff_max_ms: 100}
`;
const DONE = 40;

let made: Promise<Pool> | undefined;

/** The same for each caller. */
export function busyPool(): Promise<Pool> {
  made ??= makePool();
  return made;
}

async function makePool(): Promise<Pool> {
  const pool = newPool({ config: CONFIG, onEnd: afterAll });
  await pool.start();
  for (let n = 1; n <= DONE; n++)
    pool.drop(`crawl-${n}`, {
      title: `Read page ${n} of the catalogue`,
      exec: ["echo", `page ${n}`],
    });
  for (const name of ["sync-a", "sync-b", "sync-c"])
    pool.drop(name, {
      title: "Bring the customers over",
      exec: ["sh", "-c", "echo connect ECONNREFUSED 127.0.0.1:5432 >&2; exit 1"],
    });
  pool.drop("no-such-program", { title: "Count the words", exec: ["word-counter", "--all"] });
  await waitFor(() => pool.settledCount() === DONE + 4, { what: "the end of the quick tasks" });
  pool.drop("build-docs", { title: "Build the manual", exec: ["sh", "-c", BUILD] });
  pool.drop("crawl-eu", {
    title: "Read the whole catalogue",
    exec: ["sh", "-c", "echo '::progress 97 page 9,702 of 10,000'; exec sleep 600"],
  });
  pool.drop("deploy-eu", {
    title: "Bring the new version to the servers in Frankfurt",
    exec: ["true"],
    metadata: { dependencies: ["build-docs"] },
  });
  await waitFor(() => pool.workers().length > 0 && running(pool) === 2, {
    what: "two running tasks",
  });
  return pool;
}

const BUILD = String.raw`
printf '\033[1m> manual build\033[0m\n'
for n in 1 2 3 4 5 6; do printf '\033[32m✓\033[39m chapter-%s.md \033[2m%s0 ms\033[22m\n' $n $n; done
printf '\033[31m✗ chapter-7.md\033[39m has a link to nowhere: \033[4;34m/setup\033[0m\n'
printf '\033[33mwarning\033[0m a title that draws over the screen was left out: \033]0;title\007\n'
echo '::progress 40 chapter 7 of 18'
exec sleep 600
`;

function running(pool: Pool): number {
  return pool.events().filter(({ event, task_id: id }) => event === "started" && RUNNING.has(id))
    .length;
}

const RUNNING = new Set<unknown>(["build-docs", "crawl-eu"]);
