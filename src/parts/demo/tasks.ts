/** What the demo drops into the inbox, and what must come of it. Plain data. */

export interface DroppedFile {
  name: string;
  text: string;
}

function file(id: string, task: object): DroppedFile {
  return { name: `${id}.json`, text: JSON.stringify(task) };
}

function after(id: string): object {
  return { metadata: { dependencies: [id] } };
}

/** The last of the chain comes first: it waits all the same. */
export const FIRST_DROP: readonly DroppedFile[] = [
  file("report", { exec: ["echo", "ok"], ...after("count") }),
  file("count", { exec: ["echo", "7"], ...after("fetch") }),
  file("fetch", { exec: ["sh", "-c", "sleep 0.5; echo 42 lines"] }),
  file("hello", { exec: ["echo", "hello, folder"] }),
  file("flaky", { exec: ["sh", "-c", "[ $MAILCHUTE_ATTEMPT = 2 ] && echo ok"] }),
  file("hopeless", { exec: ["false"], max_attempts: 2 }),
  file("refuses", { exec: ["sh", "-c", "echo bad input >&2; exit 65"] }),
  { name: "broken.json", text: '{"exec": [echo, "quotes forgotten"]}' },
];

/** In its first run it works for longer than anybody waits; the worker is killed in the middle of it. */
export const LONG_HAUL = file("long-haul", {
  exec: ["sh", "-c", "[ $MAILCHUTE_ATTEMPT = 2 ] || sleep 60"],
});

export const PAUSE = { name: "pause.json", text: '{"command":"pause"}' };
export const RESUME = { name: "resume.json", text: '{"command":"resume"}' };
export const HELD_BACK: readonly DroppedFile[] = ["a", "b", "c"].map((letter) =>
  file(`later-${letter}`, { exec: ["echo", letter] }),
);

export const EXPECTED = {
  completed: [
    "count",
    "fetch",
    "flaky",
    "hello",
    "later-a",
    "later-b",
    "later-c",
    "long-haul",
    "report",
  ],
  failed: ["hopeless", "refuses"],
  refused: ["broken"],
  /** Runs of the tasks that needed more than one. */
  attempts: { flaky: 2, hopeless: 2, "long-haul": 2 },
  /** flaky and hopeless, once each. */
  retries: 2,
  reclaimed: 1,
} as const;

/** A config.yaml for people in a hurry. */
export const CONFIG = `retry: {backoff_ms: 500}   # default 1000
grace_ms: 1000             # from SIGTERM to SIGKILL; default 5000
`;
