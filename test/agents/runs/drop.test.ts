/** A run speaks through its own folder: what it drops is submitted outside, with its sender, whatever dies; it steers nothing. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, newBench, type Step } from "./bench.ts";

takeSome();

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;
const KINDS = ["claude", "codex", "app-server", "exec"] as const;

/** An agent `coder` whose run is this shell script. */
function benchOf(kind: (typeof KINDS)[number], script: string): Bench {
  const turns: Step[][] = [[{ run: script }, { say: "done" }]];
  if (kind === "app-server")
    return newBench([{ name: "coder", kind: "codex", turns, settings: { mode: "app-server" } }]);
  if (kind !== "exec") return newBench([{ name: "coder", kind, turns }]);
  const bench = newBench([]);
  const config = join(bench.pool.state, "config.yaml");
  const agent = { name: "coder", kind, program: "sh", args: ["-c", script] };
  const text = fs.readFileSync(config, "utf8");
  fs.writeFileSync(config, text.replace(/^agents: .*$/m, `agents: ${JSON.stringify([agent])}`));
  return bench;
}

const dropMain = (pool: Pool): void =>
  pool.drop("main", { agent: "coder", prompt: "go", max_attempts: 3 });

function drops(pool: Pool): string[] {
  const dir = join(pool.state, "drops");
  return fs.existsSync(dir) ? fs.readdirSync(dir).filter((name) => name.includes("@")) : [];
}

const eventsOf = (pool: Pool, id: string, event: string): unknown[] =>
  pool.events().filter((line) => line["task_id"] === id && line["event"] === event);

describe.each(KINDS)("a run of kind %s", (kind) => {
  it("leaves tasks with the command line and with mv, and can wait for them", async () => {
    const file = '{"exec":["true"],"payload":12345678901234567890}';
    const bench = benchOf(
      kind,
      [
        `${CLI} enqueue --id waited --wait -- true`,
        `${CLI} enqueue --id waited -- true`,
        `echo '${file}' > "$MAILCHUTE_DROP/moved.part" && mv "$MAILCHUTE_DROP/moved.part" "$MAILCHUTE_DROP/moved.json"`,
      ].join("\n"),
    );
    const { pool } = bench;
    await pool.start();
    dropMain(pool);
    await pool.result("main", 60_000);
    for (const id of ["waited", "moved"]) {
      await pool.result(id);
      const record = fs.readFileSync(join(pool.outbox, `${id}_result.json`), "utf8");
      expect(JSON.parse(record)).toMatchObject({ task: { sender: "main" }, attempts: 1 });
      if (id === "moved") expect(record).toContain("12345678901234567890");
    }
    await waitFor(() => drops(pool).length === 0, { what: "its folder to be gone" });
  });

  it("may not steer, and is told what to do instead", async () => {
    const verbs = [
      "pause",
      "resume --agent coder",
      "control pause",
      "stop",
      "retry x",
      "cancel x",
      "answer x yes",
      "say x hello",
      "continue x more",
      "set-workers 9",
      "node add y",
    ];
    const bench = benchOf(
      kind,
      verbs
        .map(
          (verb) =>
            `${CLI} ${verb} 2>>"$MAILCHUTE_STATE/../said"; echo "$?" >>"$MAILCHUTE_STATE/../codes"`,
        )
        .join("\n"),
    );
    const { pool } = bench;
    await pool.start();
    dropMain(pool);
    await pool.result("main", 60_000);
    const codes = fs.readFileSync(join(pool.dir, "codes"), "utf8").trim().split("\n");
    expect(codes).toEqual(verbs.map(() => "4"));
    const said = fs.readFileSync(join(pool.dir, "said"), "utf8");
    expect(said.match(/ErrInsideRun/g)).toHaveLength(verbs.length);
    expect(said).toContain("name new nodes in next.addNodes");
  });
});

it("what is no task is kept beside the run, and a person is told why", async () => {
  const put = (name: string, text: string): string =>
    `printf '%s' '${text}' > "$MAILCHUTE_DROP/${name}"`;
  const bench = benchOf(
    "claude",
    [
      put("torn.json", '{"exec": ['),
      put("forged.json", '{"exec":["true"],"sender":"boss"}'),
      put("left.part", "x"),
      'ln -s /etc/passwd "$MAILCHUTE_DROP/link.json"',
    ].join("\n"),
  );
  const { pool } = bench;
  await pool.start();
  dropMain(pool);
  const { run } = await pool.result("main");
  const kept = join(pool.state, "runs", String(run), "refused");
  expect(fs.readdirSync(kept).toSorted()).toEqual(["forged.json", "link.json", "torn.json"]);
  const told = pool.alerts().filter(({ alert }) => alert === "drop_refused");
  expect(told).toHaveLength(3);
  expect(JSON.stringify(told)).toContain("it has the field `sender`, which only mailchute sets");
  expect(drops(pool)).toEqual([]);
});

it("what a killed worker left is submitted by the next one, once, also when it was submitted already", async () => {
  const bench = benchOf("claude", "sleep 1000");
  const { pool } = bench;
  await pool.start();
  dropMain(pool);
  await waitFor(() => bench.log("coder").some((one) => one.event_type === "tool_started"), {
    what: "the run",
  });
  const [folder = ""] = drops(pool);
  const [worker] = pool.workers();
  process.kill(worker?.pid ?? 0, "SIGSTOP");
  const text = '{"id":"new","exec":["true"]}';
  const twice = '{"id":"twice","exec":["true"]}';
  fs.writeFileSync(join(pool.state, "drops", folder, "new.json"), text);
  // As after a crash between the submission and the removal of the file.
  fs.writeFileSync(join(pool.state, "drops", folder, "twice.json"), twice);
  const stamped = twice.replace("{", '{"sender":"main",');
  fs.writeFileSync(join(pool.inbox, "twice.json"), stamped);
  process.kill(worker?.pid ?? 0, "SIGKILL");
  for (const id of ["new", "twice"]) {
    await pool.result(id, 60_000);
    expect(eventsOf(pool, id, "started")).toHaveLength(1);
  }
  await waitFor(() => !drops(pool).includes(folder), { what: "the old folder to be gone" });
  expect(pool.alerts().filter(({ alert }) => alert === "drop_refused")).toEqual([]);
  expect((await pool.run(["cancel", "main", "--wait"])).code).toBe(0);
});

it("a task's own program has no such folder, and writes into the inbox itself", async () => {
  const bench = benchOf("exec", "true");
  const { pool } = bench;
  await pool.start();
  pool.drop("plain", {
    exec: ["sh", "-c", `test -z "$MAILCHUTE_DROP" && ${CLI} enqueue --id sub -- true`],
  });
  await pool.result("plain");
  await pool.result("sub");
  expect(fs.existsSync(join(pool.state, "drops"))).toBe(false);
});
