/** A run that was stopped while its machine was cut off runs again when its job comes again; how that one ends is told at once. */
import { expect, test } from "vitest";
import { Mailbox } from "../../../src/library/mailbox.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { encodeMessage } from "../../../src/parts/cluster/protocol/message-codec.ts";
import { waitFor } from "../../support/wait-for.ts";
import { stubBridge } from "./stub-bridge.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };
const JOB = { dispatch: DISPATCH, target: "gpu", task: { agent: "coder", prompt: "?" } };
const ID = dispatchId(DISPATCH);

test("what is told of the second run does not wait for what the first one came to", async () => {
  const { bridge, machine, trays, results, deliver } = stubBridge({ serves: ["gpu"] });
  const mailbox = Mailbox.open(trays.dir);
  await machine.submit(ID, JOB);
  machine.saveNote(ID, { dispatch: DISPATCH, target: "gpu", lease: "1 x", state: "left" });
  await mailbox.fail(mailbox.claim(), "stopped", { kind: "cancelled", canRetry: false });
  bridge.start();
  await waitFor(() => machine.note(ID) === undefined, { what: "the note to go" });
  expect(results).toEqual([]);
  const delivery = { done: async () => {}, later: async () => expect.unreachable("it is taken") };
  const message = { names: ["gpu", ID], bytes: encodeMessage(JOB), lease: "1 y", turn: "1 y" };
  deliver({ ...message, sinceMs: performance.now(), delivery });
  await waitFor(() => machine.placeOf(ID) === "unsettled", { what: "the second run" });
  await mailbox.complete(mailbox.claim());
  await waitFor(() => results.length > 0, { what: "the result", timeoutMs: 5000 });
  expect(results).toEqual([ID]);
});
