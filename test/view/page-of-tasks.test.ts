/** Pages of tasks: complete and in order, at a cost that does not grow with the tray. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { StateTree } from "../../src/core/state-tree.ts";
import { type Page, type PageQuery, pageOfTasks } from "../../src/view/page-of-tasks.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { fill, MANY, newTree, readsOf } from "./many-files.ts";

function putAt(path: string, seconds: number, content: object = {}): void {
  fs.writeFileSync(path, JSON.stringify(content));
  fs.utimesSync(path, seconds, seconds);
}

async function allPages(tree: StateTree, query: PageQuery): Promise<Page[]> {
  const pages: Page[] = [];
  for (let after: string | undefined; ; ) {
    const page = await pageOfTasks(tree, after === undefined ? query : { ...query, after });
    pages.push(page);
    after = page.next;
    if (after === undefined) return pages;
  }
}

const idsOf = (pages: readonly Page[]): string[] =>
  pages.flatMap((page) => page.rows.map(({ id }) => id));

test("the pages of a tray have each task once, in the order of their times and then of their names", async () => {
  const random = seededRandom(7);
  for (let round = 0; round < 20; round++) {
    const tree = newTree();
    const made = Array.from({ length: 1 + Math.floor(random() * 40) }, (_, n) => ({
      id: `t${n}`,
      seconds: 1_000_000 + Math.floor(random() * 8),
    }));
    for (const { id, seconds } of made) {
      putAt(join(tree.mailbox, "inbox", `${id}.json`), seconds);
      putAt(join(tree.mailbox, "failed", `${id}_error.json`), seconds);
    }
    const limit = 1 + Math.floor(random() * 12);
    const byName = (a: string, b: string): number => (a < b ? -1 : 1);
    const oldest = made.toSorted((a, b) => a.seconds - b.seconds || byName(a.id, b.id));
    const latest = made.toSorted((a, b) => b.seconds - a.seconds || byName(`${a.id}_`, `${b.id}_`));
    const waiting = await allPages(tree, { state: "waiting", limit });
    expect(idsOf(waiting)).toEqual(oldest.map(({ id }) => id));
    expect(waiting.every((page) => page.isAll && page.rows.length <= limit)).toBe(true);
    const failed = await allPages(tree, { state: "failed", limit });
    expect(idsOf(failed)).toEqual(latest.map(({ id }) => id));
  }
});

test("accepted tasks come by name, ready ones and running ones apart", async () => {
  const tree = newTree();
  const processing = join(tree.mailbox, "processing");
  for (const id of ["c", "a", "b"]) putAt(join(processing, `${id}@abc.1~ready.json`), 1000);
  putAt(join(processing, "r@abc.2~w-0123456789ab-1-1-1.json"), 1000);
  const ready = await allPages(tree, { state: "ready", limit: 2 });
  expect(ready.map(({ rows }) => rows.map(({ id }) => id))).toEqual([["a", "b"], ["c"]]);
  const running = await allPages(tree, { state: "running", limit: 2 });
  expect(running.map(({ rows }) => rows.map(({ id }) => id))).toEqual([["r"]]);
});

test("of a very large tray the latest tasks come first, page by page, and each page reads little", async () => {
  const tree = newTree();
  const outbox = join(tree.mailbox, "outbox");
  fill(outbox, "_result.json", MANY);
  const latest: string[] = [];
  const lines: string[] = [];
  for (let n = 0; n < 3000; n++) {
    const id = `new-${n}`;
    putAt(join(outbox, `${id}_result.json`), 1_700_000_000 + n, { task: { title: id } });
    latest.unshift(id);
    for (const event of ["selected", "started", "completed"])
      lines.push(JSON.stringify({ event, task_id: id, message: "x".repeat(100) }));
    // What has gone from the tray since then has no row.
    lines.push(
      `{"event":"completed","task_id":"gone-${n}"}`,
      '{"event":"completed","task_id":"../x"}',
    );
  }
  fs.writeFileSync(tree.events, `${lines.join("\n")}\n{"event":"compl`);
  let after: string | undefined;
  for (let shown = 0; shown < latest.length; shown += 300) {
    let page: Page | undefined;
    const reads = await readsOf(async () => {
      const query = { state: "done", limit: 300 } as const;
      page = await pageOfTasks(tree, after === undefined ? query : { ...query, after });
    });
    expect(page?.rows.map(({ title }) => title)).toEqual(latest.slice(shown, shown + 300));
    expect(page?.isAll).toBe(false);
    expect(reads.names).toBeLessThanOrEqual(10_000);
    expect(reads.stats).toBeLessThanOrEqual(1000);
    expect(reads.opened).toBeLessThanOrEqual(302);
    after = page?.next;
  }
  // Then come some of the others.
  const rest = await pageOfTasks(tree, { state: "done", limit: 20_000, ...(after && { after }) });
  expect(rest.rows.length).toBeGreaterThanOrEqual(7000);
  expect(rest.rows.some(({ id }) => id.startsWith("new"))).toBe(false);
  expect(rest).toMatchObject({ next: undefined, isAll: false });
  await findsByPrefix(tree);
});

test("a short journal hides no newer record of a program that writes none", async () => {
  const tree = newTree();
  const failed = join(tree.mailbox, "failed");
  fill(failed, "_error.json", 10_001);
  const line = (id: string): string => `{"event":"failed","task_id":"${id}"}\n`;
  fs.writeFileSync(tree.events, line("old-7") + line("known-1") + line("old-9"));
  putAt(join(failed, "known-1_error.json"), 1_700_000_000);
  for (const name of fs
    .readdirSync(failed)
    .slice(0, 20)
    .filter((one) => one.startsWith("old"))) {
    fs.rmSync(join(failed, name));
    putAt(join(failed, name), 1_800_000_000);
  }
  const { rows, isAll } = await pageOfTasks(tree, { state: "failed", limit: 50 });
  const seconds = rows.map((row) => (row.time_ms ?? 0) / 1000);
  expect(isAll).toBe(false);
  expect(rows).toHaveLength(50);
  expect(seconds[0]).toBe(1_800_000_000);
  expect(rows.map(({ id }) => id)).toContain("known-1");
  expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
  expect(new Set(rows.map(({ id }) => id)).size).toBe(50);
});

/** All names are passed over in small steps, and only what fits is looked at. */
async function findsByPrefix(tree: StateTree): Promise<void> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  let page: Page | undefined;
  const reads = await readsOf(async () => {
    page = await pageOfTasks(tree, { state: "done", limit: 5, idPrefix: "new-299" });
  });
  isOver = true;
  if (MANY < 1_000_000) {
    expect(page?.rows.map(({ id }) => id).slice(0, 2)).toEqual(["new-2999", "new-2998"]);
    expect(page?.isAll).toBe(true);
    expect(reads).toMatchObject({ stats: 11, opened: 5 });
  }
  expect(turns).toBeGreaterThan(Math.min(MANY, 1_000_000) / 512 - 1);
  expect(reads.names).toBeLessThanOrEqual(1_000_000);
}
