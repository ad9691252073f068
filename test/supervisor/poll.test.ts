/** How soon a supervisor looks around again. Everything it looks at is a stand-in: the pace is what counts. */
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { RECOVER_MS } from "../../src/core/limits.ts";
import { openTrays } from "../../src/mailbox/files/trays.ts";
import type { Environment } from "../../src/supervisor/environment/environment.ts";
import { Poll, type PollParts } from "../../src/supervisor/poll.ts";
import { tempDir } from "../support/temp-dir.ts";

interface Around {
  sweepMs?: number;
  waiting?: number;
  running?: number;
  /** Names in `processing/`. */
  processing?: readonly string[];
  commands?: readonly string[];
  hasOthers?: boolean;
  onRecheck?: () => void;
}

const NOW_MS = 1_000_000;

function pollAmid(around: Around): { poll: Poll; facts: EventEmitter } {
  const dir = tempDir();
  const rounds = (files: readonly string[] = []) => ({
    list: () => files,
    round: () => Promise.resolve(),
  });
  const nothing = (): void => {};
  const env = {
    settings: { mailbox_enabled: true, sweep_ms: around.sweepMs ?? 60_000, stall_ms: 60_000 },
    trays: openTrays(join(dir, "mailbox")),
    controlTrays: openTrays(join(dir, "control")),
    facts: new EventEmitter(),
    wake: nothing,
  };
  const queue = {
    backlog: { size: around.waiting ?? 0 },
    scanner: { sweepDue: nothing },
    accepted: { size: around.running ?? 0, count: () => 0 },
    processing: { take: nothing },
    pool: {
      survey: nothing,
      ensure: nothing,
      workers: { hasOthers: around.hasOthers ?? false },
    },
  };
  const recovery = {
    taskRecovery: rounds(around.processing),
    commandRecovery: rounds(around.commands),
    commands: { takeReady: nothing },
  };
  const parts = {
    queue,
    recovery,
    slots: { share: nothing },
    completions: { recheckDependencies: around.onRecheck ?? nothing },
    journal: { read: () => false },
    watchers: { watchProcessing: nothing, rearm: () => false },
  };
  const poll = new Poll(env as unknown as Environment, parts as unknown as PollParts);
  return { poll, facts: env.facts };
}

function pauseWith(around: Around): number {
  const { poll } = pollAmid(around);
  poll.work({ nowMs: NOW_MS, dueMs: NOW_MS });
  return poll.nextMs(NOW_MS) - NOW_MS;
}

it("where nothing waits or runs it looks seldom", () => {
  expect(pauseWith({})).toBeGreaterThan(2 * RECOVER_MS);
});

it.each<[string, Around]>([
  ["a task waits", { waiting: 1 }],
  ["a task runs", { running: 1 }],
  ["a foreign program holds a task, whose silence is measured", { processing: ["left.json"] }],
  ["a command is under way", { commands: ["c@abcdefgh.1~ready.json"] }],
  ["others work on the same folders", { hasOthers: true }],
])("where %s it looks as often as silence is measured", (_, around) => {
  expect(pauseWith(around)).toBe(RECOVER_MS);
});

it.each([{ waiting: 0 }, { waiting: 1 }])(
  "it never looks more seldom than sweep_ms says: %o",
  ({ waiting }) => {
    expect(pauseWith({ sweepMs: 20, waiting })).toBe(20);
    expect(pauseWith({ sweepMs: 3_600_000, waiting })).toBe(pauseWith({ waiting }));
  },
);

it("of workers that are not our children it looks at each move, and checks all dependencies no sooner for that", () => {
  let rechecks = 0;
  const { poll, facts } = pollAmid({ hasOthers: true, onRecheck: () => rechecks++ });
  for (let ms = 0; ms < 4 * RECOVER_MS; ms++) {
    facts.emit("processing:changed");
    poll.work({ nowMs: NOW_MS + ms, dueMs: NOW_MS + ms });
  }
  expect(rechecks).toBe(4);
});
