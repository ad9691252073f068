/** Commands that steer the pool are in effect at once, however many others wait, or arrive. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { LastWord, Subject } from "../../../src/core/command.ts";
import { controlOf, type INITIAL_CONTROL } from "../../../src/core/saved-documents.ts";
import { openTrays, readAcknowledgement } from "../../../src/index.ts";
import type { Trays } from "../../../src/mailbox/files/trays.ts";
import { type CommandHooks, CommandInbox } from "../../../src/supervisor/control/command-inbox.ts";
import { newPool, type Pool, readJson } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

/** More than a supervisor carries out within a second. */
const FLOOD = Number(process.env["MAILCHUTE_FLOOD_COMMANDS"] ?? 5_000);

/** Drops cancels and rubbish into a directory until it is killed, but lets no more wait than a slow machine can remove again. */
const DROPPER = `
  const fs = require("node:fs");
  const [dir, staged] = process.argv.slice(1);
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let n = 0; ; n++) {
    while (n % 1000 === 0 && fs.readdirSync(dir).length > 20_000) Atomics.wait(sleeper, 0, 0, 10);
    fs.writeFileSync(staged, n % 4 === 0 ? "no command" : '{"command":"cancel","args":{"node":"t' + n + '"}}');
    fs.renameSync(staged, dir + "/f" + n + ".json");
  }
`;

function drop(pool: Pool, id: string, body: object): void {
  const staged = join(pool.dir, "command");
  fs.writeFileSync(staged, JSON.stringify(body));
  fs.renameSync(staged, join(pool.state, "control", "inbox", `${id}.json`));
}

/** Drops a command. @returns the ms until `control.json` says what it is to say */
async function effectOf(
  pool: Pool,
  id: string,
  body: object,
  isThere: (control: typeof INITIAL_CONTROL) => boolean,
): Promise<number> {
  const path = join(pool.state, "control.json");
  const beganMs = performance.now();
  drop(pool, id, body);
  await waitFor(() => isThere(controlOf(readJson(path))), { what: `the effect of ${id}` });
  return Math.round(performance.now() - beganMs);
}

it("pause, resume and set-workers are in effect while a flood of commands and rubbish still waits, and while it is dropped", async () => {
  const pool = newPool();
  await pool.start(["--workers", "1"]);
  const inbox = join(pool.state, "control", "inbox");
  const staged = join(pool.dir, "staged");
  fs.mkdirSync(staged);
  for (let n = 0; n < FLOOD; n++)
    fs.writeFileSync(
      join(staged, `w${n}.json`),
      n % 4 === 0 ? "no command" : `{"command":"cancel","args":{"node":"t${n}"}}`,
    );
  for (const name of fs.readdirSync(staged)) fs.renameSync(join(staged, name), join(inbox, name));
  const took: Record<string, number> = {};
  const steer = async (when: string): Promise<void> => {
    const isPaused = (control: typeof INITIAL_CONTROL): boolean => control.paused;
    took[`pause ${when}`] = await effectOf(pool, `p-${when}`, { command: "pause" }, isPaused);
    const resumed = effectOf(pool, `r-${when}`, { command: "resume" }, (c) => !isPaused(c));
    took[`resume ${when}`] = await resumed;
    const workers = when === "waiting" ? 2 : 3;
    const set = { command: "set-workers", args: { workers } };
    const isSet = (control: typeof INITIAL_CONTROL): boolean => control.max_workers === workers;
    took[`set-workers ${when}`] = await effectOf(pool, `w-${when}`, set, isSet);
  };
  await steer("waiting");
  const leftWaiting = fs.readdirSync(inbox).length;
  const dropper = spawn(process.execPath, ["-e", DROPPER, inbox, join(pool.dir, "one")]);
  const ended = once(dropper, "exit");
  onTestFinished(async () => {
    dropper.kill("SIGKILL");
    await ended;
  });
  await waitFor(() => fs.existsSync(join(inbox, "f1000.json")), { what: "the dropper" });
  await steer("dropped");
  expect(dropper.exitCode, "the dropper goes on").toBeNull();
  const left = fs.readdirSync(inbox).length;
  process.stdout.write(
    `flood of ${FLOOD}: ${JSON.stringify(took)} ms, left ${leftWaiting} and ${left}\n`,
  );
  // They overtook most of the flood: how long that takes depends on the machine.
  expect(leftWaiting).toBeGreaterThan(FLOOD / 4);
});

interface Control {
  isPaused: boolean;
  words: Map<Subject, LastWord>;
  /** Ids in the order in which they had an effect. */
  applied: string[];
}

/** What commands do to a pool that knows nothing but whether it is paused. */
function hooksOf(control: Control): CommandHooks {
  return {
    apply: ({ command }) => {
      control.applied.push(command.id);
      if (command.command === "pause") control.isPaused = true;
      if (command.command === "resume") control.isPaused = false;
      return {};
    },
    control: {
      isApplied: () => false,
      lastWord: (subject) => control.words.get(subject),
      noteLastWord: (subject, word) => void control.words.set(subject, word),
      forgetLastWords: () => control.words.clear(),
      save: () => true,
      keepApplied: () => {},
    },
    onError: (error) => {
      throw error;
    },
  };
}

let owners = 0;
const commandsOf = (trays: Trays, control: Control): CommandInbox =>
  new CommandInbox(trays, () => `owner-${++owners}`, [], hooksOf(control));

function put(trays: Trays, id: string, command: object): void {
  fs.writeFileSync(join(trays.inbox, `${id}.json`), JSON.stringify(command));
}

/** A clock that stands while a command is carried out, and moves on by so much with each tick. */
function slowTrays(): { trays: Trays; pass: (ms: number) => void } {
  let nowMs = 1000;
  const real = openTrays(join(tempDir(), "control"), { durability: "process" });
  const clock = { ...real.clock, monotonicMs: () => nowMs };
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { trays: { ...real, clock }, pass };
}

/** A listing that takes long, and has not come to anything yet. */
const endless = (pass: (ms: number) => void) => () => ({
  next: () => {
    pass(5);
    return [".x"];
  },
  close: () => {},
});

it("few commands are carried out in the order in which they came", async () => {
  const { trays } = slowTrays();
  const control: Control = { isPaused: false, words: new Map(), applied: [] };
  const ids = ["z", "y", "x", "w"];
  const kinds = ["pause", "cancel", "resume", "pause"];
  for (const [n, id] of ids.entries()) {
    put(trays, id, { command: kinds[n], args: { node: "t" } });
    await waitForTick(trays, id);
  }
  const commands = commandsOf(trays, control);
  do commands.work();
  while (commands.relookMs !== undefined);
  expect(control.applied).toEqual(ids);
  expect(control.isPaused).toBe(true);
});

/** Waits until the file system stamps a new file later than this one: coarse clocks give several the same time. */
async function waitForTick({ inbox, tmp }: Trays, id: string): Promise<void> {
  const { ctimeMs } = fs.statSync(join(inbox, `${id}.json`));
  const probe = join(tmp, "tick");
  await waitFor(
    () => {
      fs.writeFileSync(probe, "");
      return fs.statSync(probe).ctimeMs > ctimeMs;
    },
    { what: "a later stamp" },
  );
  fs.rmSync(probe);
}

it("the last look of a supervisor takes what came after its listing began", async () => {
  const { trays, pass } = slowTrays();
  const control: Control = { isPaused: false, words: new Map(), applied: [] };
  const { storage } = trays;
  let listings = 0;
  trays.storage = {
    ...storage,
    walk: (dir) => {
      const names = listings++ === 0 ? [["first.json"], []] : [fs.readdirSync(dir), []];
      return {
        next: () => {
          // Longer than a slice: this listing is still open when the second command comes.
          pass(5);
          return names.shift() ?? [];
        },
        close: () => {},
      };
    },
  };
  put(trays, "first", { command: "pause" });
  const commands = commandsOf(trays, control);
  commands.work();
  expect(listings).toBe(1);
  put(trays, "second", { command: "resume" });
  commands.lastLook();
  expect(control.applied).toEqual(["first", "second"]);
});

it("of those that steer one thing the last one decides, also when its supervisor dies before it saw the others", async () => {
  const { trays, pass } = slowTrays();
  const control: Control = { isPaused: false, words: new Map(), applied: [] };
  put(trays, "old-resume", { command: "resume" });
  await waitForTick(trays, "old-resume");
  for (let n = 0; n < 200; n++) put(trays, `c${n}`, { command: "cancel", args: { node: "t" } });
  put(trays, "old-pause", { command: "pause" });
  await waitForTick(trays, "old-pause");
  put(trays, "new-pause", { command: "pause" });
  const first = commandsOf(trays, control);
  // It learns of the last one alone, as where the others have not been looked at.
  const { storage } = trays;
  trays.storage = { ...storage, walk: endless(pass) };
  first.ring("new-pause.json");
  for (let n = 0; n < 10 && control.applied.length === 0; n++) {
    pass(60);
    first.work();
  }
  expect(control.applied).toEqual(["new-pause"]);
  // The supervisor is killed; what it had saved is all that the next one knows.
  first.close();
  trays.storage = storage;
  const next = commandsOf(trays, control);
  do {
    pass(1);
    next.work();
  } while (next.relookMs !== undefined);
  await waitFor(() => fs.readdirSync(trays.processing).length === 0, { what: "all answers" });
  expect(control.isPaused).toBe(true);
  expect(control.applied.filter((id) => !id.startsWith("c"))).toEqual(["new-pause"]);
  expect(control.applied).toHaveLength(201);
  for (const id of ["old-resume", "old-pause"])
    expect(readAcknowledgement(trays, id)).toMatchObject({
      status: "completed",
      result: { superseded_by: "new-pause" },
    });
  next.work();
  expect(control.words.size).toBe(0);
  put(trays, "r", { command: "resume" });
  next.ring("r.json");
  next.work();
  expect(control.isPaused).toBe(false);
});

it("a command that overtook others and whose supervisor died over it still comes after them", async () => {
  const { trays, pass } = slowTrays();
  const control: Control = { isPaused: false, words: new Map(), applied: [] };
  put(trays, "resume", { command: "resume" });
  await waitForTick(trays, "resume");
  put(trays, "pause", { command: "pause" });
  const longAgo = new Date(1000);
  fs.utimesSync(join(trays.inbox, "pause.json"), longAgo, longAgo);
  const { storage } = trays;
  trays.storage = { ...storage, walk: endless(pass) };
  const dying = new CommandInbox(trays, () => `owner-${++owners}`, [], {
    ...hooksOf(control),
    // Killed over it.
    apply: () => new Promise(() => {}),
  });
  dying.ring("pause.json");
  for (let n = 0; n < 5; n++) {
    pass(60);
    dying.work();
  }
  dying.close();
  control.words.clear();
  const [claimed = ""] = fs.readdirSync(trays.processing);
  const ready = claimed.replace(/1~w-.*\.json$/, "2~ready.json");
  fs.renameSync(join(trays.processing, claimed), join(trays.processing, ready));
  trays.storage = storage;
  const next = commandsOf(trays, control);
  next.takeReady(ready);
  do {
    pass(1);
    next.work();
  } while (next.relookMs !== undefined);
  expect(control.applied).toEqual(["pause"]);
  expect(control.isPaused).toBe(true);
  await waitFor(() => readAcknowledgement(trays, "resume"), { what: "the answer" });
  expect(readAcknowledgement(trays, "resume")).toMatchObject({
    result: { superseded_by: "pause" },
  });
});
