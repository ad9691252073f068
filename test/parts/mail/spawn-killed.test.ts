/** A process that is killed at one of its changing calls while it spawns an agent: there is one whole agent in the end, or none. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { listAgents } from "../../../src/parts/mail/agents/agents.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { startProgram } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { IS_WHOLE, sampleOfCalls } from "../../support/walks.ts";

/** Each run of this test tries so many calls; `npm run test:mail-kills` all. */
const SAMPLE = 4;
const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));

describe("a process that is killed while it spawns an agent, at one of its changing calls", () => {
  const REQUEST = "main@s.1.w/r1";

  async function spawnOnce(dir: string, plan: object, ...more: string[]) {
    const report = join(tempDir(), "report");
    const whole = { role: "main", root: dir, report, ...plan };
    const args = [join(dir, "state"), join(dir, "data"), REQUEST, ...more];
    const program = startProgram("spawns-agent.mjs", args, {
      env: { MAILCHUTE_CRASH: JSON.stringify(whole), NODE_OPTIONS: `--require ${HOOK}` },
    });
    const { signal } = await program.ended;
    const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
    const text = `${program.stdout()}${program.stderr()}`;
    return { calls: JSON.parse(last).count as number, isKilled: signal === "SIGKILL", text };
  }

  const agentsIn = (dir: string) =>
    listAgents(
      new MailFolder(
        { dataDir: join(dir, "data"), isDurable: false },
        { project: "app", branch: "main" },
      ),
    );
  const tasksIn = (dir: string): string[] => {
    const { mailbox } = stateTree(join(dir, "state"));
    const inbox = join(mailbox, "inbox");
    return fs.existsSync(inbox)
      ? fs.readdirSync(inbox).filter((name) => name.endsWith(".json"))
      : [];
  };

  it("the same request makes one whole agent, and a supervisor leaves no half one", async () => {
    const { calls } = await spawnOnce(tempDir(), { at: 0 });
    expect(calls).toBeGreaterThan(10);
    let kills = 0;
    for (const at of sampleOfCalls(calls, SAMPLE)) {
      const dir = tempDir();
      if ((await spawnOnce(dir, { at, act: "kill", when: "before" })).isKilled) kills++;
      // As when a person's command is killed: nobody asks again.
      if (at % 2 === 0) {
        await spawnOnce(dir, { at: 0 }, "--finish");
        expect(tasksIn(dir), `call ${at}`).toHaveLength(agentsIn(dir).length);
      }
      const { text } = await spawnOnce(dir, { at: 0 });
      expect(text, `call ${at}`).toMatch(/^(new|known) coder-2\n$/);
      expect(agentsIn(dir), `call ${at}: ${text}`).toMatchObject([
        { name: "coder-2", inc: 1, spawned: { request: REQUEST, task: null } },
      ]);
      expect(tasksIn(dir), `call ${at}: ${text}`).toEqual([
        `${agentsIn(dir)[0]?.spawned?.task_id}.json`,
      ]);
    }
    if (IS_WHOLE) expect(kills).toBeGreaterThan(calls / 2);
  });
});
