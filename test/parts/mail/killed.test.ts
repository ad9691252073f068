/** Processes that are killed at each of their changing calls: one that sends a message, and one that takes a message out of the post. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openTrays, type Trays } from "../../../src/mailbox/files/trays.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { type Program, startProgram } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { IS_WHOLE, sampleOfCalls } from "../../support/walks.ts";

const SCOPE = { project: "app", branch: "main" };
/** Each run of this test strikes at so many calls; `npm run test:mail-kills` at all. */
const SAMPLE = 3;
const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));

function readAll(dataDir: string): Numbered[] {
  return [...new MessageReader(new MailFolder({ dataDir, isDurable: false }, SCOPE)).next()];
}

/** What a sender printed of each message: whether it was new. */
function answersOf(program: Program): { word: string }[] {
  return [...program.stdout().matchAll(/^(sent|known) /gm)].map(([, word = ""]) => ({ word }));
}

/** A state tree with a message in its post. */
function newPost(): { state: string; dataDir: string; trays: Trays } {
  const state = tempDir();
  const trays = openTrays(join(state, "post"), { durability: "process" });
  const message = { from_agent: "ci", to: "june", content: "the build is red" };
  fs.writeFileSync(join(state, "staged"), JSON.stringify(message));
  fs.renameSync(join(state, "staged"), join(trays.inbox, "m1.json"));
  return { state, dataDir: join(state, "data"), trays };
}

describe("a sender that is killed at each of its changing calls", () => {
  /** Sends one message with an id. @param plan what `test/crash/hook.cjs` does to it @returns also how many changing calls it made */
  async function sendOnce(dataDir: string, plan: object): Promise<Program & { calls: number }> {
    const report = join(tempDir(), "report");
    const whole = { role: "main", root: dataDir, report, ...plan };
    const program = startProgram(
      "sends-messages.mjs",
      [dataDir, "bob", "1", "--ids", "m", "--durable", "--text", "6000"],
      { env: { MAILCHUTE_CRASH: JSON.stringify(whole), NODE_OPTIONS: `--require ${HOOK}` } },
    );
    await program.ended;
    const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
    return { ...program, calls: JSON.parse(last).count };
  }

  const acts = [{ act: "kill", when: "before" }, { act: "kill", when: "after" }, { act: "torn" }];
  it.each(acts)("by $act $when: sent again, it is there once and whole", async (act) => {
    const { calls } = await sendOnce(tempDir(), { at: 0 });
    expect(calls).toBeGreaterThan(10);
    let strikes = 0;
    for (const at of sampleOfCalls(calls, SAMPLE)) {
      const dataDir = tempDir();
      const struck = await sendOnce(dataDir, { at, ...act });
      if (struck.child.signalCode === "SIGKILL") strikes++;
      const before = readAll(dataDir).length;
      if (answersOf(struck).length > 0) expect(before).toBe(1);
      const again = await sendOnce(dataDir, { at: 0 });
      expect(answersOf(again), `call ${at}: ${again.stderr()}`).toMatchObject([
        { word: before === 1 ? "known" : "sent" },
      ]);
      expect(readAll(dataDir), `call ${at}`).toMatchObject([{ id: "m-0" }]);
    }
    // Only some calls write, and a call that fails has no end.
    const least = act.act === "torn" ? 1 : calls / 2;
    if (IS_WHOLE) expect(strikes).toBeGreaterThan(least);
  });
});

describe("a process that is killed while it takes a message, at each of its changing calls", () => {
  async function takeOnce(
    state: string,
    dataDir: string,
    plan: object,
  ): Promise<{ calls: number; isKilled: boolean; text: string }> {
    const report = join(tempDir(), "report");
    const whole = { role: "main", root: state, report, ...plan };
    const program = startProgram("takes-post.mjs", [state, dataDir], {
      env: { MAILCHUTE_CRASH: JSON.stringify(whole), NODE_OPTIONS: `--require ${HOOK}` },
    });
    const { signal } = await program.ended;
    const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
    const text = `${program.stdout()}${program.stderr()}`;
    return { calls: JSON.parse(last).count, isKilled: signal === "SIGKILL", text };
  }

  it.each(["before", "after"])("%s: the next one records it once and answers", async (when) => {
    const first = newPost();
    const { calls } = await takeOnce(first.state, first.dataDir, { at: 0 });
    expect(calls).toBeGreaterThan(10);
    let kills = 0;
    for (const at of sampleOfCalls(calls, SAMPLE)) {
      const { state, dataDir, trays } = newPost();
      const { isKilled } = await takeOnce(state, dataDir, { at, act: "kill", when });
      if (isKilled) kills++;
      const { text } = await takeOnce(state, dataDir, { at: 0 });
      expect(readAll(dataDir), `call ${at}: ${text}`).toMatchObject([{ id: "m1" }]);
      expect(fs.readdirSync(trays.outbox), `call ${at}`).toEqual(["m1_result.json"]);
      for (const dir of [trays.inbox, trays.processing]) expect(fs.readdirSync(dir)).toEqual([]);
    }
    if (IS_WHOLE) expect(kills).toBeGreaterThan(calls / 2);
  });
});
