/** The demo as data: the files it drops, its acts in order, and the counts that must result. */
import { duration } from "../../text/render.ts";

export interface DroppedFile {
  id: string;
  text: string;
}

export type Step =
  /** Starts `mailchute run` with these arguments. */
  | { start: readonly string[] }
  | { say: string }
  | "blank"
  | { drop: readonly DroppedFile[] }
  /** Drops a command into the control mailbox and shows the answer. */
  | { order: DroppedFile }
  | { untilSettled: readonly DroppedFile[] }
  | { waitMs: number }
  | { ls: string }
  | { jq: { id: string; fields: readonly string[] } }
  /** Kills the worker that runs this task. */
  | { kill: DroppedFile };

export interface Act {
  title: string;
  steps: readonly Step[];
}

function file(id: string, task: object): DroppedFile {
  return { id, text: JSON.stringify(task) };
}

function after(id: string): object {
  return { metadata: { dependencies: [id] } };
}

/** The last task of the chain is dropped first, and still waits for the others. */
const FIRST_DROP: readonly DroppedFile[] = [
  file("report", { exec: ["echo", "ok"], ...after("count") }),
  file("count", { exec: ["echo", "7"], ...after("fetch") }),
  file("fetch", { exec: ["sh", "-c", "sleep 0.5; echo 42 lines"] }),
  file("hello", { exec: ["echo", "hello, folder"] }),
  file("flaky", { exec: ["sh", "-c", "[ $MAILCHUTE_ATTEMPT = 2 ] && echo ok"] }),
  file("hopeless", { exec: ["false"], max_attempts: 2 }),
  file("refuses", { exec: ["sh", "-c", "echo bad input >&2; exit 65"] }),
  { id: "broken", text: '{"exec": [echo, "quotes forgotten"]}' },
];

/** Run 1 would take longer than the whole demo, but the demo kills its worker. */
const LONG_HAUL = file("long-haul", {
  exec: ["sh", "-c", "[ $MAILCHUTE_ATTEMPT = 2 ] || sleep 60"],
});

const HELD_BACK = ["a", "b", "c"].map((letter) =>
  file(`later-${letter}`, { exec: ["echo", letter] }),
);

/** How long the pool is paused: long enough to see that nothing starts. */
const PAUSED_MS = 400;

export const ACTS: readonly Act[] = [
  {
    title: "A supervisor with 4 slots in 2 worker processes",
    steps: [{ start: ["--workers", "4", "--processes", "2"] }],
  },
  {
    title: "Tasks are JSON files in a folder; any program can drop them",
    steps: [
      { say: "Dropped into mailbox/inbox/:" },
      { drop: FIRST_DROP },
      "blank",
      { untilSettled: FIRST_DROP },
      "blank",
      { ls: "mailbox/outbox" },
      { ls: "mailbox/failed" },
      { say: "broken_error.json says why; the file itself is kept beside it." },
      { jq: { id: "flaky", fields: ["status", "output", "attempts"] } },
    ],
  },
  {
    title: "A worker is killed in the middle of its task",
    steps: [{ drop: [LONG_HAUL] }, { kill: LONG_HAUL }],
  },
  {
    title: "Commands are files too",
    steps: [
      { order: file("pause", { command: "pause" }) },
      { say: "3 more tasks are dropped:" },
      { drop: HELD_BACK },
      { waitMs: PAUSED_MS },
      { say: `${duration(PAUSED_MS)} later they still wait:` },
      { ls: "mailbox/inbox" },
      { order: file("resume", { command: "resume" }) },
      { untilSettled: HELD_BACK },
    ],
  },
];

export const EXPECTED = {
  completed: ["count", "fetch", "flaky", "hello", "long-haul", "report"].concat(
    HELD_BACK.map(({ id }) => id),
  ),
  failed: ["hopeless", "refuses"],
  refused: ["broken"],
  /** The number of runs of each task that needs more than one. */
  attempts: { flaky: 2, hopeless: 2, "long-haul": 2 },
  /** `flaky` and `hopeless` are retried once each. */
  retries: 2,
  reclaimed: 1,
};

export const TASK_COUNT =
  EXPECTED.completed.length + EXPECTED.failed.length + EXPECTED.refused.length;

/** Shorter waits than the defaults, so that the demo ends soon. */
export const CONFIG = `retry: {backoff_ms: 500}   # default 1000
grace_ms: 1000             # from SIGTERM to SIGKILL; default 5000
`;
