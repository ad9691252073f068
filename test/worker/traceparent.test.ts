/** A task's `traceparent` reaches its programs and its events, in each run; one that is none is refused. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/** Prints it, and fails in its first run. */
const EXEC = ["sh", "-c", 'echo "trace=$TRACEPARENT"; [ $MAILCHUTE_ATTEMPT = 2 ]'];

test("a trace goes from the task to its programs and events, and no other task has one", async () => {
  const pool = newPool({ env: { TRACEPARENT: "of the supervisor" } });
  await pool.start();
  const own = { TRACEPARENT: "own" };
  pool.drop("traced", { exec: EXEC, traceparent: TRACE });
  pool.drop("wins", { exec: EXEC, traceparent: TRACE, env: own });
  pool.drop("plain", { exec: EXEC });
  pool.drop("bad", { exec: EXEC, traceparent: TRACE.toUpperCase() });
  const ended = (): number =>
    fs.readdirSync(pool.outbox).length + fs.readdirSync(pool.failed).length;
  const ends = () => pool.events().filter(({ event }) => event === "completed");
  await waitFor(() => ended() >= 4 && ends().length === 3, { what: "all ends" });
  expect(fs.existsSync(join(pool.outbox, "bad_result.json"))).toBe(false);
  const traces = (id: string): unknown[] =>
    pool
      .events()
      .filter(
        ({ task_id: task, event }) =>
          task === id && ["started", "completed"].includes(String(event)),
      )
      .map((event) => event["traceparent"]);
  expect(traces("traced")).toEqual([TRACE, TRACE, TRACE]);
  expect(traces("wins")).toEqual([TRACE, TRACE, TRACE]);
  expect(traces("plain")).toEqual([undefined, undefined, undefined]);
  const printed = async (id: string): Promise<string> => (await pool.run(["logs", id])).stdout;
  expect(await printed("traced")).toContain(`trace=${TRACE}\n`);
  expect(await printed("wins")).toContain("trace=own\n");
  expect(await printed("plain")).toContain("trace=\n");
});
