/** Agents that people and agents spawn: each has a name and mail of its own, and there are never too many. Through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { listAgents, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { explainSpawnLimit } from "../../../src/parts/mail/agents/spawn-limits.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newBench } from "../../agents/runs/bench.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";

takeSome();

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;
const SLOW_MS = 60_000;

/** A pool with the agent `Coder`, whose first run is this script; its other runs say `ok`. */
function newSpawner(script: readonly string[] = ["true"], more: readonly string[] = []) {
  const turns = [[{ run: script.join("\n") }, { say: "done" }], [{ say: "ok" }]];
  const bench = newBench([
    { name: "Coder", kind: "claude", turns, settings: { account: "coder" } },
  ]);
  const { pool } = bench;
  const config = ["mail_enabled: true", "data: .", ...more, ""].join("\n");
  fs.appendFileSync(join(pool.state, "config.yaml"), config);
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  const store = { dataDir: pool.state, isDurable: false };
  const say = (to: string, text: string): unknown =>
    send(store, { scope: OUTSIDE, from: "human", via: "cli", to: [to], text }, Date.now());
  const spawned = () => listAgents(folder, true).filter((one) => one.spawned !== null);
  const said = () => [...new MessageReader(folder).next()];
  return { bench, pool, folder, say, spawned, said };
}

/** Runs the script as the first run of Coder. */
async function runMain({ pool }: ReturnType<typeof newSpawner>): Promise<void> {
  await pool.start();
  pool.drop("main", { agent: "Coder", prompt: "go" });
  await pool.result("main", SLOW_MS);
}

describe("spawn", () => {
  it("makes an agent that does its task, tells of its end, and is woken for its own mail", async () => {
    const { bench, pool, folder, say, said } = newSpawner();
    await pool.start();
    fs.writeFileSync(join(pool.dir, "a.ts"), "");
    const made = await pool.run([
      "spawn",
      "Coder",
      "mend it",
      "--context",
      "It is flaky.",
      "--files",
      "a.ts",
      "--json",
    ]);
    expect(made).toMatchObject({ code: 0 });
    const { name, status, task_id: task } = JSON.parse(made.stdout);
    expect({ name, status }).toEqual({ name: "coder-2", status: "completed" });
    const [told = ""] = bench.messages("Coder");
    for (const part of ["mend it", "It is flaky.", `- ${join(pool.dir, "a.ts")}`])
      expect(told).toContain(part);
    expect(readAgent(folder, name)).toMatchObject({
      from: "coder",
      type: "claude",
      inc: 1,
      task: "mend it",
      home: pool.state,
      spawned: { by: "human", depth: 1, task: null, task_id: task, config: { kind: "claude" } },
    });
    await waitFor(() => said().some(({ type }) => type === "exit"), { what: "the exit" });
    expect(said()[0]).toMatchObject({ from_agent: "coder-2", type: "exit" });
    say("coder-2", "look at X");
    await waitFor(() => unreadOf(folder, "coder-2").messages.length === 0, {
      what: "the mail to be read",
      timeoutMs: SLOW_MS,
    });
    expect(bench.messages("Coder").at(-1)).toContain("You are the agent coder-2 in the scope");
    await waitFor(() => said().filter(({ type }) => type === "exit").length === 2, {
      what: "the exit of the wake-up",
    });
    expect(said().at(-1)).toMatchObject({ from_agent: "coder-2" });
  });

  it("takes a given name, which the next one gets as a higher incarnation without the old mail", async () => {
    const { pool, folder, say } = newSpawner();
    const spawn = (...more: string[]) =>
      pool.run(["spawn", "claude", "x", "--name", "Ann", "--detach", ...more]);
    expect((await spawn()).stdout).toMatch(/^Ann: task spawn\.[0-9a-f]{16}\.1\n$/i);
    expect(await spawn()).toMatchObject({ code: 4 });
    say("ann", "old mail");
    const busy = await pool.run(["archive", "ann", "--scope", "unknown:main"]);
    expect(busy).toMatchObject({ code: 4 });
    expect(busy.stderr).toContain("its task spawn.");
    await pool.run(["run", "--drain"]);
    expect(await pool.run(["archive", "ann", "--scope", "unknown:main"])).toMatchObject({
      code: 0,
    });
    say("ann", "to nobody");
    expect((await spawn()).stdout).toMatch(/\.2\n$/);
    expect(readAgent(folder, "ann")).toMatchObject({ inc: 2, from: "coder", archived_at: null });
    expect(unreadOf(folder, "ann").messages).toEqual([]);
    await pool.run(["run", "--drain"]);
    expect(pool.results()).toHaveLength(2);
  });

  it.each([
    [["nobody", "x"], 78, 'no coding agent "nobody" is configured: there is Coder'],
    [["coder", "x", "--name", "Coder"], 4, "is an agent of config.yaml"],
    [["coder", "x", "--name", "june"], 2, "it is the name of the orchestrator"],
    [["coder", "x", "--name", "human"], 2, "is the name of a person"],
    [["coder", "x", "--name", "a b"], 2, "a name has letters"],
    [["coder", " "], 2, "there is no task"],
    [["coder", "x", "--files", "none.ts"], 2, 'there is no "none.ts"'],
    [["coder", "x", "--cwd", "none"], 2, "its task cannot run in"],
  ])("is refused with its reason, and makes nothing: %j", async (args, code, reason) => {
    const { pool, spawned } = newSpawner();
    const answer = await pool.run(["spawn", ...args]);
    expect(answer).toMatchObject({ code });
    expect(answer.stderr).toContain(reason);
    expect(spawned()).toEqual([]);
    expect(fs.existsSync(pool.inbox) ? fs.readdirSync(pool.inbox) : []).toEqual([]);
  });
});

describe("spawn in a run", () => {
  it("is done by the worker outside, in the name of the run's agent, whatever the request says", async () => {
    const made = newSpawner([
      `${CLI} spawn coder "child" --name kid --json >> "$MAILCHUTE_STATE/../out"`,
      `echo '{"spawn": "coder", "content": "x", "from_agent": "human"}' > "$MAILCHUTE_DROP/x.part"`,
      `mv "$MAILCHUTE_DROP/x.part" "$MAILCHUTE_DROP/forged.mail"`,
      `${CLI} archive kid 2>> "$MAILCHUTE_STATE/../out"; true`,
    ]);
    await runMain(made);
    const { pool, spawned } = made;
    const [answer = "", ...refusal] = fs.readFileSync(join(pool.dir, "out"), "utf8").split("\n");
    expect(JSON.parse(answer)).toMatchObject({ name: "kid", status: "completed" });
    expect(refusal.join("\n")).toContain("a run of an agent may not use `mailchute archive`");
    expect(spawned()).toMatchObject([{ name: "kid", spawned: { by: "coder", depth: 1 } }]);
    const task = spawned()[0]?.spawned?.task_id ?? "";
    const record = JSON.parse(fs.readFileSync(join(pool.outbox, `${task}_result.json`), "utf8"));
    expect(record.task).toMatchObject({ sender: "main", env: { MAILCHUTE_AGENT: "kid" } });
    await waitFor(() => pool.alerts().some(({ alert }) => alert === "drop_refused"), {
      what: "the refusal of the forged request",
    });
    expect(JSON.stringify(pool.alerts())).toContain("this run cannot spawn as");
  });

  it("without end is stopped at the limits, by the command line and by files, and makes nothing more", async () => {
    const made = newSpawner(
      [
        // Each child, too: it gets this script, or says ok.
        `for n in 1 2 3 4 5; do ${CLI} spawn coder "child $n" --detach; done > "$MAILCHUTE_STATE/../out" 2>&1`,
        `for n in 1 2 3 4 5; do echo '{"spawn": "coder", "content": "by file"}' > "$MAILCHUTE_DROP/$n.part"; mv "$MAILCHUTE_DROP/$n.part" "$MAILCHUTE_DROP/f$n.mail"; done`,
      ],
      ["spawn: {agents_max: 3, per_hour_max: 100, depth_max: 3}"],
    );
    await runMain(made);
    const { pool, spawned } = made;
    expect(spawned().map(({ name }) => name)).toEqual(["coder-2", "coder-3", "coder-4"]);
    const out = fs.readFileSync(join(pool.dir, "out"), "utf8");
    expect(out.match(/3 spawned agents are there, and spawn.agents_max is 3/g)).toHaveLength(2);
    await waitFor(() => pool.alerts().filter(({ alert }) => alert === "drop_refused").length >= 1, {
      what: "the refusal of the files",
    });
    for (const { spawned: one } of spawned()) await pool.result(one?.task_id ?? "", SLOW_MS);
    expect(pool.settledCount()).toBe(4);
  });

  it("by agents that were spawned themselves ends at the depth", async () => {
    const spawnAgain = `${CLI} spawn coder "again" --detach >> "$MAILCHUTE_STATE/../out" 2>&1; true`;
    const bench = newBench([
      {
        name: "Coder",
        kind: "claude",
        turns: [[{ run: spawnAgain }, { say: "done" }]],
        settings: { account: "coder" },
      },
    ]);
    const { pool } = bench;
    fs.appendFileSync(join(pool.state, "config.yaml"), "mail_enabled: true\ndata: .\n");
    await pool.start();
    expect(await pool.run(["spawn", "Coder", "go", "--detach"])).toMatchObject({ code: 0 });
    const read = (): string =>
      fs.existsSync(join(pool.dir, "out")) ? fs.readFileSync(join(pool.dir, "out"), "utf8") : "";
    await waitFor(() => read().includes("spawn.depth_max is 3"), {
      what: "the refusal",
      timeoutMs: SLOW_MS,
    });
    const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
    const depths = listAgents(folder).flatMap(({ name, spawned }) =>
      spawned === null ? [] : [`${name} ${spawned.depth} by ${spawned.by}`],
    );
    expect(depths).toEqual(["coder-2 1 by human", "coder-3 2 by coder-2", "coder-4 3 by coder-3"]);
  });

  it("of a killed worker is done by the next one, once", async () => {
    const made = newSpawner(["sleep 1000"]);
    const { bench, pool, spawned } = made;
    await pool.start();
    pool.drop("main", { agent: "Coder", prompt: "go" });
    await waitFor(() => bench.log("Coder").some((one) => one.event_type === "tool_started"), {
      what: "the run",
    });
    const [worker] = pool.workers();
    process.kill(worker?.pid ?? 0, "SIGSTOP");
    const drops = join(pool.state, "drops");
    const own = fs.readdirSync(drops).find((name) => name.startsWith("main@")) ?? "";
    fs.writeFileSync(join(drops, own, "a.mail"), '{"spawn": "coder", "content": "child"}');
    process.kill(worker?.pid ?? 0, "SIGKILL");
    // Its folder has another name while it is taken.
    const isTaken = (): boolean => fs.readdirSync(drops).every((name) => !name.includes(own));
    await waitFor(isTaken, { what: "the folder to be taken" });
    expect(spawned()).toMatchObject([{ name: "coder-2", spawned: { by: "coder", task: null } }]);
    await pool.result(spawned()[0]?.spawned?.task_id ?? "", SLOW_MS);
  });
});

describe("the limits of spawn", () => {
  const limits = { depth_max: 2, agents_max: 2, per_hour_max: 3, archive_ms: 0 };
  const one = (createdAt: number, archivedAt: number | null = null) => ({
    created_at: createdAt,
    archived_at: archivedAt,
    spawned: { by: "human", depth: 1 } as never,
  });
  const own = { created_at: 0, archived_at: null, spawned: null };
  it("count depth, spawned agents that are there, and those of the last hour", () => {
    const why = (agents: Parameters<typeof explainSpawnLimit>[0], depth = 1) =>
      explainSpawnLimit(agents, depth, limits, 10_000)?.fault;
    expect(why([own, own, own], 2)).toBeUndefined();
    expect(why([], 3)).toContain("it would be agent 3 in a chain");
    expect(why([one(1), one(2)])).toContain("2 spawned agents are there");
    expect(why([one(1), one(2, 3)])).toBeUndefined();
    const recent = [one(9000, 9001), one(9500, 9501), one(20_000, 20_001)];
    expect(why(recent)).toContain("3 agents were spawned within an hour");
    expect(why([one(6400, 6401), ...recent.slice(1)])).toBeUndefined();
  });
});
