/** What a machine reports under an older lease does not end the run of a machine that has got the job since. */
import { describe, expect, test } from "vitest";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import type { End, Job, Result } from "../../../src/parts/cluster/protocol/messages.ts";
import { Origin } from "../../../src/parts/cluster/protocol/origin.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };
const TARGET = "gpu";
const ID = dispatchId(DISPATCH);
const JOB: Job = { dispatch: DISPATCH, target: TARGET, task: { agent: "coder", prompt: "?" } };
const DIED: End = {
  status: "failed",
  kind: "lease_expired",
  code: "ErrLeaseLost",
  error: "its worker died",
  exit_code: null,
  signal: null,
};
const TIMES = { silenceMs: 9000, answerMs: 2000, ackWaitMs: 3000 };

function newOrigin(times = TIMES) {
  let nowMs = 0;
  let isHeld = true;
  const settledBy: string[] = [];
  const calls: string[] = [];
  const unused = async (): Promise<never> => expect.unreachable("not in these tests");
  const origin = new Origin({
    tree: {
      standing: () => (isHeld ? "waits" : "over"),
      settle: async (_, { machine }) => {
        settledBy.push(machine);
        isHeld = false;
        return true;
      },
      bookCosts: () => {},
    },
    broker: {
      publishJob: async () => {},
      hasJob: unused,
      hasResult: unused,
      ask: async () => void calls.push("ask"),
      dropJob: async () => void calls.push("drop"),
      publishOver: async (machine) => void calls.push(`over ${machine}`),
    },
    nowMs: () => nowMs,
    ...times,
  });
  const hasTurn = (machine: string, turn: string, isSure = true) =>
    origin.onBeat(machine, { dispatch: DISPATCH, target: TARGET, turn, is_sure: isSure });
  const tell = async (machine: string, turn: string, isSure?: boolean): Promise<string> => {
    let answer = "";
    const message = {
      done: async () => {
        answer = "done";
      },
      later: async () => {
        answer = "later";
      },
    };
    const result: Result = { dispatch: DISPATCH, target: TARGET, machine, turn, end: DIED };
    await origin.onResult(isSure === undefined ? result : { ...result, is_sure: isSure }, message);
    return answer;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { origin, pass, hasTurn, tell, settledBy, calls };
}

describe("a machine that comes back", () => {
  test("does not end the run of its replacement, which settles the task", async () => {
    const { origin, hasTurn, tell, settledBy } = newOrigin();
    await origin.publish(JOB);
    await hasTurn("box1", "1");
    await hasTurn("box2", "2");
    await hasTurn("box1", "1", false);
    expect(await tell("box1", "1", false)).toBe("later");
    expect(await tell("box2", "2", true)).toBe("done");
    expect(settledBy).toEqual(["box2"]);
    expect(await tell("box1", "1", false)).toBe("done");
    expect(settledBy).toEqual(["box2"]);
  });

  test("is not believed before all machines were asked, and the job can go to no other one", async () => {
    const { origin, pass, hasTurn, tell, settledBy, calls } = newOrigin();
    await origin.publish(JOB);
    pass(TIMES.ackWaitMs + 1000);
    expect(await tell("box1", "1", false)).toBe("later");
    expect(calls).toEqual(["drop", "ask"]);
    await hasTurn("box2", "2");
    pass(TIMES.answerMs);
    expect(await tell("box1", "1", false)).toBe("later");
    // The newer run is lost, too.
    pass(TIMES.silenceMs);
    expect(await tell("box1", "1", false)).toBe("done");
    expect(settledBy).toEqual(["box1"]);
  });

  test("is not believed at once when its replacement was heard, however short its silence", async () => {
    const { origin, pass, hasTurn, tell, calls } = newOrigin({ ...TIMES, silenceMs: 1000 });
    await origin.publish(JOB);
    await hasTurn("box1", "1");
    await hasTurn("box2", "2");
    pass(1500);
    expect(await tell("box1", "1", true)).toBe("later");
    expect(calls).toEqual(["drop", "ask"]);
  });

  test("is believed after that when no other machine has the task", async () => {
    const { origin, pass, tell, settledBy } = newOrigin();
    origin.adopt(DISPATCH, TARGET);
    expect(await tell("box1", "1", false)).toBe("later");
    pass(TIMES.answerMs - 1);
    expect(await tell("box1", "1", false)).toBe("later");
    pass(1);
    expect(await tell("box1", "1", false)).toBe("done");
    expect(settledBy).toEqual(["box1"]);
  });
});

test("a result that was long on its way is not believed at once, although its machine was sure", async () => {
  const { origin, pass, hasTurn, tell } = newOrigin();
  await origin.publish(JOB);
  await hasTurn("box1", "1");
  pass(TIMES.ackWaitMs);
  expect(await tell("box1", "1", true)).toBe("later");
});

test("a result that comes in time settles the task at once, also that of an earlier version", async () => {
  for (const isSure of [true, undefined]) {
    const { origin, tell, calls } = newOrigin();
    await origin.publish(JOB);
    expect(await tell("box1", "1", isSure)).toBe("done");
    expect(calls).toEqual(["drop", "over box1"]);
    expect(origin.known()).not.toContain(ID);
  }
});
