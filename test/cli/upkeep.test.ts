/** init, retry, clean, doctor, config, schema, completion. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { OptionTable } from "../../src/cli/shell/command-spec.ts";
import { SHARED_OPTIONS } from "../../src/cli/shell/options.ts";
import { loadCommand, REGISTRY } from "../../src/cli/shell/registry.ts";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Cli, newCli, put } from "./run-cli.ts";

test("init makes the whole tree, private, and never overwrites", async () => {
  const cli = newCli();
  expect((await cli(["init", "--sample"])).code).toBe(0);
  const state = join(cli.dir, "state");
  for (const path of [
    "mailbox/inbox",
    "mailbox/.tmp",
    "control/failed",
    "runs",
    "analytics",
    "workers",
  ]) {
    expect(fs.statSync(join(state, path)).mode & 0o777, path).toBe(0o700);
  }
  const roadmap = fs.readFileSync(join(state, "roadmap.yaml"), "utf8");
  expect(roadmap).toMatch(/\{ id: TEST-SUPERVISOR-INTEGRATION-001, .*status: pending/);
  expect(parse(roadmap).epics[0].milestones[0].tasks).toHaveLength(2);
  put(cli, "config.yaml", "workers: 7\n");
  const again = await cli(["init", "--sample", "--json"]);
  expect(JSON.parse(again.stdout).files.map((file: { made: boolean }) => file.made)).toEqual([
    false,
    false,
    false,
  ]);
  expect(fs.readFileSync(join(state, "config.yaml"), "utf8")).toBe("workers: 7\n");
});

test("init makes a tree in which nothing runs; with --sample a plan runs", async () => {
  const cli = newCli();
  const made = JSON.parse((await cli(["init", "--json"])).stdout);
  expect(made.files).toEqual([{ path: join(cli.dir, "state", "config.yaml"), made: true }]);
  const inForce = JSON.parse((await cli(["config", "--json"])).stdout).settings.agents.value;
  expect(inForce).toEqual([]);
  expect((await cli(["run", "--drain"])).stdout).toContain("0 completed, 0 failed");
  expect((await cli(["init", "sample", "--sample"])).code).toBe(0);
  const run = await cli(["run", "--drain", "--state", "sample"]);
  expect(run.stdout).toContain("2 completed, 0 failed");
});

test.each(["", "--sample"])(
  "the config of init %s is valid as it is and with every comment taken away",
  async (flag) => {
    const cli = newCli();
    await cli(["init", ...(flag === "" ? [] : [flag])]);
    const path = join(cli.dir, "state", "config.yaml");
    expect((await cli(["config"])).code).toBe(0);
    const bare = fs
      .readFileSync(path, "utf8")
      .replace(/^(?!# (?:yaml-language-server|Settings|Flags|`)).*$/gm, (line) =>
        line.replace(/^# /, ""),
      );
    fs.writeFileSync(path, bare);
    const result = await cli(["config", "--json"]);
    expect(result.stderr).toBe("");
    expect(JSON.parse(result.stdout).settings.agents.value).toHaveLength(2);
  },
);

test("config shows each value with its source", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "workers: 7\nretry: { max_attempts: 5 }\n");
  const { settings } = JSON.parse(
    (await cli(["config", "--json"], { env: { MAILCHUTE_WORKERS: "9" } })).stdout,
  );
  expect(settings.workers).toEqual({ value: 9, source: "environment" });
  expect(settings["retry.max_attempts"]).toEqual({ value: 5, source: "config.yaml" });
  expect(settings.grace_ms.source).toBe("built-in");
});

test("a bad config ends with exit code 78 and names the place", async () => {
  const cli = newCli();
  put(cli, "config.yaml", "retry:\n  max_attemps: 3\n");
  const result = await cli(["config"]);
  expect(result.code).toBe(78);
  expect(result.stderr).toContain("config.yaml:2:3");
  expect(result.stderr).toContain('did you mean "max_attempts"?');
});

test("retry puts a failed task back; 3 when there is none, 4 when it waits, runs or has completed", async () => {
  const cli = newCli();
  const record = {
    task_id: "b",
    status: "failed",
    error: "x",
    attempts: 1,
    code: "ErrExit",
    kind: "exit",
    task: { id: "b", exec: ["true"] },
  };
  put(cli, "mailbox/failed/b_error.json", record);
  put(cli, "mailbox/failed/c_error.json", {
    ...record,
    task_id: "c",
    task: { id: "c", exec: ["true"] },
  });
  put(cli, "mailbox/outbox/d_result.json", { task_id: "d", status: "completed" });
  expect(await cli(["retry", "b"])).toMatchObject({ code: 0, stdout: "b\n" });
  expect(fs.existsSync(join(cli.inbox, "b.json"))).toBe(true);
  expect((await cli(["retry", "nope"])).code).toBe(3);
  put(cli, "mailbox/processing/e@e59rubdi.0~again-37641jm5.json", record);
  for (const id of ["b", "d", "e"]) expect((await cli(["retry", id])).code, id).toBe(4);
  expect((await cli(["retry"])).code).toBe(2);
  expect(await cli(["retry", "--failed"])).toMatchObject({ code: 0, stdout: "c\n" });
  expect((await cli(["retry", "--failed"])).code).toBe(3);
});

test("recover finishes a retry that somebody died in the middle of", async () => {
  const cli = newCli();
  const marker = "b@e59rubdi.0~again-37641jm5.json";
  const path = put(cli, `mailbox/processing/${marker}`, {
    task_id: "b",
    status: "failed",
    error: "x",
    attempts: 1,
    code: "ErrExit",
    kind: "exit",
    task: { id: "b", exec: ["true"] },
  });
  expect(await cli(["recover"])).toMatchObject({
    code: 0,
    stdout: `finish   b  processing/${marker}\n`,
  });
  expect(fs.existsSync(path)).toBe(false);
  expect(fs.existsSync(join(cli.inbox, "b.json"))).toBe(true);
  expect((await cli(["recover"])).code).toBe(3);
});

test("clean removes what is past its retention, and with --dry-run only counts it", async () => {
  const cli = newCli();
  const old = [
    put(cli, "mailbox/outbox/a_result.json", {}),
    join(put(cli, "runs/a@s.1.1/stdout.log", "x"), ".."),
    join(put(cli, "runs/2026-01-31/a@abcdefgh260131.1.1/stdout.log", "x"), ".."),
    put(cli, "analytics/supervisor_lifecycle.2026-01-01T00-00-00-000Z.jsonl", ""),
    join(put(cli, "evidence/left-the-plan/summary.md", ""), ".."),
    put(cli, "workers/w-1-1.json", ""),
    put(cli, "questions/answered/old.md", ""),
  ];
  const kept = [
    put(cli, "mailbox/outbox/b_result.json", {}),
    put(cli, "runs/notes/mine.txt", "x"),
    put(cli, "questions/answered/new.md", ""),
    put(cli, "questions/open/old.md", ""),
    put(cli, "analytics/supervisor_lifecycle.2026-01-02T00-00-00-000Z.jsonl", ""),
  ];
  const longAgo = Date.now() / 1000 - 90 * 86_400;
  // It ran for another machine, which has not said yet that it has the result.
  put(cli, "cluster/jobs/x.t.s.1.json", {});
  const awaited = put(cli, "mailbox/outbox/x.t.s.1_result.json", {});
  kept.push(awaited);
  for (const path of [...old, join(kept[1] ?? "", ".."), awaited])
    fs.utimesSync(path, longAgo, longAgo);
  const dry = JSON.parse((await cli(["clean", "--dry-run", "--json"])).stdout);
  expect(dry).toEqual({
    dry_run: true,
    results: 1,
    errors: 0,
    staged: 1,
    runs: 2,
    journals: 1,
    agents: 0,
    questions: 1,
    evidence: 1,
  });
  expect(old.every((path) => fs.existsSync(path))).toBe(true);
  expect((await cli(["clean"])).stdout).toContain("removed 1 results");
  expect(old.some((path) => fs.existsSync(path))).toBe(false);
  expect(kept.every((path) => fs.existsSync(path))).toBe(true);
});

test("doctor says of a tray that is a link only that it is no directory", async () => {
  const cli = newCli();
  await cli(["init"]);
  const outbox = join(cli.dir, "state/mailbox/outbox");
  fs.renameSync(outbox, join(cli.dir, "elsewhere"));
  fs.symlinkSync(join(cli.dir, "elsewhere"), outbox);
  const { checks } = JSON.parse((await cli(["doctor", "--json"])).stdout);
  expect(checks.filter((check: { status: string }) => check.status === "fail")).toEqual([
    expect.objectContaining({ message: `${outbox} is not a directory` }),
  ]);
});

test("doctor passes on a fresh tree and names what is wrong with a bad one", async () => {
  const cli = newCli();
  await cli(["init"]);
  const good = await cli(["doctor", "--json"]);
  expect(
    JSON.parse(good.stdout).checks.filter((check: { status: string }) => check.status === "fail"),
  ).toEqual([]);
  expect(good.code).toBe(0);
  fs.chmodSync(cli.inbox, 0o777);
  const old = put(cli, "mailbox/inbox/draft.json~", "x");
  fs.utimesSync(old, Date.now() / 1000 - 7200, Date.now() / 1000 - 7200);
  put(cli, "analytics/supervisor_lifecycle.jsonl", '{"event":"x"}\n{"ev');
  put(cli, "config.yaml", "wrokers: 1\n");
  const bad = await cli(["doctor"]);
  expect(bad.code).toBe(1);
  const text = bad.stdout.replace(/\s+/g, " ");
  expect(text).toContain("writable by every user");
  expect(text).toContain("draft.json~");
  expect(text).toContain("are torn");
  expect(text).toContain('did you mean "workers"?');
});

/** Names of the checks of `doctor` that fail, after `run` has refused the same tree. */
async function refusedBoth(cli: Cli): Promise<string[]> {
  const run = await cli(["run", "--drain"]);
  expect(run.code, run.stderr).toBe(73);
  const { code, stdout } = await cli(["doctor", "--json"]);
  expect(code).toBe(1);
  return JSON.parse(stdout).checks.flatMap((check: { status: string; name: string }) =>
    check.status === "fail" ? [check.name] : [],
  );
}

test("doctor fails where run refuses: a state directory that everybody may write into", async () => {
  const cli = newCli();
  await cli(["init"]);
  fs.chmodSync(join(cli.dir, "state"), 0o777);
  expect(await refusedBoth(cli)).toEqual(["state directory"]);
});

test.skipIf(process.getuid?.() !== 0)(
  "doctor fails where run refuses: a tree of another user, unless the settings allow that one",
  async () => {
    const cli = newCli();
    await cli(["init"]);
    const state = join(cli.dir, "state");
    for (const name of ["", ...fs.readdirSync(state, { recursive: true, encoding: "utf8" })])
      fs.chownSync(join(state, name), 1234, 1234);
    // One line a mailbox, however many directories it has.
    expect(await refusedBoth(cli)).toEqual(["state directory", "mailbox", "control mailbox"]);
    put(cli, "config.yaml", "uids: [1234]\n");
    expect((await cli(["doctor"])).code).toBe(0);
    expect((await cli(["run", "--once"])).code).not.toBe(73);
  },
);

test("each schema is a JSON Schema", async () => {
  const cli = newCli();
  for (const name of ["task", "result", "error", "config"]) {
    const schema = JSON.parse((await cli(["schema", name])).stdout);
    expect(schema, name).toMatchObject({ $id: name, type: "object" });
  }
  expect((await cli(["schema", "tsk"])).code).toBe(2);
});

test("the completion for bash offers verbs and options", async () => {
  const cli = newCli();
  const script = await cli(["completion", "bash"]);
  expect(script.code).toBe(0);
  const probe = `${script.stdout}
offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _mailchute; echo "\${COMPREPLY[*]}"; }
offer mailchute enq; offer mailchute enqueue --pri; offer mailchute ls --state-is fa`;
  expect(spawnSync("bash", ["-c", probe], { encoding: "utf8" }).stdout).toBe(
    "enqueue\n--priority\nfailed\n",
  );
});

test("the completion for bash offers for each option of each verb only what the verb takes", async () => {
  const cli = newCli();
  await cli(["enqueue", "--id", "job-1", "--", "true"]);
  const bin = join(cli.dir, "mailchute");
  fs.writeFileSync(bin, "#!/bin/sh\necho job-1\n", { mode: 0o755 });
  expect((await cli(["completion", "ids"])).stdout).toBe("job-1\n");
  const { stdout: script } = await cli(["completion", "bash"]);
  const tables = new Map<string, OptionTable>();
  for (const verb of Object.keys(REGISTRY)) {
    const { options } = await loadCommand(verb);
    tables.set(verb, { ...options, ...SHARED_OPTIONS });
  }
  const faultsOf = (text: string): string[] => {
    const probes = [...tables].flatMap(([verb, table]) =>
      Object.keys(table).map(
        (name) => `printf "%s " ${verb} ${name}; offer mailchute ${verb} --${name} ""`,
      ),
    );
    const probe = `${text}
offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _mailchute; echo "\${COMPREPLY[*]}"; }
cd "$(mktemp -d)"; ${probes.join("\n")}`;
    const env = { ...process.env, PATH: `${cli.dir}:${process.env["PATH"]}` };
    const { stdout } = spawnSync("bash", ["-c", probe], { encoding: "utf8", env });
    return stdout
      .trimEnd()
      .split("\n")
      .flatMap((line) => {
        const [verb = "", name = "", ...offered] = line.trim().split(" ");
        const table = tables.get(verb) ?? {};
        const spec = table[name];
        return offered
          .filter((word) => {
            if (spec === undefined) return true;
            if ("value" in spec) {
              const choices = spec.type === "text" ? (spec.choices ?? []) : [];
              return !choices.includes(word) && !(spec.value === "ID" && word === "job-1");
            }
            const flag = word.replace(/^--(?:no-)?/, "");
            return (
              word.startsWith("--") &&
              !Object.hasOwn(table, flag) &&
              !Object.hasOwn(table, word.slice(2))
            );
          })
          .map((word) => `${verb} --${name} offers ${word}`);
      });
  };
  expect(faultsOf(script)).toEqual([]);
  // As if the verb did not count: what one verb takes would be offered for all.
  expect(faultsOf(script.replaceAll(/"[\w-]+ (--[\w-]+)"/g, '*" $1"'))).not.toEqual([]);
  expect(script).toContain('"enqueue -s"');
});

test("what is dropped again just as it was runs no more, and everybody is told; retry --completed runs it again", async () => {
  const pool = newPool();
  const count = join(pool.dir, "count");
  const nightly = { exec: ["sh", "-c", `echo x >> ${count}`] };
  const runs = (): number => fs.readFileSync(count, "utf8").length / 2;
  const statusOf = async () => JSON.parse((await pool.run(["status", "--json"])).stdout);
  const run = await pool.start();
  pool.drop("nightly", nightly);
  await pool.result("nightly");
  pool.drop("nightly", nightly);
  const told =
    "nightly.json was dropped again unchanged, and its task has completed: no new run starts; to run it again: `mailchute retry nightly --completed`, or another id";
  await waitFor(() => run.stderr().includes(told), { what: "the word in what run says" });
  await waitFor(() => pool.alerts().some(({ message }) => message === told), { what: "an alert" });
  const before = await waitFor(
    async () => {
      const status = await statusOf();
      return status.dropped_again === null ? undefined : status;
    },
    { what: "the word in status" },
  );
  expect(before.metrics.tasks.duplicates).toBe(1);
  expect(pool.events().filter(({ event }) => event === "duplicate")).toMatchObject([
    { task_id: "nightly", error: "the same task again, which has completed: nothing to do" },
  ]);
  expect(before.obstacles).toEqual([
    {
      what: expect.stringMatching(
        /^nightly was dropped again .*, just as it was: its task has completed, and nothing more ran$/,
      ),
      do: "mailchute retry nightly --completed, or drop it under another name",
    },
  ]);
  expect(runs()).toBe(1);
  const refused = await pool.run(["retry", "nightly"]);
  expect(refused.code).toBe(4);
  expect(refused.stderr).toContain("`mailchute retry nightly --completed` runs it again");
  const again = await pool.run(["retry", "nightly", "--completed"]);
  expect(again).toMatchObject({ code: 0, stdout: "nightly\n" });
  await waitFor(() => runs() === 2, { what: "the second run" });
  await pool.result("nightly");
  expect((await statusOf()).dropped_again).toBe(null);
});

test("a node of the plan that is done is not run again by its task alone", async () => {
  const pool = newPool();
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    "nodes:\n  - { id: n, exec: [sh, -c, 'echo \"<result>{}</result>\"'] }\n",
  );
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
  const { code, stderr } = await pool.run(["retry", "n", "--completed"]);
  expect(code).toBe(4);
  expect(stderr).toContain("do: mailchute node set-status n open\n");
  expect(fs.readdirSync(pool.outbox)).toContain("n_result.json");
});
