/** A failure after which another run cannot help is final at home, too: the machine says so, whatever kind of failure it is. */
import { expect, test } from "vitest";
import { FAILURE_KINDS } from "../../../src/codec/record-schemas.ts";
import { failed } from "../../../src/core/outcome.ts";
import type { ErrorRecord, FailureKind } from "../../../src/core/task.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { decodeResult, encodeMessage } from "../../../src/parts/cluster/protocol/message-codec.ts";
import type { Result } from "../../../src/parts/cluster/protocol/messages.ts";
import { endOfRecord, outcomeOf } from "../../../src/parts/cluster/tree/ends.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";

const DISPATCH = { tree: "desk.abcd2345", task: "t", submission: "s", attempt: 1 };

/** Whether home decides as the machine did. @param forget what does not arrive */
function isSame(kind: FailureKind, canRetry: boolean, forget = false): boolean {
  const outcome = failed(kind, "ErrX", "x", { canRetry });
  const record = { ...outcome, kind, error: "x", exit_code: null, status: "failed" };
  const said = forget || canRetry ? {} : { can_retry: false };
  const end = endOfRecord({ ...record, ...said } as unknown as ErrorRecord);
  const result: Result = { dispatch: DISPATCH, target: "gpu", machine: "box", end };
  const arrived = decodeResult(encodeMessage(result), dispatchId(DISPATCH), result);
  const athome = outcomeOf(arrived.end, "box");
  return athome.kind === "failed" && athome.canRetry === canRetry;
}

test.each(FAILURE_KINDS)("%s: what is final at the machine is final at home", (kind) => {
  expect(isSame(kind, false)).toBe(true);
});

test("caught: a record that does not say it", () => {
  expect(FAILURE_KINDS.filter((kind) => !isSame(kind, false, true))).toEqual(
    expect.arrayContaining(["config", "auth", "spawn", "budget"]),
  );
});

test("the record of a task whose program does not exist says that another run cannot help, and no other record", async () => {
  const pool = newPool({ config: QUICK_CONFIG });
  pool.drop("none", { exec: ["/no/such/program"] });
  pool.drop("one", { exec: ["false"], max_attempts: 1 });
  await pool.start();
  expect(await pool.error("none")).toMatchObject({ kind: "spawn", can_retry: false });
  expect(await pool.error("one")).not.toHaveProperty("can_retry");
});
