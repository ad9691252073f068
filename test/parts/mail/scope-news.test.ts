/** What `watch` takes for news about agents whose records are made while it watches. */
import { expect, it } from "vitest";
import { createAgent } from "../../../src/parts/mail/agents/agents.ts";
import { moveCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { ScopeNews } from "../../../src/parts/mail/verbs/scope-news.ts";
import { tempDir } from "../../support/temp-dir.ts";

it("what an agent had read before is no news when its record is made, what it reads then is", async () => {
  const scope = { project: "alpha", branch: "main" };
  const folder = new MailFolder({ dataDir: tempDir(), isDurable: false }, scope);
  const atMs = Date.now();
  moveCursor(folder, "a1", 1, { by: "ack", atMs: atMs - 5000 });
  const news = new ScopeNews(folder);
  await createAgent(folder, { name: "a1", type: "codex", task: "t", status: "busy" }, atMs);
  expect(news.next().map(({ event }) => event)).toEqual(["new"]);
  moveCursor(folder, "a1", 2, { by: "run", atMs });
  expect(news.next()).toMatchObject([{ event: "read", agent: "a1", upto: 2 }]);
  moveCursor(folder, "a2", 2, { by: "run", atMs: atMs + 5000 });
  await createAgent(folder, { name: "a2", type: "codex", task: "t", status: "busy" }, atMs);
  expect(news.next().map(({ event }) => event)).toEqual(["new", "read"]);
});
