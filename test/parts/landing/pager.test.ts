/** `review` on a real terminal: it shows the changed lines in the pager of the person, never in one that the repository names. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasTmux, MAILCHUTE, openTerminal, PROMPT, type Terminal } from "../../support/terminal.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";

const EVIL = "\u001b[31mred\u001b]0;title\u0007";

async function work(): Promise<Place> {
  const place = newPlace();
  const script = `seq 200 > long.txt; printf '%s\\n' '${EVIL}' > evil.txt; commit`;
  place.pool.drop("a", inWorktree(script, { land: "branch" }));
  await (await place.pool.start(["--drain"])).ended;
  return place;
}

function review({ pool }: Place, before: string): Terminal {
  const terminal = openTerminal(pool.dir, 80, 24);
  terminal.press(`${before} ${MAILCHUTE} review a --state '${pool.state}'`, "Enter");
  return terminal;
}

test.skipIf(!hasTmux)(
  "it opens less, whose keys work; a pager of the repository does not run",
  async () => {
    const place = await work();
    const ran = join(place.pool.dir, "ran");
    place.repo.git("config", "core.pager", `touch ${ran}; cat`);
    const terminal = review(place, "unset PAGER GIT_PAGER;");
    const sees = (text: string, what: string) =>
      waitFor(() => terminal.screen().includes(text), { timeoutMs: 30_000, what });
    await sees("evil.txt", "the first page");
    expect(terminal.screen()).not.toContain(`${PROMPT} \n`);
    terminal.press("G");
    await sees("+200", "the last line");
    terminal.press("q");
    await waitFor(() => terminal.screen().trimEnd().endsWith(PROMPT), { what: "the prompt" });
    expect(fs.existsSync(ran)).toBe(false);
  },
);

test.skipIf(!hasTmux)(
  "a pager of the environment gets all lines, without sequences of the files",
  async () => {
    const place = await work();
    const file = join(place.pool.dir, "paged");
    const terminal = review(place, `PAGER="cat > ${file}.new; mv ${file}.new ${file}"`);
    await waitFor(() => fs.existsSync(file), { timeoutMs: 30_000, what: "the text" });
    const text = fs.readFileSync(file, "utf8");
    expect(text).toContain("\u001b[32m+200\u001b[39m\n");
    expect(text).toContain("+\\x1b[31mred\\x1b]0;title\\x07");
    await waitFor(() => terminal.screen().trimEnd().endsWith(PROMPT), { what: "the prompt" });
  },
);

test("without a terminal the lines are printed with --diff alone", async () => {
  const { pool } = await work();
  const { stdout } = await pool.run(["review", "a"]);
  expect(stdout).toContain("+200 -0  long.txt");
  expect(stdout).not.toContain("\n+200\n");
  const { stdout: whole } = await pool.run(["review", "a", "--diff"]);
  expect(whole).toContain("\nlong.txt, new  +200 -0\n@@ 0 → 1 @@ \n+1\n");
  expect(whole).toContain("\n+200\n");
});
