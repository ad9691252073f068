/** A thousand generated scripts and escape sequences in titles, ids, logs and packets: each comes as inert text, or is refused. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Page } from "../../../src/parts/web/page.ts";
import { newPool } from "../../support/pool.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { openWeb, pagePath } from "./open-web.ts";

const COUNT = 1000;
const PARTS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "</pre></script><iframe srcdoc='<script>1</script>'>",
  "javascript:alert(1)",
  "{{constructor.constructor('alert(1)')()}}",
  "$" + "{alert(1)}",
  "&lt;script&gt;",
  "\"'`>",
  "\u001b]52;c;aGk=\u0007",
  "\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\",
  "\u001b]0;title\u0007",
  "\u001b[2J\u001b[31m",
  "\u001bP+q544e\u001b\\",
  "\u009b31m",
  "\u009d52;c;aGk=\u009c",
  "\u202egnp.exe",
  "\u2066hidden\u2069",
  "\u200b\u200d\ufeff",
  "\u2028\u2029",
  "\r\n\n",
  "\u0000\u0007\b\u007f",
  "\ud800",
  "event: page\ndata: {}\n\n",
  "../../secret",
  "%2e%2e%2f%00",
  "__proto__",
  "words",
];
/** What no text of a page may hold: what steers, is invisible, or turns the direction. */
const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

const random = seededRandom(20_261_125);
const hostile = Array.from({ length: COUNT }, () =>
  Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
    String(PARTS[Math.floor(random() * PARTS.length)]),
  ).join(""),
);

/** Nothing in the page steers, except in the values of fields, which are as they were typed. */
function expectInert(page: Page): void {
  JSON.stringify(page.blocks, (key, value: unknown) => {
    if (typeof value === "string" && key !== "value" && key !== "to" && key !== "q")
      // The lines of a script are lines of a text on the page.
      expect(value.replaceAll("\n", "")).not.toMatch(STEERS);
    return value;
  });
  for (const text of [page.title, page.command, page.health?.text ?? ""])
    expect(text).not.toMatch(STEERS);
}

/** All tables and logs of a page, to their end. */
async function eachPage(web: Awaited<ReturnType<typeof openWeb>>, path: string): Promise<Page[]> {
  const pages: Page[] = [];
  for (let next: string | undefined = path; next !== undefined && pages.length < 40; ) {
    const page: Page = await web.page(next);
    pages.push(page);
    const log = page.blocks.find((block) => block.kind === "log");
    const links = page.blocks.flatMap((block) => (block.kind === "links" ? block.links : []));
    next = log?.older?.to ?? links.find(({ text }) => text === "next page")?.to;
  }
  return pages;
}

it("in titles and file names of tasks", async () => {
  const pool = newPool();
  for (const [n, title] of hostile.entries()) {
    pool.drop(`task-${n}`, { title, exec: ["true"], group: title, agent: title });
    const name = title.replaceAll("/", "_").slice(0, 40);
    if (!name.includes("\0"))
      fs.writeFileSync(join(pool.inbox, `${name}-${n}.json`), JSON.stringify({ title }));
  }
  const web = await openWeb(pool.state);
  const pages = await eachPage(web, "/tasks");
  expect(pages.length).toBeGreaterThanOrEqual(10);
  for (const page of [...pages, await web.page("/")]) expectInert(page);
  for (let n = 0; n < COUNT; n += 40) expectInert(await web.page(`/tasks/task-${n}`));
});

it("in logs and packets", async () => {
  const pool = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
  const file = join(pool.dir, "hostile.txt");
  fs.writeFileSync(file, hostile.join("\n"));
  pool.drop("bad", { exec: ["sh", "-c", `cat ${file}; cat ${file} >&2; exit 1`] });
  await pool.run(["run", "--drain"]);
  const { run } = pool.errors()[0] as unknown as { run: string };
  fs.copyFileSync(file, join(pool.state, "runs", run, "packet.md"));
  const web = await openWeb(pool.state);
  for (const name of ["stdout.log", "stderr.log", "packet.md"]) {
    const pages = await eachPage(web, `/tasks/bad?file=${name}`);
    expect(pages.length).toBeGreaterThan(4);
    expect(JSON.stringify(pages)).toContain("onerror");
    for (const page of pages) expectInert(page);
  }
  for (const path of ["/", "/tasks?state=failed"]) expectInert(await web.page(path));
});

it("as paths, queries and ids of actions", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  const headers = await web.signIn();
  const before = fs.readdirSync(pool.state, { recursive: true });
  for (const [n, text] of hostile.entries()) {
    const word = encodeURIComponent(Buffer.from(text).toString());
    const paths = [`/tasks/${word}`, `/tasks?q=${word}`, `/tasks?after=${word}&state=${word}`];
    const path = pagePath(String(paths[n % paths.length]));
    const { status: found, body } = await web.ask({ path, headers });
    expect([200, 404]).toContain(found);
    if (found === 200) expectInert(JSON.parse(body) as Page);
    const { status } = await web.act({ verb: "retry", ids: [text] });
    expect([400, 409]).toContain(status);
  }
  // What retry makes when it opens a mailbox.
  const made = new Set(fs.readdirSync(pool.state, { recursive: true }).map(String));
  for (const name of before) made.delete(String(name));
  expect([...made].filter((name) => !/^mailbox(?:\/[a-z.]+)?$/.test(name))).toEqual([]);
});
