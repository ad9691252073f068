/** Everything that parts keep in a tree is kept in a tree that has nothing yet; a tree that is gone is never made again. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { BreakerFile } from "../../src/agents/breaker/breaker-file.ts";
import { RunningCosts } from "../../src/agents/budget/running-costs.ts";
import { giveSession } from "../../src/agents/stream/continued.ts";
import { newSession, SessionFile } from "../../src/agents/stream/session-file.ts";
import { TaskMessages } from "../../src/agents/stream/task-messages.ts";
import { failed } from "../../src/core/outcome.ts";
import { isText, shape } from "../../src/core/shape.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { Documents } from "../../src/host/document-store.ts";
import { RateBucket, systemBucketClock } from "../../src/host/rate-bucket.ts";
import { replaceDocument } from "../../src/host/replace-document.ts";
import { bridgeWriter } from "../../src/parts/cluster/tree/bridge-document.ts";
import { treeName } from "../../src/parts/cluster/tree/tree-name.ts";
import { runNotes } from "../../src/parts/mail/exits/run-notes.ts";
import { askedIn } from "../../src/parts/mail/requests/asked.ts";
import { notifyStates, STATE } from "../../src/parts/notify/notify-state.ts";
import { noteReset } from "../../src/parts/plan/resets.ts";
import { writeControl, writeLog } from "../../src/parts/schedules/schedule-files.ts";
import { QuestionStore } from "../../src/questions/question-store.ts";
import { writeLanding } from "../../src/worker/landing-files.ts";
import { tempDir } from "../support/temp-dir.ts";

type Write = (stateDir: string) => unknown;

const LOG = { v: 1, decided_to_ms: 0, times: "", last: null, fired: 0, skipped: 0 } as const;
const of = { task_id: "a", agent: "x", kind: "codex", account: "default", cwd: "/" };
const session = { ...newSession(of), session_id: "s", continues: "b" };

/** Everything that writes a small file of its own below the tree, and may be the first one to do so. */
const WRITES: Readonly<Record<string, Write>> = {
  "the decisions of a schedule": (dir) => writeLog(dir, "d", LOG),
  "the pause of a schedule": (dir) =>
    writeControl(dir, "d", { v: 1, paused: true, at_ms: 0, manual_id: null }),
  "what was told to people": (dir) =>
    notifyStates(dir, true).replace(STATE, { v: 1, targets: {} } as never),
  "the order of a landing": (dir) => writeLanding(dir, "a", "sent", { v: 1, lease: "x" }),
  "the end of a run": (dir) => runNotes(dir, true).replace("a", { task: "a" } as never),
  "a question of an agent": (dir) => askedIn(dir).replace("q", { id: "q" } as never),
  "a question": (dir) =>
    new QuestionStore(dir).ask({
      id: "q",
      question: "?",
      context: "",
      who: "x",
      agents: [],
      expects: "text",
    } as never),
  "a message": (dir) => new TaskMessages(dir, "a", true).post("x", "cli"),
  "a session": (dir) => new SessionFile(stateTree(dir).sessions, "a@b").write(session),
  "a session that goes on in another task": (dir) => giveSession(dir, session, undefined, true),
  "the failures of an agent": (dir) =>
    new BreakerFile(dir, "x").note("a", failed("auth", "ErrAuth", "x")),
  "the costs of a run that is on": (dir) => new RunningCosts(dir).write("l", {} as never),
  "the name of the tree": (dir) => treeName(dir, "box"),
  "the state of the bridge": (dir) => bridgeWriter(dir)({} as never),
  "a reset": (dir) => noteReset(dir, { key: "k", at_ms: Date.now(), ids: [] } as never, true),
  "a rate": (dir) =>
    new RateBucket(stateTree(dir).limits, "r", systemBucketClock(), true).take({
      text: "1/s",
      intervalUs: 1e6,
      burst: 1,
      isLong: false,
    }),
};

/** What is wrong with a way to write: undefined when nothing is. */
async function faultOf(write: Write): Promise<string | undefined> {
  const there = join(tempDir(), "state");
  fs.mkdirSync(there);
  try {
    await write(there);
  } catch (error) {
    return `an empty tree: ${String(error)}`;
  }
  if (fs.readdirSync(there).length === 0) return "it has written nothing";
  const gone = join(tempDir(), "state");
  try {
    await write(gone);
  } catch {
    // As it should be.
  }
  return fs.existsSync(gone) ? "it has made a tree that is gone" : undefined;
}

describe("the first file of its kind", () => {
  it.each(Object.entries(WRITES))("%s", async (_, write) => {
    expect(await faultOf(write)).toBeUndefined();
  });

  const BROKEN: Readonly<Record<string, Write>> = {
    "counts one folder too few": (dir) =>
      replaceDocument(join(dir, "a/b/c.json"), {}, { missingMax: 2 }),
    "makes whatever is missing": (dir) =>
      replaceDocument(join(dir, "a/c.json"), {}, { missingMax: Number.POSITIVE_INFINITY }),
    "writes nothing": () => {},
  };

  it.each(Object.entries(BROKEN))("finds a way that is wrong: %s", async (_, write) => {
    expect(await faultOf(write)).toBeDefined();
  });
});

it("makes as many folders as a document needs, at any depth", () => {
  const dir = tempDir();
  for (const path of ["a.json", "b/a.json", "b/c/d/e/a.json"]) {
    new Documents(dir, dirname(path), shape({ path: isText })).replace("a", { path });
    expect(JSON.parse(fs.readFileSync(join(dir, path), "utf8"))).toEqual({ path });
  }
});
