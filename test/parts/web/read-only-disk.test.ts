/** A disk that went read-only: each page says so, and each button says what is wrong and what to do. Needs root. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newPool } from "../../support/pool.ts";
import { canMount, smallDisk } from "../../support/small-disk.ts";
import { blockOf, openWeb } from "./open-web.ts";

const CONFIG = "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n";
const PATHS = ["/", "/tasks?state=failed", "/tasks/bad", "/plan", "/questions", "/machine"];

describe.skipIf(!canMount())("a read-only disk", () => {
  it("is said on each page, refuses each button in words, and is no matter once it is mended", async () => {
    const disk = smallDisk();
    const pool = newPool({ config: CONFIG, parent: disk.dir });
    pool.drop("bad", { exec: ["false"] });
    await pool.run(["run", "--drain"]);
    pool.drop("waits", { exec: ["true"] });
    const nodes = [{ id: "ask", status: "needs_human", exec: ["true"] }];
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes }));
    const store = new QuestionStore(pool.state);
    const asked = { context: "", who: "ada", agents: [], asked_at_ms: 1, ends_at_ms: null };
    store.ask({ ...asked, id: "limit", question: "More?", expects: "limit" });
    const web = await openWeb(pool.state);
    await web.page("/");
    disk.setReadOnly();
    const words = `the disk of ${pool.state} is read-only: no task can start or end; do: it is mounted read-only: remount it, or move the state tree`;
    for (const path of PATHS) {
      const page = await web.page(path);
      expect([path, page.blocks[0]]).toEqual([path, { kind: "text", text: words, is_bad: true }]);
      // The rest of the page is there, too.
      expect(page.blocks.length, path).toBeGreaterThan(1);
    }
    const checks = blockOf(await web.page("/machine"), "table", "Checks").rows;
    expect(JSON.stringify(checks)).toContain("is mounted read-only");
    const acts = [
      { verb: "retry", ids: ["bad"] },
      { verb: "cancel", ids: ["waits"] },
      { verb: "pause" },
      { verb: "workers", number: 2 },
      { verb: "answer", ids: ["limit"], text: "yes" },
      { verb: "answer", ids: ["ask"], text: "blue" },
    ];
    for (const act of acts) {
      const { status, value } = await web.act(act);
      expect([act.verb, status]).toEqual([act.verb, 409]);
      expect(value.error, act.verb).toMatchObject({
        message: expect.stringMatching(/read-only|EROFS/),
        hint: expect.stringContaining("remount it"),
      });
    }
    disk.setWritable();
    expect((await web.page("/")).blocks[0]).not.toMatchObject({ text: words });
    expect((await web.act({ verb: "retry", ids: ["bad"] })).status).toBe(200);
  });
});
