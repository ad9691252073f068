/** The checker of state trees finds each error that is planted, and nothing in a tree that is right. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { tempDir } from "../support/temp-dir.ts";

const T = 1_700_000_000_000;
const IDS = ["good", "bad"];

/** A drained tree with one completed and one failed task. */
function goodState(): { dir: string; path: (name: string) => string } {
  const dir = tempDir();
  for (const sub of ["inbox", "processing", "outbox", "failed", ".tmp"])
    fs.mkdirSync(join(dir, "mailbox", sub), { recursive: true });
  for (const sub of ["analytics", "workers", "control/.tmp", "control/processing"])
    fs.mkdirSync(join(dir, sub), { recursive: true });
  const put = (name: string, value: object): void =>
    fs.writeFileSync(join(dir, name), `${JSON.stringify(value)}\n`);
  const events: string[] = [];
  const leases: string[] = [];
  for (const [id, status, tray] of [
    ["good", "completed", "outbox"],
    ["bad", "failed", "failed"],
  ] as const) {
    const head = `s${id}.1`;
    const lease = `${head}.owner-1`;
    const subject = { task_id: id, agent_id: "a", attempt: 1 };
    const record = { task_id: id, status, attempts: 1, lease, task: { id } };
    put(`mailbox/${tray}/${id}_${tray === "outbox" ? "result" : "error"}.json`, record);
    for (const event of ["selected", "assigned", "started", "completed"]) {
      const time = { timestamp: new Date(T).toISOString(), t: T };
      const owner = event === "selected" ? "" : "owner-1";
      events.push(JSON.stringify({ event, ...subject, ...time, lease: head, owner, status }));
    }
    const at = new Date(T).toISOString();
    for (const status of ["active", "released"]) {
      const times = { acquired_at: at, expires_at: at, ts: at, t: T };
      const whose = { lease: head, owner: "owner-1" };
      leases.push(JSON.stringify({ ...subject, status, ...whose, ...times }));
    }
  }
  fs.writeFileSync(join(dir, "analytics/supervisor_lifecycle.jsonl"), `${events.join("\n")}\n`);
  fs.writeFileSync(join(dir, "supervisor_leases.jsonl"), `${leases.join("\n")}\n`);
  put("supervisor.json", { status: "stopped" });
  return { dir, path: (name) => join(dir, name) };
}

const EVENTS = "analytics/supervisor_lifecycle.jsonl";
const LEASES = "supervisor_leases.jsonl";
const RESULT = "mailbox/outbox/good_result.json";
type Plant = (path: (name: string) => string) => void;

function edit(name: string, change: (text: string) => string): Plant {
  return (path) => {
    const before = fs.readFileSync(path(name), "utf8");
    const after = change(before);
    expect(after, "the planted error changes something").not.toBe(before);
    fs.writeFileSync(path(name), after);
  };
}

function copy(from: string, to: string): Plant {
  return (path) => fs.copyFileSync(path(from), path(to));
}

function dropLine(name: string, index: number): Plant {
  return edit(name, (text) => text.split("\n").toSpliced(index, 1).join("\n"));
}

function put(name: string, text = "{}"): Plant {
  return (path) => fs.writeFileSync(path(name), text);
}

it("says nothing of a tree that is right", () => {
  expect(checkState(goodState().dir, IDS)).toEqual([]);
  expect(checkState(goodState().dir, IDS, { hadCrashes: true })).toEqual([]);
});

it.each<[string, Plant, RegExp]>([
  ["a lost task", (path) => fs.rmSync(path(RESULT)), /^good: in 0 places/],
  [
    "a result and an error",
    copy(RESULT, "mailbox/failed/good_error.json"),
    /^good: in 2 places.*failed/,
  ],
  ["a settled task in the inbox", copy(RESULT, "mailbox/inbox/good.json"), /^good: not settled/],
  ["an id in two cases", copy(RESULT, "mailbox/outbox/GOOD_result.json"), /^good: in 2 places/],
  [
    "a task still claimed",
    copy(RESULT, "mailbox/processing/good@sgood.1~w-owner-1.json"),
    /^good: in 2 places.*processing/m,
  ],
  [
    "a marker left over",
    copy(RESULT, "mailbox/processing/good@sgood.1~ok-x.json"),
    /^good: not settled/,
  ],
  ["a name without a meaning", put("mailbox/processing/what"), /a name without a meaning/],
  ["a task nobody submitted", put("mailbox/inbox/stranger.json"), /^stranger: nobody submitted it/],
  ["half a record", edit(RESULT, (text) => text.slice(0, 30)), /not a whole JSON object/],
  ["a record of another task", edit(RESULT, (text) => text.replace("good", "evil")), /task_id/],
  ["a record without its task", edit(RESULT, (text) => text.replace('"task":', '"x":')), /task/],
  ["no selected event", dropLine(EVENTS, 0), /^good: no selected event/],
  ["no assigned event", dropLine(EVENTS, 1), /^good: no assigned event/],
  ["no started event", dropLine(EVENTS, 2), /^good: no started event/],
  ["no completed event", dropLine(EVENTS, 7), /^bad: no completed event/],
  [
    "events out of order",
    edit(EVENTS, (text) => text.split("\n").toSorted().join("\n").trimStart().concat("\n")),
    /comes before/,
  ],
  [
    "two completed events",
    edit(EVENTS, (text) => `${text}${text.split("\n")[3]}\n`),
    /2 completed events/,
  ],
  [
    "an event that says otherwise",
    edit(EVENTS, (text) => text.replaceAll('"status":"failed"', '"status":"completed"')),
    /^bad: failed, but its event says completed/,
  ],
  [
    "an event without an agent",
    edit(EVENTS, (text) => text.replace('"agent_id":"a"', '"agent_id":""')),
    /no agent_id/,
  ],
  [
    "an event whose times differ",
    edit(EVENTS, (text) => text.replace(`"t":${T}`, `"t":${T + 1}`)),
    /has timestamp/,
  ],
  [
    "an event whose lease is not in two",
    edit(EVENTS, (text) =>
      text.replace('"lease":"sgood.1","owner":"owner-1"', '"lease":"sgood.1.owner-1","owner":""'),
    ),
    /its assigned event names the lease/,
  ],
  ["a torn event", edit(EVENTS, (text) => text.slice(0, -5)), /torn/],
  [
    "a line that is not valid JSON",
    edit(EVENTS, (text) => `oops\n${text}`),
    /:1: not a JSON object/,
  ],
  ["a line that is no object", edit(LEASES, (text) => `null\n${text}`), /:1: not a JSON object/],
  ["a lease never released", dropLine(LEASES, 1), /its lease was active, not active, released/],
  ["a lease never active", dropLine(LEASES, 2), /its lease was released/],
  [
    "another lease still active",
    edit(LEASES, (text) => `${text}${text.split("\n")[0]?.replace("sgood", "other")}\n`),
    /lease other.1.owner-1: still active/,
  ],
  ["a staged file", put("mailbox/.tmp/x"), /left over/],
  ["a claimed command", put("control/processing/x"), /left over/],
  ["a worker that is gone", put("workers/w-1.json"), /left over/],
])("finds %s", (_what, plant, expected) => {
  const { dir, path } = goodState();
  plant(path);
  expect(checkState(dir, IDS).join("\n")).toMatch(expected);
});

it("knows a task that was cancelled before its second attempt", () => {
  const { dir, path } = goodState();
  const owner = "owner-C1";
  const cancel = (text: string): string =>
    text
      .replaceAll("sbad.1.owner-1", `sbad.2.${owner}`)
      .replace('"status":', '"kind":"cancelled","status":');
  edit("mailbox/failed/bad_error.json", cancel)(path);
  const move = (line: string): string =>
    line
      .replace('"attempt":1', '"attempt":2')
      .replace("sbad.1", "sbad.2")
      .replace("owner-1", owner);
  // The selection of the first attempt stays; what was under the cancel's own lease follows.
  edit(EVENTS, (text) => {
    const lines = text.trimEnd().split("\n");
    return `${[...lines.slice(0, 5), move(lines[7] ?? "")].join("\n")}\n`;
  })(path);
  edit(LEASES, (text) => {
    const lines = text.trimEnd().split("\n");
    return `${[...lines.slice(0, 2), ...lines.slice(2).map(move)].join("\n")}\n`;
  })(path);
  expect(checkState(dir, IDS)).toEqual([]);
});

it("takes work under way for what it is", () => {
  const { dir, path } = goodState();
  fs.writeFileSync(path("mailbox/inbox/waits.json"), "{}");
  fs.writeFileSync(path("mailbox/processing/runs@s.1~w-owner-2.json"), "{}");
  copy(RESULT, "mailbox/processing/good@sgood.1~ok-owner-1.json")(path);
  const all = [...IDS, "waits", "runs"];
  expect(checkState(dir, all, { isDrained: false })).toEqual([]);
  expect(checkState(dir, all)).toHaveLength(3);
});

it("goes by the times where journals were written late", () => {
  const { dir, path } = goodState();
  const reverse: Plant = edit(EVENTS, (text) =>
    text.trimEnd().split("\n").toReversed().concat("").join("\n"),
  );
  reverse(path);
  expect(checkState(dir, IDS).join("\n")).toMatch(/comes before/);
  expect(checkState(dir, IDS, { wroteLate: true })).toEqual([]);
  edit(EVENTS, (text) =>
    text.replace(
      new RegExp(`("event":"completed".*)"timestamp":"[^"]*","t":${T}`),
      (_all, head) => {
        const t = T - 1000;
        return `${head}"timestamp":"${new Date(t).toISOString()}","t":${t}`;
      },
    ),
  )(path);
  expect(checkState(dir, IDS, { wroteLate: true }).join("\n")).toMatch(/completed comes before/);
});
