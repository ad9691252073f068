/** A person takes a task over on the agent's own screen, and gives it back. Real pools, and a stand-in for the screen. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isGone } from "../../../src/host/identity.ts";
import type { Pool } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, newBench, type Step } from "./bench.ts";

takeSome();

/**
 * Without -p it is a screen, which stays until the file "leave" is there. A program of one kind writes "overlaps" when it finds
 * one of the other kind alive.
 */
const PROGRAM = `#!/bin/sh
case " $* " in
  *" -p "*) mode=run ;;
  *" --version "*|*" -v "*) exec "${programPath("fake-claude.mjs")}" "$@" ;;
  *) mode=screen ;;
esac
cd_=$PWD; here=$FAKE_AGENT_STATE; mkdir -p "$here/pids"
echo "$mode" > "$here/pids/$$"
for file in "$here"/pids/*; do
  other=\${file##*/}
  [ "$other" = $$ ] && continue
  if grep -q '^State:[^Z]*$' "/proc/$other/status" 2>/dev/null && [ "$(cat "$file")" != "$mode" ]; then
    echo "$mode beside $(cat "$file")" >> "$here/overlaps"
  fi
done
[ "$mode" = run ] && exec "${programPath("fake-claude.mjs")}" "$@"
echo "$cd_ $*" >> "$here/screens"
echo $$ > "$here/screen.pid.new"; mv "$here/screen.pid.new" "$here/screen.pid"
until [ -e "$here/leave" ]; do sleep 0.02; done
rm -f "$here/leave" "$here/screen.pid"
`;

const HANG: Step[] = [{ say: "half" }, { hang: true }];

interface Desk {
  bench: Bench;
  pool: Pool;
  /** A file of the stand-in. */
  file(name: string): string;
  screens(): string[];
  overlaps(): string[];
  /** Waits until the screen is open. @returns its pid */
  opened(): Promise<number>;
  leave(): void;
}

function newDesk(
  turns: readonly (readonly Step[])[],
  settings: Record<string, unknown> = {},
): Desk {
  const bench = newBench([{ name: "coder", kind: "claude", turns, settings }], {
    programs: { coder: PROGRAM },
  });
  const { pool } = bench;
  const file = (name: string): string => join(pool.dir, "fakes", "coder", name);
  const lines = (name: string): string[] =>
    fs.existsSync(file(name)) ? fs.readFileSync(file(name), "utf8").trim().split("\n") : [];
  return {
    bench,
    pool,
    file,
    screens: () => lines("screens"),
    overlaps: () => lines("overlaps"),
    async opened() {
      await waitFor(() => fs.existsSync(file("screen.pid")), { what: "the screen" });
      return Number(fs.readFileSync(file("screen.pid"), "utf8"));
    },
    leave: () => fs.writeFileSync(file("leave"), ""),
  };
}

/** Starts a task whose agent hangs in its first turn. */
async function startHanging(desk: Desk, task: Record<string, unknown> = {}): Promise<void> {
  await desk.pool.start();
  desk.pool.drop("task", { agent: "coder", prompt: "do it", max_attempts: 1, ...task });
  await waitFor(() => desk.bench.session("task")?.session_id != null, { what: "its session" });
}

function isKept({ state }: Pool): boolean {
  try {
    const text = fs.readFileSync(join(state, "attached", "task.json"), "utf8");
    return JSON.parse(text).state === "kept";
  } catch {
    return false;
  }
}

async function stateOf(pool: Pool): Promise<Record<string, unknown>> {
  return JSON.parse((await pool.run(["show", "task", "--json"])).stdout);
}

describe("a task that runs", () => {
  it("ends its turn, waits while the person is there, and then goes on in the same session", async () => {
    const desk = newDesk([HANG, [{ say: "whole" }]]);
    await startHanging(desk);
    const session = desk.bench.session("task")?.session_id;
    const attach = desk.pool.spawn(["attach", "task", "--go-on"]);
    await desk.opened();
    expect(desk.screens()).toEqual([`${fs.realpathSync(desk.pool.dir)} --resume ${session}`]);
    await waitFor(async () => (await stateOf(desk.pool))["state"] === "held", { what: "the hold" });
    const why = async (): Promise<string> => (await desk.pool.run(["why", "task"])).stdout;
    await waitFor(async () => /a person works on it \(attach, pid \d+\)/.test(await why()), {
      what: "why it waits",
    });
    desk.leave();
    expect(await attach.ended).toMatchObject({ exitCode: 0 });
    expect(attach.stdout()).toBe("task: the agent goes on in this session\n");
    expect(await desk.pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
    expect(desk.bench.resumed("coder")).toEqual([undefined, session]);
    expect(desk.overlaps()).toEqual([]);
    expect(fs.readdirSync(join(desk.pool.state, "attached"))).toEqual([".tmp"]);
  });

  it("is judged by its checks when the person says that it is done", async () => {
    const desk = newDesk([HANG, [{ say: "not again" }]]);
    await startHanging(desk, { verify: ["test", "-e", "made"] });
    const attach = desk.pool.spawn(["attach", "task", "--done"]);
    await desk.opened();
    fs.writeFileSync(join(desk.pool.dir, "made"), "");
    desk.leave();
    expect(await attach.ended).toMatchObject({ exitCode: 0 });
    expect(await desk.pool.result("task")).toMatchObject({
      status: "completed",
      verdict_reason: "a person has done it (mailchute attach)",
    });
    expect(desk.bench.starts("coder")).toHaveLength(1);
    await waitFor(() => fs.readdirSync(join(desk.pool.state, "attached")).length === 1, {
      what: "the document to go",
    });
  });

  it("goes back to the agent when a check says that it is not done", async () => {
    const desk = newDesk([HANG, [{ run: "touch made" }, { say: "now" }]]);
    await startHanging(desk, { verify: ["test", "-e", "made"], max_attempts: 2 });
    const session = desk.bench.session("task")?.session_id;
    const attach = desk.pool.spawn(["attach", "task", "--done"]);
    await desk.opened();
    desk.leave();
    expect(await attach.ended).toMatchObject({ exitCode: 0 });
    expect(await desk.pool.result("task")).toMatchObject({ output: "now", attempts: 2 });
    expect(desk.bench.resumed("coder")).toEqual([undefined, session]);
    expect(desk.bench.messages("coder").at(-1)).toContain("verify");
  });

  it("is kept without an answer, and given back without a screen", async () => {
    const desk = newDesk([HANG, [{ say: "whole" }]]);
    await startHanging(desk);
    const first = desk.pool.spawn(["attach", "task"]);
    await desk.opened();
    const second = await desk.pool.run(["attach", "task"]);
    expect(second).toMatchObject({ code: 4 });
    expect(second.stderr).toContain("another attach is in its session");
    desk.leave();
    expect(await first.ended).toMatchObject({ exitCode: 0 });
    expect(first.stdout()).toBe("task: kept: it waits for you\n");
    // The next supervisor knows it, too.
    await desk.pool.stop();
    await desk.pool.start();
    const why = async (): Promise<string> => (await desk.pool.run(["why", "task"])).stdout;
    await waitFor(async () => (await why()).includes("a person keeps it since"), {
      what: "why it waits",
    });
    expect((await stateOf(desk.pool))["state"]).toBe("held");
    expect(await desk.pool.run(["attach", "task", "--go-on"])).toMatchObject({ code: 0 });
    expect(await desk.pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
    expect(desk.screens()).toHaveLength(1);
  });
});

it("a failed task is put back, and its agent goes on in the session in which the person was", async () => {
  const desk = newDesk([[{ say: "I tried" }], [{ run: "touch made" }, { say: "now" }]]);
  await desk.pool.start();
  desk.pool.drop("task", {
    agent: "coder",
    prompt: "do it",
    verify: ["test", "-e", "made"],
    max_attempts: 1,
  });
  await desk.pool.error("task");
  const attach = desk.pool.spawn(["attach", "task", "--go-on"]);
  await desk.opened();
  const [screen = ""] = desk.screens();
  desk.leave();
  expect(await attach.ended).toMatchObject({ exitCode: 0 });
  expect(await desk.pool.result("task")).toMatchObject({ output: "now", attempts: 1 });
  const [, resumed] = desk.bench.resumed("coder");
  expect(screen.endsWith(`--resume ${resumed}`)).toBe(true);
});

describe("a task that has failed", () => {
  const FAILING = { verify: ["test", "-e", "made"], max_attempts: 1 };
  const RESUMED = [[{ say: "I tried" }], [{ run: "touch made" }, { say: "now" }]];

  it("goes on in its session when attach is killed together with its screen", async () => {
    const desk = newDesk(RESUMED);
    await desk.pool.start();
    desk.pool.drop("task", { agent: "coder", prompt: "do it", ...FAILING });
    await desk.pool.error("task");
    const attach = desk.pool.spawn(["attach", "task"]);
    const screen = await desk.opened();
    attach.child.kill("SIGKILL");
    process.kill(screen, "SIGKILL");
    expect(await desk.pool.result("task")).toMatchObject({ output: "now" });
    const [, resumed] = desk.bench.resumed("coder");
    expect(desk.screens()[0]?.endsWith(`--resume ${resumed}`)).toBe(true);
  });

  it("is kept when its screen cannot be opened, and done counts for no later retry", async () => {
    const desk = newDesk(RESUMED, { screen: ["no-such-program", "{session}"] });
    const { pool } = desk;
    await pool.start();
    pool.drop("task", { agent: "coder", prompt: "do it", ...FAILING });
    await pool.error("task");
    const failed = await pool.run(["attach", "task", "--go-on"]);
    expect(failed).toMatchObject({ code: 74, stdout: "" });
    expect(failed.stderr).toContain("cannot open no-such-program");
    await waitFor(async () => (await stateOf(pool))["state"] === "held", { what: "the hold" });
    expect(desk.bench.starts("coder")).toHaveLength(1);
    expect(await pool.run(["attach", "task", "--done"])).toMatchObject({ code: 0 });
    expect(await pool.error("task")).toMatchObject({ kind: "verify" });
    // The document of the earlier submission is still there for an instant.
    expect(await pool.run(["retry", "task"])).toMatchObject({ code: 0 });
    expect(await pool.result("task")).toMatchObject({ output: "now" });
    expect(desk.bench.starts("coder")).toHaveLength(2);
  });

  it("is not opened in a session that has gone on in another task", async () => {
    const desk = newDesk([[{ say: "I tried" }], HANG]);
    const { pool } = desk;
    await pool.start();
    pool.drop("task", { agent: "coder", prompt: "do it", ...FAILING });
    await pool.error("task");
    await pool.run(["continue", "task", "again", "--id", "next"]);
    const refused = await pool.run(["attach", "task"]);
    expect(refused).toMatchObject({ code: 4 });
    expect(refused.stderr).toContain("has gone on in the task next");
    expect((await stateOf(pool))["state"]).toBe("failed");
  });
});

describe("what the person says", () => {
  it("is not enough while the agent has a message to read", async () => {
    const desk = newDesk([HANG, [{ say: "I have read it" }]]);
    await startHanging(desk);
    const attach = desk.pool.spawn(["attach", "task", "--done"]);
    await desk.opened();
    expect(await desk.pool.run(["say", "task", "look at X"])).toMatchObject({ code: 0 });
    desk.leave();
    expect(await attach.ended).toMatchObject({ exitCode: 0 });
    expect(await desk.pool.result("task")).toMatchObject({ output: "I have read it" });
    expect(desk.bench.messages("coder").at(-1)).toContain("look at X");
  });

  it("is not done when the screen fails: the task is kept", async () => {
    const desk = newDesk([HANG, [{ say: "whole" }]], {
      screen: ["sh", "-c", "exit 3", "{session}"],
    });
    await startHanging(desk);
    const attach = await desk.pool.run(["attach", "task", "--done"]);
    expect(attach).toMatchObject({ code: 0, stdout: "task: kept: it waits for you\n" });
    expect(attach.stderr).toContain("sh ended with 3");
    expect(await desk.pool.run(["attach", "task", "--go-on"])).toMatchObject({ code: 0 });
    expect(await desk.pool.result("task")).toMatchObject({ output: "whole" });
  });

  it("does not make files old that were made before the task was put back", async () => {
    const desk = newDesk([[{ say: "I tried" }], [{ say: "not again" }]]);
    const { pool } = desk;
    await pool.start();
    const task = { agent: "coder", prompt: "do it", expect_files: ["made"], max_attempts: 1 };
    pool.drop("task", task);
    await pool.error("task");
    fs.writeFileSync(join(pool.dir, "made"), "");
    const attach = pool.spawn(["attach", "task", "--done"]);
    await desk.opened();
    desk.leave();
    expect(await attach.ended).toMatchObject({ exitCode: 0 });
    expect(await pool.result("task")).toMatchObject({ status: "completed" });
    expect(desk.bench.starts("coder")).toHaveLength(1);
  });

  it("is about the task, and not about a line of a batch with its name", async () => {
    const desk = newDesk([HANG, [{ say: "whole" }]]);
    const { pool } = desk;
    await startHanging(desk);
    const attach = pool.spawn(["attach", "task", "--keep"]);
    await desk.opened();
    desk.leave();
    expect(await attach.ended).toMatchObject({ exitCode: 0 });
    fs.writeFileSync(
      join(pool.inbox, "lines.ndjson"),
      '{"id":"task","agent":"coder","prompt":"a line"}\n',
    );
    await pool.result("lines");
    expect(desk.bench.messages("coder").at(-1)).toContain("a line");
    expect((await stateOf(pool))["state"]).toBe("held");
  });
});

it("no other agent of the task begins while a person has it", async () => {
  const bench = newBench(
    [{ name: "coder", kind: "claude", turns: [HANG, [{ say: "whole" }]], settings: {} }],
    { programs: { coder: PROGRAM } },
  );
  const { pool } = bench;
  const config = join(pool.state, "config.yaml");
  const script = "{name: script, kind: exec, program: touch, args: [beside]}";
  fs.writeFileSync(
    config,
    fs.readFileSync(config, "utf8").replace("agents: [", `agents: [${script},`),
  );
  await pool.start();
  pool.drop("task", { agents: ["coder", "script"], prompt: "do it", max_attempts: 1 });
  await waitFor(() => bench.session("task")?.session_id != null, { what: "its session" });
  const attach = pool.spawn(["attach", "task", "--go-on"]);
  const folder = join(pool.dir, "fakes", "coder");
  await waitFor(() => fs.existsSync(join(folder, "screen.pid")), { what: "the screen" });
  // Its first agent is closed while the person is there.
  await pool.run(["pause", "--agent", "coder"]);
  pool.drop("other", { exec: ["sleep", "1"] });
  await pool.result("other");
  expect(fs.existsSync(join(pool.dir, "beside"))).toBe(false);
  await pool.run(["resume", "--agent", "coder"]);
  fs.writeFileSync(join(folder, "leave"), "");
  expect(await attach.ended).toMatchObject({ exitCode: 0 });
  expect(await pool.result("task")).toMatchObject({ output: "whole", agent_id: "coder" });
});

it("a task of several agents goes on with the one in whose session the person was", async () => {
  const bench = newBench([
    {
      name: "first",
      kind: "claude",
      turns: [[{ limit: Math.ceil(Date.now() / 1000) + 3600 }], [{ say: "not mine" }]],
    },
    { name: "second", kind: "claude", turns: [HANG, [{ say: "whole" }]] },
  ]);
  const { pool } = bench;
  await pool.start();
  pool.drop("task", { agents: ["first", "second"], prompt: "do it", max_attempts: 1 });
  await waitFor(() => bench.session("task")?.agent === "second", { what: "the second agent" });
  await waitFor(() => bench.session("task")?.session_id != null, { what: "its session" });
  const config = join(pool.state, "config.yaml");
  const screen = 'screen: ["true", "{session}"]';
  const text = fs.readFileSync(config, "utf8");
  fs.writeFileSync(config, text.replaceAll('"kind":"claude"', `"kind":"claude", ${screen}`));
  expect(await pool.run(["attach", "task", "--keep"])).toMatchObject({ code: 0 });
  // The first agent is open again, and the next supervisor has no memory of the second one.
  await pool.stop();
  fs.rmSync(bench.gatePath("first"));
  await pool.start();
  expect(await pool.run(["attach", "task", "--go-on"])).toMatchObject({ code: 0 });
  expect(await pool.result("task")).toMatchObject({ output: "whole", agent_id: "second" });
});

it("a program of kind acp has the screen that its agent names", async () => {
  const screen = ["sh", "-c", 'echo "$PWD $1" > screen', "sh", "{session}"];
  const bench = newBench([
    { name: "coder", kind: "acp", turns: [HANG, [{ say: "whole" }]], settings: { screen } },
  ]);
  const { pool } = bench;
  await pool.start();
  pool.drop("task", { agent: "coder", prompt: "do it", max_attempts: 1 });
  await waitFor(() => bench.session("task")?.session_id != null, { what: "its session" });
  const session = bench.session("task")?.session_id;
  expect(await pool.run(["attach", "task", "--go-on"])).toMatchObject({ code: 0 });
  expect(fs.readFileSync(join(pool.dir, "screen"), "utf8")).toBe(
    `${fs.realpathSync(pool.dir)} ${session}\n`,
  );
  expect(await pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
});

describe("when something is killed", () => {
  it("the task waits for the screen, and goes on when that has ended, too", async () => {
    const desk = newDesk([HANG, [{ say: "whole" }]]);
    await startHanging(desk);
    const attach = desk.pool.spawn(["attach", "task"]);
    const screen = await desk.opened();
    attach.child.kill("SIGKILL");
    await waitFor(() => isGone(attach.child.pid ?? 0), { what: "the end of attach" });
    const runs = desk.bench.starts("coder").length;
    // Time for the supervisor to look several times.
    const { pool } = desk;
    pool.drop("other", { exec: ["sleep", "1.5"] });
    await pool.result("other");
    expect(desk.bench.starts("coder")).toHaveLength(runs);
    expect(isGone(screen)).toBe(false);
    process.kill(screen, "SIGKILL");
    expect(await pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
    expect(desk.overlaps()).toEqual([]);
  });

  it("what the screen has left behind does not keep the task", async () => {
    const screen = ["sh", "-c", "setsid sleep 30 & exec sh -c 'exit 0' {session}"];
    const desk = newDesk([HANG, [{ say: "whole" }]], { screen });
    await startHanging(desk);
    const { pool } = desk;
    const held = ["sh", "-c", "setsid sleep 30 & sleep 600", "{session}"];
    const config = join(pool.state, "config.yaml");
    const text = fs.readFileSync(config, "utf8");
    fs.writeFileSync(config, text.replace(JSON.stringify(screen), JSON.stringify(held)));
    const attach = pool.spawn(["attach", "task"]);
    const document = join(pool.state, "attached", "task.json");
    const read = (): Record<string, unknown> => JSON.parse(fs.readFileSync(document, "utf8"));
    await waitFor(() => fs.existsSync(document) && read()["screen"] !== undefined, {
      what: "the screen",
    });
    attach.child.kill("SIGKILL");
    const pid = Number.parseInt(String(read()["screen"]).split("-")[1] ?? "", 36);
    process.kill(pid, "SIGKILL");
    expect(await pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
  });

  // Who is killed, and when, comes from the seed.
  const SEED = Number(process.env["MAILCHUTE_ATTACH_SEED"] ?? Date.now() % 1_000_000);
  for (const round of Array.from({ length: 20 }, (_, n) => n)) {
    it(`no run is ever beside the person (seed ${SEED}, round ${round})`, async () => {
      const random = seededRandom(SEED + round);
      const desk = newDesk([HANG, [{ sleepMs: 50 }, { say: "whole" }]]);
      const { pool } = desk;
      await startHanging(desk, { max_attempts: 5 });
      const attach = pool.spawn(["attach", "task", random.pick(["--go-on", "--done", "--keep"])]);
      const victims = ["attach", "screen", "supervisor", "worker", "all of the pool", "nothing"];
      const victim = random.pick(victims);
      if (random.pick([true, false])) await desk.opened();
      await new Promise((resolve) => setTimeout(resolve, random.below(400)));
      const pids: Record<string, () => (number | undefined)[]> = {
        attach: () => [attach.child.pid],
        screen: () =>
          fs.existsSync(desk.file("screen.pid"))
            ? [Number(fs.readFileSync(desk.file("screen.pid"), "utf8"))]
            : [],
        supervisor: () => [pool.supervisor()?.pid],
        worker: () => pool.workers().map(({ pid }) => pid),
        "all of the pool": () => [pool.supervisor()?.pid, ...pool.workers().map(({ pid }) => pid)],
        nothing: () => [],
      };
      for (const pid of pids[victim]?.() ?? [])
        if (pid !== undefined && !isGone(pid)) process.kill(pid, "SIGKILL");
      if (victim === "supervisor" || victim === "all of the pool") await pool.start();
      await new Promise((resolve) => setTimeout(resolve, random.below(600)));
      desk.leave();
      await attach.ended;
      // The screen of a killed attach leaves, too. What is kept is given back.
      await waitFor(
        async () => {
          desk.leave();
          if (pool.settledCount() > 0) return true;
          // Of a task that runs again it would open the next screen, and end the run.
          if (isKept(pool)) await pool.run(["attach", "task", "--go-on"]);
          return false;
        },
        { what: `its end after the end of ${victim}`, timeoutMs: 30_000 },
      );
      expect(await pool.result("task")).toMatchObject({ status: "completed" });
      expect(desk.overlaps(), victim).toEqual([]);
    });
  }
});

describe("attach is refused, and nothing is changed,", () => {
  const refused: readonly [name: string, id: string, code: number, text: string][] = [
    ["for an unknown task", "nobody", 3, "no tray has a task"],
    ["for a task that has ended well", "well", 4, "mailchute continue well TEXT"],
    ["for a program without a session", "program", 4, "no session that a person can go on in"],
    ["for a task that has not begun", "later", 4, "no session that a person can go on in"],
  ];
  it(refused.map(([name]) => name).join(", "), async () => {
    const desk = newDesk([[{ say: "fine" }]]);
    const { pool } = desk;
    await pool.start();
    pool.drop("well", { agent: "coder", prompt: "do it" });
    pool.drop("program", { exec: ["sleep", "600"] });
    pool.drop("later", { agent: "coder", prompt: "do it", not_before: 4_000_000_000 });
    await pool.result("well");
    await waitFor(
      () => pool.events().some(({ event, task_id: id }) => event === "started" && id === "program"),
      {
        what: "the program",
      },
    );
    for (const [, id, code, text] of refused) {
      const ran = await pool.run(["attach", id]);
      expect(ran).toMatchObject({ code, stdout: "" });
      expect(ran.stderr).toContain(text);
    }
    expect(await pool.run(["attach", "well", "--done", "--keep"])).toMatchObject({ code: 2 });
    expect(pool.events().some(({ event }) => event === "held" || event === "released")).toBe(false);
    expect(desk.screens()).toEqual([]);
  });
});
