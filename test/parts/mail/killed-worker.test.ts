/**
 * A worker that is killed at each of its calls that change something of the mail: the offer to the program, the proof that its model has
 * read it, and what the run itself says. `npm run test:mail-kills` strikes before and after every such call, this at one.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { breakBuild, type Change } from "../../support/broken.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { IS_WHOLE, sampleOfCalls } from "../../support/walks.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const HOOK = join(ROOT, "test", "crash", "hook.cjs");
const AT_ONCE = 2;
const LONG = { timeoutMs: 90_000 };
/** Calls in these folders count: offers and proofs, what the run leaves and is answered, messages and cursors. */
const ONLY = String.raw`^\S+ (say|drops|scopes|runs/\S+/answers)/`;

let kills = 0;

interface Strike {
  at: number;
  when: "before" | "after";
  /** The first call that counts; left out: each. */
  from?: string;
}

/** What is broken in the build, and must be found: by the calls from the first one on that `counted` matches. */
const BROKEN: Readonly<Record<string, Change & { counted: string }>> = {
  "mail counts as read when it is offered": {
    file: "dist/worker/read-values.cjs",
    counted: " say/",
    from: "this.box.noteOffer(n, this.newOffer(",
    to: "this.box.noteRead(n, 'runs/x'), this.box.noteOffer(n, this.newOffer(",
  },
  "what a run says is answered before it is recorded": {
    file: "dist/worker/drop.cjs",
    counted: " runs/[^ ]*/answers",
    from: "answer(sender.runDir, id, await taker.take(place, request()));",
    to: "const asked = request(); answer(sender.runDir, id, { id, to: [] }); node_fs.default.rmSync(path); await taker.take(place, asked);",
  },
};

/** A message for an agent, whose run says something. The first worker is struck, the next ones are left alone. */
async function strike(launcher: string, how: Strike): Promise<{ calls: number; faults: string[] }> {
  const report = join(tempDir(), "report");
  const env = { NODE_OPTIONS: `--require ${HOOK}`, MAILCHUTE_CRASH: "null" };
  const pool = newPool({ launcher, env });
  const plan = { role: "worker", act: "kill", only: ONLY, once: true, report, root: pool.state };
  env.MAILCHUTE_CRASH = JSON.stringify({ ...plan, ...how });
  const cli = `${process.execPath} ${launcher}`;
  // What speaks outlives the run, so that it gets its answer after the worker is killed, too.
  const note = (what: string): string => `echo said-$$ >> "${pool.dir}/${what}"`;
  const word = `${note("begun")}; ${cli} say done --to zoe --id said-$$ && ${note("acknowledged")}; ${note("ended")}`;
  const saying = `n=$(cat "${pool.dir}/ended" 2>/dev/null | wc -l)
    (setsid env -u MAILCHUTE_LEASE sh -c '${word}' > /dev/null 2>&1 < /dev/null &)
    while test "$(cat "${pool.dir}/ended" 2>/dev/null | wc -l)" = "$n"; do sleep 0.1; done`;
  const agent = {
    name: "ann",
    kind: "claude",
    program: programPath("fake-claude.mjs"),
    permissions: { mode: "full" },
    env: {
      FAKE_AGENT: JSON.stringify({ turns: [[{ run: saying }, { say: "ok" }]] }),
      FAKE_AGENT_STATE: join(pool.dir, "fake"),
    },
  };
  const config = `${QUICK_CONFIG}workers: 1\nmail_enabled: true\ndata: .\nagents: ${JSON.stringify([agent])}\n`;
  fs.writeFileSync(join(pool.state, "config.yaml"), config.replace("workers: 4\n", ""));
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  const draft = { id: "ask", scope: OUTSIDE, from: "human", via: "cli", to: ["ann"] } as const;
  send({ dataDir: pool.state, isDurable: false }, { ...draft, text: "look at X" }, Date.now());
  await pool.start();
  const exits = (): Numbered[] =>
    [...new MessageReader(folder).next()].filter(({ type }) => type === "exit");
  const isOver = (): boolean =>
    readCursor(folder, "ann").upto >= 1 &&
    pool.settledCount() > 0 &&
    exits().length >= pool.settledCount() &&
    notesIn(pool, "begun").length === notesIn(pool, "ended").length &&
    [pool.inbox, pool.processing].every((one) =>
      fs.readdirSync(one).every((name) => name === ".tmp"),
    );
  await waitFor(isOver, { what: "all mail to be read", ...LONG });
  await pool.stop();
  const lines = fs.existsSync(report) ? fs.readFileSync(report, "utf8").trimEnd().split("\n") : [];
  const said = lines.map((line) => JSON.parse(line) as { fault?: string; calls?: string[] });
  const calls = Math.max(0, ...said.map((one) => one.calls?.length ?? 0));
  const isStruck = said.some(({ fault }) => fault === "kill");
  const where = how.at === 0 ? "without a kill" : `${how.when} call ${how.at}`;
  const faults = faultsOf(pool, folder).map((fault) => `${where}: ${fault}`);
  if (isStruck) kills++;
  // A call that fails, as that for a folder that is there, has no end.
  else if (how.at > 0 && how.when === "before") faults.push(`${where}: there is no such call`);
  return { calls, faults };
}

function notesIn(pool: Pool, name: string): string[] {
  const path = join(pool.dir, name);
  const text = fs.existsSync(path) ? fs.readFileSync(path, "utf8") : "";
  return text.split("\n").filter((id) => id !== "");
}

/** What is wrong once all is over. */
function faultsOf(pool: Pool, folder: MailFolder): string[] {
  const faults: string[] = [];
  const told = join(pool.dir, "fake", "messages.jsonl");
  const seen = fs.existsSync(told) ? fs.readFileSync(told, "utf8") : "";
  // What the model was told, by its own notes.
  if (!seen.includes("> look at X"))
    faults.push("the message counts as read, and no model has seen it");
  const all = [...new MessageReader(folder).next()];
  const ofRuns = all.filter(({ via }) => via === "run");
  if (ofRuns.some(({ from_agent: from }) => from !== "ann")) faults.push("it has another sender");
  // Each run says it once, under an id of its own.
  const acknowledged = notesIn(pool, "acknowledged");
  if (acknowledged.length === 0) faults.push("no run has got an answer");
  for (const id of acknowledged)
    if (!ofRuns.some((one) => one.id === id)) faults.push(`${id} was acknowledged, and is lost`);
  if (new Set(ofRuns.map(({ id }) => id)).size < ofRuns.length) faults.push("it is there twice");
  const ids = [...pool.results(), ...pool.errors()].map(({ task_id: id }) => id);
  if (new Set(ids).size !== ids.length) faults.push(`a task settled twice: ${ids.join(" ")}`);
  // A wake-up that fails makes a new record, and each record at most one wake-up.
  if (ids.length > readCursor(folder, "ann").n) faults.push(`too many wake-ups: ${ids.join(" ")}`);
  const exits = all.filter(({ type }) => type === "exit").map(({ id }) => id);
  if (exits.length !== ids.length) faults.push(`exits ${exits.join(" ")} of ${ids.join(" ")}`);
  return faults;
}

async function strikeAll(launcher: string, left: Strike[], isEnough = false): Promise<string[]> {
  const faults: string[] = [];
  const next = async (): Promise<void> => {
    for (let how = left.shift(); how !== undefined; how = left.shift()) {
      if (isEnough && faults.length > 0) return;
      const found = (await strike(launcher, how)).faults;
      for (const fault of found) process.stdout.write(`${fault}\n`);
      faults.push(...found);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return faults;
}

const sidesOf = (at: number, more: Partial<Strike> = {}): Strike[] => [
  { at, when: "before", ...more },
  { at, when: "after", ...more },
];

describe("a worker that is killed at each of its calls for mail", () => {
  const launcher = join(ROOT, "bin", "mailchute.js");

  it("leaves mail that is seen, counts as read only then, and what the run says is recorded once", {
    timeout: 3_600_000,
  }, async () => {
    const { calls, faults: before } = await strike(launcher, { at: 0, when: "before" });
    expect(before).toEqual([]);
    expect(calls).toBeGreaterThan(10);
    const places = sampleOfCalls(calls, 1);
    const faults = await strikeAll(
      launcher,
      places.flatMap((at) => sidesOf(at)),
    );
    process.stdout.write(
      `mail: ${kills} kills of a worker at ${calls} calls, ${faults.length} faults\n`,
    );
    expect(faults).toEqual([]);
  });

  it.runIf(IS_WHOLE).each(Object.keys(BROKEN))(
    "%s: that is found",
    {
      timeout: 3_600_000,
    },
    async (name) => {
      const { counted, ...change } = BROKEN[name] ?? expect.fail(name);
      const broken = breakBuild(onTestFinished, change);
      const { calls, faults: before } = await strike(broken, {
        at: 0,
        when: "before",
        from: counted,
      });
      const places = Array.from({ length: calls }, (_, index) => index + 1);
      const strikes = places.flatMap((at) => sidesOf(at, { from: counted }));
      const faults = before.length > 0 ? before : await strikeAll(broken, strikes, true);
      expect(faults[0] ?? "not found").not.toBe("not found");
      process.stdout.write(`mail: caught: ${name}: ${faults[0]}\n`);
    },
  );
});
