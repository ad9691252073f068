/** The real programs with `mailchute mcp` as a server of theirs: what the model says by its tools. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newAgentBench } from "./agent-bench.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const SLOW_MS = 90_000;

it("claude says something by a tool, as the agent of its run", async () => {
  const server = { command: process.execPath, args: [BIN, "mcp"] };
  const config = JSON.stringify({ mcpServers: { mailchute: server } });
  const input = { to: ["june"], text: "by mcp" };
  const { pool, drop } = await newAgentBench(
    "claude",
    [{ tool: "mcp__mailchute__say", input }, { say: "Done." }],
    {
      agent: { args: ["--strict-mcp-config", `--mcp-config=${config}`] },
      settings: { data: "." },
    },
  );
  drop("a");
  await pool.start();
  expect(await pool.result("a", SLOW_MS)).toMatchObject({ status: "completed", output: "Done." });
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  expect([...new MessageReader(folder).next()]).toMatchObject([
    { from_agent: "coder", via: "run", content: "by mcp" },
  ]);
});

it("codex does, too, which keeps the variables of the run from its servers", async () => {
  const input = { to: ["june"], text: "by mcp" };
  const { pool, drop } = await newAgentBench(
    "codex",
    [{ tool: "mcp__mailchute__say", input }, { say: "Done." }],
    { settings: { data: "." } },
  );
  const home = join(pool.dir, "home", ".codex");
  fs.mkdirSync(home, { recursive: true });
  const server = [
    "[mcp_servers.mailchute]",
    `command = ${JSON.stringify(process.execPath)}`,
    `args = ${JSON.stringify([BIN, "mcp"])}`,
  ];
  fs.writeFileSync(join(home, "config.toml"), `${server.join("\n")}\n`);
  drop("a");
  await pool.start();
  expect(await pool.result("a", SLOW_MS)).toMatchObject({ status: "completed", output: "Done." });
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  expect([...new MessageReader(folder).next()]).toMatchObject([
    { from_agent: "coder", via: "run", content: "by mcp" },
  ]);
});
