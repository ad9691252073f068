/** The pages in a real browser, where Debian's Chromium is installed. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { newPool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { openWeb } from "./open-web.ts";

const CHROMIUM = "chromium";
const hasChromium = spawnSync(CHROMIUM, ["--version"]).status === 0;
const run = promisify(execFile);
/** How long the page may work, by its own clock (ms): for two looks. */
const BUDGET_MS = 2500;

/** What a page looks like when it has been drawn, as markup. */
async function drawn(link: string): Promise<string> {
  const profile = tempDir();
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
  const more = [`--virtual-time-budget=${BUDGET_MS}`, "--dump-dom", link];
  const { stdout } = await run(CHROMIUM, [...flags, ...more], { maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

describe.skipIf(!hasChromium)("in a browser", () => {
  it("a link opens the overview, with a failure and a link to its task", async () => {
    const pool = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
    pool.drop("bad", { exec: ["sh", "-c", "echo disk full >&2; exit 1"] });
    await pool.run(["run", "--drain"]);
    const web = await openWeb(pool.state);
    const page = await drawn(web.newLink());
    expect(page).toContain('<h1 id="title">Overview</h1>');
    expect(page).toContain('<a href="/tasks/bad">bad</a>');
    expect(page).toContain("disk full");
    expect(page).toContain('<code id="command">mailchute top</code>');
    expect(page).toMatch(/<a href="\/" aria-current="page">Overview<\/a>/);
    expect(page.match(/<caption>Running<\/caption>/g)).toHaveLength(1);
  });

  it("a deep link opens the page of a task, and markup in its words stays text", async () => {
    const pool = newPool({ config: "workers: 1\ndurability: process\n" });
    const markup = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    pool.drop("hostile", { title: markup, exec: ["printf", "%s\\n%s", markup, "last line"] });
    await pool.run(["run", "--drain"]);
    const web = await openWeb(pool.state);
    const page = await drawn(web.newLink().replace("/#", "/tasks/hostile#"));
    expect(page).toContain("<title>hostile · mailchute</title>");
    expect(page).toContain("&lt;img src=x onerror=");
    expect(page).toMatch(/&lt;\/script&gt;\nlast line<\/pre>/);
    expect(page).not.toContain("<img");
    expect(page.match(/<script/g)).toHaveLength(1);
  });

  it("without a link it says what to open, and shows nothing of the pool", async () => {
    const pool = newPool();
    pool.drop("secret-name", { exec: ["true"] });
    const web = await openWeb(pool.state);
    const page = await drawn(`http://127.0.0.1:${web.port}/tasks`);
    expect(page).toContain("open the link that `mailchute web` prints");
    expect(page).not.toContain("secret-name");
    const used = web.newLink();
    await drawn(used);
    expect(await drawn(used)).toContain("this link was used before, or is older than a minute");
  });
});
