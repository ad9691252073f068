/** A pool whose agents `claude`, `codex` and `server` are stand-ins, which do what their prompts name. */
import fs from "node:fs";
import { join } from "node:path";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** A tool call that goes on until the test makes the file `go` in its folder. */
export const UNTIL_GO = "until test -e go; do sleep 0.1; done";

/**
 * @param tasks steps by a word of the prompt: see `fake-agent/script.mjs`
 * @param turns those of other prompts, as of a resume
 * @param more settings of all agents
 */
export function newTalkPool(
  tasks: Record<string, object[][]>,
  turns: object[][] = [[{ say: "ok" }]],
  more: object = {},
): Pool {
  const pool = newPool({ env: { XDG_STATE_HOME: join(tempDir(), "home") } });
  const agent = (kind: "claude" | "codex"): object => ({
    name: kind,
    kind,
    program: programPath(`fake-${kind}.mjs`),
    permissions: { mode: "full" },
    ...more,
    env: {
      FAKE_AGENT: JSON.stringify({ tasks, turns }),
      FAKE_AGENT_STATE: join(pool.dir, "fake"),
      CODEX_HOME: join(pool.dir, "fake"),
    },
  });
  const server = { ...agent("codex"), name: "server", mode: "app-server" };
  const agents = JSON.stringify([agent("claude"), agent("codex"), server]);
  fs.writeFileSync(join(pool.state, "config.yaml"), `${QUICK_CONFIG}agents: ${agents}\n`);
  return pool;
}
