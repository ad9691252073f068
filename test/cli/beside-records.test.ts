/** Records whose name is beside the final one, `<id>~<x>_error.json`: what asks by the id finds them, and recovery makes no more of them. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newCli, put } from "./run-cli.ts";

const REFUSAL = {
  task_id: "rubbish",
  status: "failed",
  error: "not JSON",
  attempts: 0,
  last_attempt_at: 0,
  failed_at: 1,
  code: "ErrInvalidTask",
  kind: "invalid",
  agent_id: "",
  lease: "s.0.x1",
  exit_code: null,
  signal: null,
  run: null,
  file: "failed/rubbish~x1.json",
  dropped_as: "rubbish.json",
};
const TASK = { id: "rubbish", exec: ["true"] };
const failed = (dir: string): string[] => fs.readdirSync(join(dir, "state/mailbox/failed")).sort();

/** A refusal whose process was killed in its middle. */
function putHalfRefusal(cli: ReturnType<typeof newCli>, more: object = {}): void {
  put(cli, "mailbox/processing/rubbish@s.0~bad-x1.json", "rubbish");
  put(cli, "mailbox/.tmp/rubbish@s.0~bad-x1.json", { ...REFUSAL, ...more });
}

test("a refusal that a recovery finishes has the names of one that nothing disturbed", async () => {
  const cli = newCli();
  putHalfRefusal(cli);
  expect((await cli(["run", "--drain"])).code).toBe(0);
  expect(failed(cli.dir)).toEqual(["rubbish_error.json", "rubbish~x1.json"]);
});

test("a refusal whose reason was lost has them, too", async () => {
  const cli = newCli();
  put(cli, "mailbox/processing/rubbish@s.0~bad-x1.json", "rubbish");
  put(cli, "mailbox/.tmp/rubbish@s.0~bad-x1.json", "{");
  expect((await cli(["run", "--drain"])).code).toBe(0);
  expect(failed(cli.dir)).toEqual(["rubbish_error.json", "rubbish~x1.json"]);
});

test.each([
  ["says so", { code: "ErrTaskExists" }, undefined],
  ["has settled", {}, "mailbox/outbox/rubbish_result.json"],
])(
  "a refusal beside a task of its id that %s gets a name beside it from recovery as well",
  async (_what, more, record) => {
    const cli = newCli();
    putHalfRefusal(cli, more);
    const done = {
      ...REFUSAL,
      status: "completed",
      lease: "t.1.w-1",
      attempts: 1,
      completed_at: 1,
    };
    if (record !== undefined) put(cli, record, { ...done, task: TASK });
    expect((await cli(["run", "--drain"])).code).toBe(0);
    expect(failed(cli.dir)).toEqual(["rubbish~x1.json", "rubbish~x1_error.json"]);
  },
);

test("wait, show and retry find a record by its id under the name beside the final one", async () => {
  const cli = newCli();
  put(cli, "mailbox/failed/rubbish~x1.json", TASK);
  put(cli, "mailbox/failed/rubbish~x1_error.json", REFUSAL);
  const waited = await cli(["wait", "rubbish", "--json", "--timeout", "120s"]);
  expect(waited.code).toBe(1);
  expect(JSON.parse(waited.stdout)).toMatchObject({
    settled: [{ id: "rubbish", status: "failed", error: "not JSON" }],
  });
  const shown = await cli(["show", "rubbish", "--json"]);
  expect(JSON.parse(shown.stdout)).toMatchObject({
    state: "failed",
    path: join(cli.dir, "state/mailbox/failed/rubbish~x1_error.json"),
    record: { error: "not JSON" },
  });
  expect(await cli(["retry", "rubbish"])).toMatchObject({ code: 0, stdout: "rubbish\n" });
  expect(failed(cli.dir)).toEqual([]);
  expect((await cli(["run", "--drain"])).code).toBe(0);
  expect((await cli(["wait", "rubbish"])).code).toBe(0);
});

test("retry --failed and the command retry take a record beside the final name, the latest one that can run", async () => {
  const cli = newCli();
  const dead = { ...REFUSAL, attempts: 3, kind: "exit", file: undefined, task: TASK };
  put(cli, "mailbox/failed/rubbish~x0_error.json", { ...dead, lease: "r.3.w-1" });
  put(cli, "mailbox/failed/rubbish~x1_error.json", REFUSAL);
  const retried = await cli(["retry", "--failed", "--json"]);
  expect(JSON.parse(retried.stdout)).toEqual({ retried: ["rubbish"], refused: [], reopened: [] });
  expect(failed(cli.dir)).toEqual(["rubbish~x1_error.json"]);
  expect((await cli(["run", "--drain"])).code).toBe(0);
  const again = await cli(["retry", "rubbish"]);
  expect(again).toMatchObject({ code: 4 });
  expect(again.stderr).toContain("has completed");
});

test("wait and show find a result that stands beside what took its name", async () => {
  const cli = newCli();
  const result = {
    ...REFUSAL,
    task_id: "a",
    status: "completed",
    lease: "s.1.w-1",
    completed_at: 1,
  };
  put(cli, "mailbox/outbox/a~s_result.json", {
    ...result,
    task: { id: "a" },
    dropped_as: undefined,
  });
  expect((await cli(["wait", "a"])).code).toBe(0);
  expect((await cli(["show", "a"])).stdout).toContain("outbox/a~s_result.json");
});
