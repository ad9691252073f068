/** The page of a work: its lines, pictures, checks and buttons; hostile names and contents; what the server gives of the repository. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Diff, Page } from "../../../src/parts/web/page.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newPlace, type Place } from "../worktrees/place.ts";
import { blockOf, openWeb } from "./open-web.ts";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const HOSTILE = "<img src=x onerror=alert(1)>\u001b[2J\u202e";

/** Work of a shell script on a branch. */
async function work(script: string, more: object = {}): Promise<Place> {
  const agent = {
    name: "ada",
    kind: "exec",
    program: "sh",
    args: ["-ec", script],
    worktree: "auto",
    land: "branch",
    ...more,
  };
  const place = newPlace(`agents: [${JSON.stringify(agent)}]\n`);
  fs.writeFileSync(join(place.repo.dir, "logo.png"), PNG);
  place.repo.commit({ "cart.ts": "const a = 1;\nconst b = 2;\n", "check.sh": "true\n" });
  place.pool.drop("a", {
    agent: "ada",
    prompt: "write it",
    title: "The cart",
    cwd: "repo",
    max_attempts: 1,
    verify: ["echo", "12 passed"],
  });
  await (await place.pool.start(["--drain"])).ended;
  await place.pool.result("a");
  return place;
}

function sidesOf(page: Page): { main: Page; side: Page } {
  const { main, side } = blockOf(page, "split");
  return { main: { ...page, blocks: main }, side: { ...page, blocks: side } };
}

const diffOf = (page: Page): Diff => blockOf(sidesOf(page).main, "diff");

it("it has the changed lines with their words, the checks, and buttons", async () => {
  const { pool, repo } = await work(
    "sed -i 's/const b = 2/const b = 3/' cart.ts; seq 400 > package-lock.json",
  );
  const web = await openWeb(pool.state);
  const page = await web.page("/review/a");
  expect([page.title, page.command]).toEqual(["The cart", "mailchute review a"]);
  const diff = diffOf(page);
  expect(diff).toMatchObject({
    id: "a",
    commit: repo.git("rev-parse", "mailchute/a"),
    title: "2 changed files, +401 −1",
    can_comment: true,
  });
  const [cart, lock] = diff.files;
  expect(cart?.hunks).toEqual([
    {
      old: 1,
      new: 1,
      near: "",
      lines: [
        [" ", "const a = 1;"],
        ["-", "const b = 2;", [[10, 11]]],
        ["+", "const b = 3;", [[10, 11]]],
      ],
    },
  ]);
  expect(lock).toMatchObject({ why: "written by a program", hunks: [] });
  const { side } = sidesOf(page);
  expect(blockOf(side, "fold", "echo 12 passed")).toMatchObject({
    pill: { look: "good", word: "passed in the run" },
    blocks: [{ lines: expect.arrayContaining([expect.stringContaining("12 passed")]) }],
  });
  expect(blockOf(page, "acts").acts.map(({ text }) => text)).toEqual(["Approve and land…"]);
  const alone = diffOf(await web.page(lock?.to?.to ?? ""));
  expect(alone.files.map(({ path, hunks }) => [path, hunks[0]?.lines.length])).toEqual([
    ["package-lock.json", 400],
  ]);
});

it("names and lines of hostile files are inert text", async () => {
  const { pool } = await work(
    `printf '%s\\n' "$0" > "$0.txt"; git add -A`.replaceAll("$0", "$EVIL"),
    { env: { EVIL: HOSTILE } },
  );
  const page = await (await openWeb(pool.state)).page("/review/a");
  const [file] = diffOf(page).files;
  const inert = "<img src=x onerror=alert(1)>\\x1b[2J\\u{202e}";
  expect(file?.path).toBe(`${inert}.txt`);
  expect(file?.hunks[0]?.lines).toEqual([["+", inert]]);
});

it("pictures of the work, and nothing else of the repository, come by their ids", async () => {
  const { pool, repo } = await work("printf more >> logo.png; printf '<svg/>' > evil.png");
  const web = await openWeb(pool.state);
  const headers = await web.signIn();
  const ask = (id: string, more = "") =>
    web.ask({ path: `/api/picture?task=a&id=${id}${more}`, headers });
  const [evil, logo] = diffOf(await web.page("/review/a")).files;
  const [old = "", now = ""] = logo?.pictures ?? [];
  for (const id of [old, now]) {
    const answer = await ask(id);
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "image/png"]);
    expect(answer.headers["x-content-type-options"]).toBe("nosniff");
  }
  expect(evil?.path).toBe("evil.png");
  const others = [repo.git("rev-parse", "main:cart.ts"), repo.git("rev-parse", "main"), "main", ""];
  for (const id of [evil?.pictures?.[1] ?? "", ...others]) expect((await ask(id)).status).toBe(404);
  const without = await web.ask({ path: `/api/picture?task=a&id=${old}` });
  expect(without.status).toBe(401);
});

it("work that changes protected files lands only by a button that says so", async () => {
  const { pool, repo } = await work("echo false > check.sh", {
    land: "merge",
    protect: ["check.sh"],
  });
  await pool.error("a.land");
  const web = await openWeb(pool.state);
  const page = await web.page("/review/a");
  const [act, ...others] = blockOf(page, "acts").acts;
  expect(others).toEqual([]);
  expect(act).toMatchObject({ verb: "land-protected", text: expect.stringContaining("protected") });
  const { status } = await web.act({ verb: act?.verb, ids: act?.ids });
  expect(status).toBe(200);
  await (await pool.start(["--drain"])).ended;
  expect(repo.git("show", "mailchute/integration:check.sh")).toBe("false");
  const isLanded = async (): Promise<Page | undefined> => {
    const now = await web.page("/review/a");
    return now.blocks.some(({ kind }) => kind === "acts") ? undefined : now;
  };
  const after = await waitFor(isLanded, { what: "the page of what has landed" });
  const proof = blockOf(sidesOf(after).side, "fold", "Proof");
  expect(JSON.stringify(proof.blocks)).toContain('["accepted by","person"]');
});

it("without buttons nobody can comment", async () => {
  const { pool } = await work("echo x > x.txt");
  const web = await openWeb(pool.state, undefined, undefined, true);
  const page = await web.page("/review/a");
  expect(JSON.stringify(page.blocks)).not.toContain('"verb"');
  expect(diffOf(page).can_comment).toBe(false);
});
