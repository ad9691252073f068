/** A pool that works while the pages are looked at: tasks in each state, with texts as people write them. One for all tests of a file. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { QuestionStore } from "../../../../src/questions/question-store.ts";
import { GIT_ENVIRONMENT, newRepository } from "../../../support/git-repository.ts";
import { newPool, type Pool } from "../../../support/pool.ts";
import { tempDir } from "../../../support/temp-dir.ts";
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
  { path: "/timeline?over=15m", title: "Timeline", image: "timeline", isAlways: true },
  { path: "/tasks", title: "Tasks: waiting", isAlways: true },
  { path: "/tasks?state=failed", title: "Tasks: failed", image: "tasks", isAlways: true },
  { path: "/tasks?state=done&q=crawl", title: "Tasks: done", isAlways: true },
  { path: "/plan", title: "Plan", image: "plan", isAlways: false },
  { path: "/plan?node=print", title: "Plan", isAlways: false },
  { path: "/agents", title: "Agents", image: "agents", isAlways: true },
  { path: "/questions", title: "Questions", image: "questions", isAlways: true },
  { path: "/review", title: "Review", isAlways: true },
  { path: "/schedules", title: "Schedules", isAlways: true },
  { path: "/schedules?name=nightly", title: "Schedule nightly", isAlways: false },
  { path: "/board", title: "Board", isAlways: true },
  { path: "/costs?by=agent", title: "Costs", image: "costs", isAlways: true },
  {
    path: "/review/mend-discount",
    title: "The discount is taken twice",
    image: "review",
    isAlways: false,
  },
  {
    path: "/review/mend-discount?file=package-lock.json",
    title: "The discount is taken twice",
    isAlways: false,
  },
  { path: "/machine", title: "Machine", image: "machine", isAlways: true },
  { path: "/tasks/build-docs", title: "Build the manual", image: "task", isAlways: false },
  {
    path: "/tasks/deploy-eu",
    title: "Bring the new version to the servers in Frankfurt",
    isAlways: false,
  },
  {
    path: "/tasks/fix-login",
    title: "The login loses the query string",
    image: "agent",
    isAlways: false,
  },
  { path: "/tasks/write-docs", title: "Write the page about logins", isAlways: false },
  { path: "/tasks/sync-a?file=file", title: "Bring the customers over", isAlways: false },
  { path: "/tasks/sync-a", title: "Bring the customers over", isAlways: false },
];

const program = (kind: string): string =>
  fileURLToPath(new URL(`../../../fixtures/programs/fake-${kind}.mjs`, import.meta.url));

const CART = `import type { Item } from "./item.ts";

/** What a cart costs, in cents. */
export function sumOf(items: Item[], discount: number): number {
  let sum = 0;
  for (const item of items) {
    sum += item.price * item.count * (1 - discount);
  }
  return sum * (1 - discount);
}

export function isEmpty(items: Item[]): boolean {
  return items.length == 0;
}
`;
/** A disk on white, and a white one. */
const LOGOS = [
  "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwCAMAAABg3Am1AAAABlBMVEX///8AcrJtpBqqAAAAUklEQVR42u3VMQoAIAwEwez/P21pIYgbVARzdaZLLhGVV0OPHF8hjLHzUwFOgBPgBEhhAUhhAUhR4BdwfvkuHJC/ad8avpd88/lu9e2d+A+VDWmVHAN2MdTXPAAAAABJRU5ErkJggg==",
  "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwCAMAAABg3Am1AAAABlBMVEUAcrL///+RsKpjAAAAUklEQVR42u3VMQoAIAwEwez/P21pIYgbVARzdaZLLhGVV0OPHF8hjLHzUwFOgBPgBEhhAUhhAUhR4BdwfvkuHJC/ad8avpd88/lu9e2d+A+VDWmVHAN2MdTXPAAAAABJRU5ErkJggg==",
] as const;
const REPAIR = [
  "sed -i 's/ \\* (1 - discount);$/;/; s/return sum;/return Math.round(sum * (1 - discount));/; s/ == 0/ === 0/' src/cart.ts",
  'mkdir -p test; printf \'import { sumOf } from "../src/cart.ts";\n\ntest("a discount is taken once", () => {\n  expect(sumOf([{ price: 100, count: 2 }], 0.1)).toBe(180);\n});\n\' > test/cart.test.ts',
  "git mv docs/sums.md docs/cart.md; rm notes.txt",
  'for n in $(seq 300); do echo "    \\"package-$n\\": \\"1.$n.0\\","; done > package-lock.json',
  `echo ${LOGOS[1]} | base64 -d > logo.png`,
].join("; ");

/** What the stand-ins for coding agents do, by a word of the prompt. */
const SCRIPT = {
  tasks: {
    discount: [
      [
        { think: "Where is the sum made? In src/cart.ts." },
        { say: "The discount is taken from each item and once more from the sum. I take it once." },
        { run: REPAIR },
        { say: "The sum is right now, and a test holds it." },
      ],
    ],
    redirect: [
      [
        { think: "The query string is lost when the login redirects." },
        { say: "I will run the tests first." },
        { run: "echo '✗ auth/redirect.test.ts > keeps the query string'; exit 1" },
        { say: "The redirect drops what follows the question mark. I mend it and run them again." },
        { run: "sleep 600" },
      ],
    ],
  },
  turns: [
    [
      { usage: { input: 912_400, cached: 803_000, output: 41_200, cost: 5.02 } },
      { say: "The page is written, and all its examples run." },
    ],
  ],
};

/** JSON is YAML, too. */
function configOf(home: string): string {
  const agent = (name: string, kind: string, mode: string): object => ({
    name,
    kind,
    program: program(kind),
    account: name,
    permissions: { mode },
    env: {
      FAKE_AGENT: JSON.stringify(SCRIPT),
      FAKE_AGENT_STATE: join(home, "fake"),
      HOME: home,
    },
  });
  return JSON.stringify({
    workers: 5,
    durability: "process",
    grace_ms: 500,
    retry: { max_attempts: 2, backoff_ms: 20, backoff_max_ms: 100 },
    agents: [agent("ada", "claude", "edit"), agent("bob", "codex", "full")],
    prices: { "gpt-5": { input_usd: 1, output_usd: 10 } },
  });
}
const DONE = 40;
const NIGHTLY = 'cron: "30 2 * * 1-5"\ntask: {exec: ["make", "nightly"]}\n';

let made: Promise<Pool> | undefined;

/** The same for each caller. */
export function busyPool(): Promise<Pool> {
  made ??= makePool();
  return made;
}

async function makePool(): Promise<Pool> {
  const home = tempDir(afterAll);
  const env = { ...GIT_ENVIRONMENT, XDG_STATE_HOME: home };
  const pool = newPool({ config: configOf(home), env, onEnd: afterAll });
  await pool.start();
  for (let n = 1; n <= DONE; n++)
    pool.drop(`crawl-${n}`, {
      title: `Read page ${n} of the catalogue`,
      exec: ["echo", `page ${n}`],
    });
  for (const name of ["sync-a", "sync-b", "sync-c"])
    pool.drop(name, {
      title: "Bring the customers over",
      exec: [
        "sh",
        "-c",
        "echo 400 of 12,000 customers; echo connect ECONNREFUSED 127.0.0.1:5432 >&2; exit 1",
      ],
    });
  pool.drop("no-such-program", { title: "Count the words", exec: ["word-counter", "--all"] });
  pool.drop("write-docs", {
    title: "Write the page about logins",
    agent: "ada",
    prompt: "Write the page about logins, and run its examples.",
    cwd: home,
  });
  const repo = newRepository(join(pool.dir, "shop"));
  for (const folder of ["src", "test", "docs"]) fs.mkdirSync(join(repo.dir, folder));
  fs.writeFileSync(join(repo.dir, "logo.png"), Buffer.from(LOGOS[0], "base64"));
  repo.commit({ "src/cart.ts": CART, "docs/sums.md": "# Sums\n", "notes.txt": "later\n" });
  pool.drop("mend-discount", {
    title: "The discount is taken twice",
    agent: "ada",
    prompt: "Mend the sum of the cart: the discount is taken twice.",
    cwd: "shop",
    worktree: "auto",
    verify: ["echo", "✓ test/cart.test.ts: a discount is taken once"],
  });
  await waitFor(() => pool.settledCount() === DONE + 6, { what: "the end of the quick tasks" });
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
  fs.mkdirSync(join(pool.state, "schedules"));
  fs.writeFileSync(join(pool.state, "schedules/nightly.yaml"), NIGHTLY);
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes: planNodes() }));
  new QuestionStore(pool.state).ask({
    id: "budget.agent.ada.usd.1",
    question: "ada has used $5 of $5 today. May it go on?",
    context:
      "It has 3 tasks left: write-faq, write-index, write-news.\nA number is a new limit in dollars.",
    who: "the budget of agent ada",
    agents: ["ada"],
    expects: "limit",
    asked_at_ms: Date.now(),
    ends_at_ms: null,
  });
  pool.drop("fix-login", {
    title: "The login loses the query string",
    agent: "bob",
    prompt: "Mend the redirect after the login: it loses the query string.",
    cwd: home,
  });
  await waitFor(() => running(pool) === RUNNING.size, { what: "the running tasks" });
  return pool;
}

/** A release, most of which is done. */
function planNodes(): object[] {
  const node = (id: string, status: string, after: string[] = [], more: object = {}): object => ({
    id,
    title: id.replaceAll("-", " "),
    status,
    dependencies: after,
    exec: ["true"],
    ...more,
  });
  const chapters = Array.from({ length: 9 }, (_, n) => `chapter-${n + 1}`);
  return [
    node("outline", "done"),
    ...chapters.map((id) => node(id, id === "chapter-7" ? "failed" : "done", ["outline"])),
    node("read-proofs", "open", chapters),
    node("choose-cover", "needs_human", ["outline"], { prompt: "Blue or green?" }),
    node("migrate-db", "done"),
    node("seed-data", "open", ["migrate-db", "choose-cover"]),
    node("print", "open", ["read-proofs", "choose-cover"]),
    node("release", "open", ["print", "seed-data"]),
  ];
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

const RUNNING = new Set<unknown>(["build-docs", "crawl-eu", "fix-login"]);
