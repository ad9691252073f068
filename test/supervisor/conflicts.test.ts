/** Something else stands where a record belongs: it stays, and the record with its task is kept beside it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { splitLease } from "../../src/core/names.ts";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

it("a record that finds its name taken is published beside it, and people hear of it", async () => {
  const pool = newPool();
  const running = await pool.start();
  const gate = join(pool.dir, "go");
  const exec = (exitCode: number): object => ({
    exec: ["sh", "-c", `while [ ! -e ${gate} ]; do sleep 0.1; done; echo said; exit ${exitCode}`],
    max_attempts: 1,
  });
  const taken: [id: string, exitCode: number, take: (path: string) => void][] = [
    ["folder", 0, (path) => fs.mkdirSync(path)],
    ["link", 0, (path) => fs.symlinkSync(join(pool.dir, "nowhere"), path)],
    ["text", 0, (path) => fs.writeFileSync(path, '{"of":"a stranger"}')],
    ["fails", 1, (path) => fs.writeFileSync(path, "")],
  ];
  const trayOf = (exitCode: number): string => (exitCode === 0 ? "outbox" : "failed");
  const fileOf = (id: string, exitCode: number): string =>
    `${id}_${exitCode === 0 ? "result" : "error"}.json`;
  for (const [id, exitCode] of taken) pool.drop(id, exec(exitCode));
  await waitFor(
    () => fs.readdirSync(pool.processing).filter((file) => file.includes("~w-")).length === 4,
    { what: "the runs" },
  );
  for (const [id, exitCode, take] of taken)
    take(join(pool.mailbox, trayOf(exitCode), fileOf(id, exitCode)));
  fs.writeFileSync(gate, "");
  const told = (): object[] =>
    pool.alerts().filter(({ message }) => String(message).includes("the record is kept as"));
  await waitFor(() => told().length === 4 && pool.events().filter(isConflict).length === 4, {
    what: "the news of it",
  });
  for (const [id, exitCode] of taken) {
    const tray = join(pool.mailbox, trayOf(exitCode));
    const kept = fs.readdirSync(tray).filter((file) => file.startsWith(`${id}~`));
    expect(kept).toHaveLength(1);
    const keptAs = `${trayOf(exitCode)}/${kept[0]}`;
    const record = JSON.parse(fs.readFileSync(join(tray, kept[0] ?? ""), "utf8"));
    const { head, owner } = splitLease(record.lease);
    expect(record).toMatchObject({ task_id: id, attempts: 1, task: exec(exitCode) });
    expect(pool.events().find((event) => isConflict(event) && event["task_id"] === id)).toEqual(
      expect.objectContaining({ kept_as: keptAs, lease: head, owner }),
    );
    await waitFor(
      () => (running.stderr() + running.stdout()).includes(`the record is kept as ${keptAs}`),
      {
        what: "the notice of it",
      },
    );
  }
  expect(fs.statSync(join(pool.outbox, "folder_result.json")).isDirectory()).toBe(true);
  expect(fs.readlinkSync(join(pool.outbox, "link_result.json"))).toContain("nowhere");
  const text = fs.readFileSync(join(pool.outbox, "text_result.json"), "utf8");
  expect(text).toBe('{"of":"a stranger"}');
  await waitFor(
    () => [pool.processing, pool.tmp].every((dir) => fs.readdirSync(dir).length === 0),
    { what: "the end of the settlements" },
  );
});

it("a batch too: its record is kept beside what has taken its name", async () => {
  const pool = newPool();
  await pool.start();
  const gate = join(pool.dir, "go");
  const line = { exec: ["sh", "-c", `while [ ! -e ${gate} ]; do sleep 0.1; done`] };
  const file = join(pool.dir, "b.ndjson");
  fs.writeFileSync(file, `${JSON.stringify(line)}\n`.repeat(2));
  await pool.run(["enqueue", "--batch", "--file", file, "--id", "b"]);
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.includes("~w-")), {
    what: "the run",
  });
  fs.mkdirSync(join(pool.outbox, "b_result.json"));
  fs.writeFileSync(gate, "");
  await waitFor(() => pool.events().some(isConflict), { what: "the conflict" });
  const kept = fs.readdirSync(pool.outbox).find((name) => /^b~[a-z0-9]+_result\.json$/.test(name));
  const record = JSON.parse(fs.readFileSync(join(pool.outbox, String(kept)), "utf8"));
  expect(record.batch).toMatchObject({ lines: 2, completed: 2 });
});

function isConflict(event: Record<string, unknown>): boolean {
  return event["event"] === "conflict";
}
