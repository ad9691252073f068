/**
 * A scope of 100,000 messages: how long commands and the turns of a supervisor take. The limits grow with the load of the machine.
 * `npm run test:mail-speed`, on a free machine, asks for the goals themselves and prints all figures.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { type Draft, send } from "../../../src/parts/mail/send/send.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { indexFull } from "../../../src/parts/mail/store/write-indexes.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import { endOfFile, tempDir } from "../../support/temp-dir.ts";
import { timeLimitMs } from "../../support/time-limit.ts";
import { waitFor } from "../../support/wait-for.ts";
import { fillScope } from "./many-messages.ts";

const isExact = process.env["MAILCHUTE_MAIL_SPEED"] === "1";
const COUNT = 100_000;
/** A person has as many unread messages, from the first one on. */
const UNREAD = 1000;
const COMMAND_MS = 100;
const TURN_MS = 5;
/** A busy machine makes everything slower, and the processor's own caches cold. */
const limitMs = (ms: number): number => (isExact ? ms : 3 * timeLimitMs(ms));
const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));

const onEnd = endOfFile();
let template: string;

beforeAll(async () => {
  template = join(tempDir(onEnd), "state");
  fs.mkdirSync(join(template, "mailbox", "inbox"), { recursive: true, mode: 0o700 });
  fs.writeFileSync(join(template, "config.yaml"), "durability: process\ndata: .\n");
  const folder = new MailFolder({ dataDir: template, isDurable: false }, OUTSIDE);
  const human = { to: ["unknown:main:human"] };
  fillScope(folder, COUNT, ["ann", "bob"], (n) => (n % (COUNT / UNREAD) === 0 ? human : {}));
  await indexFull(folder);
});

it("a command takes little more than the start of the program", () => {
  const scope = ["--scope", "unknown:main"];
  const commands = {
    "--version": ["--version"],
    say: ["say", "hello", "--to", "ann", ...scope],
    "say --id": ["say", "hello", "--to", "ann", "--id", "own-1", ...scope],
    "messages --unread": ["messages", "--unread", ...scope],
    "messages --unread --mentions": ["messages", "--unread", "--mentions", "zoe", ...scope],
    "messages --last": ["messages", "--last", "20", ...scope],
    mail: ["mail", ...scope],
    agents: ["agents", ...scope],
  };
  const env = { ...process.env, MAILCHUTE_STATE: template };
  const timeOf = (args: string[]): number => {
    const fromMs = performance.now();
    const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], { env });
    const tookMs = performance.now() - fromMs;
    expect(status, String(stderr)).toBe(0);
    if (args[1] === "--unread" && args[2] === "--scope")
      expect(String(stdout).match(/^\d+ {2}/gm)).toHaveLength(UNREAD);
    return tookMs;
  };
  const times = new Map<string, number[]>();
  // By turns, so that all of them meet the same load.
  for (let round = 0; round < (isExact ? 9 : 3); round++)
    for (const [name, args] of Object.entries(commands))
      times.set(name, [...(times.get(name) ?? []), timeOf(args)]);
  // The median; on a machine with other work the least, which that work has disturbed least.
  const figureOf = (all: readonly number[] = []): number =>
    [...all].sort((a, b) => a - b)[isExact ? all.length >> 1 : 0] ?? 0;
  const startMs = figureOf(times.get("--version"));
  const more = Array.from(times, ([name, all]) => [name, Math.round(figureOf(all) - startMs)]);
  process.stdout.write(
    `mail speed: start ${Math.round(startMs)} ms, more (ms): ${more.join(" ")}\n`,
  );
  for (const [name, moreMs] of more) expect(moreMs, String(name)).toBeLessThan(limitMs(COMMAND_MS));
});

it("no turn of a supervisor is long: while 200 messages come in a second, also for its agent, and 30 files of the post", async () => {
  const file = join(tempDir(), "turns");
  const agent = { name: "claude", kind: "claude", program: programPath("fake-claude.mjs") };
  const pool = newPool({
    config: `${QUICK_CONFIG}mail_enabled: true\ndata: .\nagents: ${JSON.stringify([agent])}\n`,
    env: { NODE_OPTIONS: `--import ${programPath("report-turns.mjs")}`, TURNS_FILE: file },
  });
  fs.cpSync(join(template, "scopes"), join(pool.state, "scopes"), { recursive: true });
  const store = { dataDir: pool.state, isDurable: false };
  const { pid } = await pool.start();
  const post = join(pool.state, "post");
  await waitFor(() => fs.existsSync(join(post, "inbox")), { what: "the first look" });

  async function turnsOf(what: string, work: () => Promise<void>): Promise<number[]> {
    fs.rmSync(file, { force: true });
    process.kill(pid, "SIGUSR2");
    await work();
    process.kill(pid, "SIGUSR2");
    await waitFor(() => fs.existsSync(file), { what: "the figures" });
    const turns: number[] = JSON.parse(fs.readFileSync(file, "utf8"));
    const shown = turns.slice(0, 5).map((ms) => ms.toFixed(1));
    process.stdout.write(`mail speed: ${what}: the longest turns (ms) ${shown.join(" ")}\n`);
    return turns;
  }
  async function sendFor(name: string): Promise<void> {
    const draft: Draft = { scope: OUTSIDE, from: "ann", via: "run", to: [name], text: "hello" };
    for (let n = 0; n < 200; n++) {
      send(store, draft, Date.now());
      await sleep(5);
    }
  }
  let count = 0;
  async function postFiles(): Promise<void> {
    for (let n = 0; n < 30; n++) {
      const body = { from_agent: "ci", to: "zoe", content: "red" };
      fs.writeFileSync(join(pool.dir, "staged"), JSON.stringify(body));
      fs.renameSync(join(pool.dir, "staged"), join(post, "inbox", `p${count++}.json`));
    }
    const outbox = join(post, "outbox");
    const isDone = (): boolean => fs.readdirSync(outbox).length === count;
    await waitFor(isDone, { what: "the post", timeoutMs: 60_000 });
  }
  // The first time loads and compiles code.
  for (const round of ["first", "again"]) {
    const all = [
      await turnsOf(`200 messages for another one, ${round}`, () => sendFor("zoe")),
      await turnsOf(`200 messages for the agent, ${round}`, () => sendFor("claude")),
      await turnsOf(`30 files of the post, ${round}`, postFiles),
    ];
    for (const turns of round === "first" ? [] : all) {
      // Node collects garbage now and then.
      expect(turns[2]).toBeLessThan(limitMs(TURN_MS));
      expect(turns[0]).toBeLessThan(limitMs(4 * TURN_MS));
    }
  }
});
