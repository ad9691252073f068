/** `top` on a real terminal (tmux): each key against a real pool, sizes, signals, and what is left on the terminal afterwards. */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { hasTmux, MAILCHUTE, openTerminal, PROMPT, type Terminal } from "../../support/terminal.ts";
import { waitFor } from "../../support/wait-for.ts";

const BEFORE = "what was here before";

/** Opens `top` in a terminal on which something was written before. */
async function openTop(
  pool: Pool,
  { columns = 100, rows = 30, args = "", env = "LC_ALL=C.UTF-8" } = {},
): Promise<Terminal> {
  const terminal = openTerminal(pool.dir, columns, rows);
  await waitFor(() => terminal.screen().startsWith(PROMPT), { what: "the shell" });
  terminal.press(`echo ${BEFORE}`, "Enter");
  await waitFor(() => terminal.screen().includes(`\n${BEFORE}\n`), { what: "what was before" });
  terminal.press(`${env} ${MAILCHUTE} top ${args}`, "Enter");
  await sees(terminal, "1 RUNNING");
  return terminal;
}

async function sees(terminal: Terminal, ...parts: (string | RegExp)[]): Promise<void> {
  const isThere = (part: string | RegExp): boolean =>
    typeof part === "string" ? terminal.screen().includes(part) : part.test(terminal.screen());
  try {
    await waitFor(() => parts.every(isThere), { what: `${parts.join(", ")} on the screen` });
  } catch (error) {
    throw new Error(`what is on the screen:\n${terminal.screen()}`, { cause: error });
  }
}

/** The shell has its terminal again, as it was. */
async function expectShell(terminal: Terminal): Promise<void> {
  await waitFor(() => terminal.screen().trimEnd().endsWith(PROMPT), { what: "the shell again" });
  expect(terminal.screen()).toContain(BEFORE);
  expect(terminal.all()).not.toContain("1 RUNNING");
  // In raw mode these letters would not be shown, or Enter would not end the line.
  terminal.press("stty -a; echo $((40 + 2)) is shown", "Enter");
  await sees(terminal, "42 is shown");
  expect(terminal.screen()).toMatch(/(?<!-)icanon/);
  expect(terminal.screen()).toMatch(/(?<!-)echo /);
}

function pidsOfTop(pool: Pool): number[] {
  return fs.readdirSync("/proc").flatMap((name) => {
    try {
      const words = fs.readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      const isTop = words.includes("top") && fs.readlinkSync(`/proc/${name}/cwd`) === pool.dir;
      return isTop ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

const onlyPid = (pool: Pool): number => {
  const pids = pidsOfTop(pool);
  expect(pids).toHaveLength(1);
  return pids[0] ?? 0;
};

describe.skipIf(!hasTmux)("top in a terminal", () => {
  it("shows a pool, and each key does what it says", async () => {
    const pool = newPool({
      config:
        "workers: 2\ndurability: process\nsettle_ms: 300\nsweep_ms: 200\ngrace_ms: 500\nretry: {max_attempts: 1}\ngroups: {wall: {slots: 1}}\n",
    });
    await pool.start();
    const go = join(pool.dir, "go");
    const loop = `n=0; until test -e ${go}; do n=$((n+1)); echo "::progress $n step $n"; echo line $n; sleep 0.05; done`;
    pool.drop("long", { title: "A long one", group: "wall", exec: ["sh", "-c", loop] });
    for (const id of ["bad-a", "bad-b"])
      pool.drop(id, { exec: ["sh", "-c", `test -e ${go} || { echo refused 7 >&2; exit 1; }`] });
    pool.drop("child", { exec: ["true"], metadata: { dependencies: ["long"] } });
    new QuestionStore(pool.state).ask({
      id: "paint",
      question: "Which colour?",
      context: "",
      who: "the painter",
      agents: [],
      expects: "text",
      asked_at_ms: Date.now(),
      ends_at_ms: null,
    });
    for (const id of ["bad-a", "bad-b"]) await pool.error(id);
    const terminal = await openTop(pool);
    await sees(
      terminal,
      "LIVE",
      /▸ A long one +long /,
      "step ",
      "2x",
      "refused",
      "wait for others that they",
      "? paint",
    );
    terminal.press("Enter");
    // More lines than the page has, so that it can be scrolled.
    await sees(terminal, "long  RUNNING run 1", "A long one", /line [4-9]\d/, "follows the end");
    terminal.press("PageUp");
    await sees(terminal, "below, G returns");
    terminal.press("G");
    await sees(terminal, "follows the end");
    terminal.press("Escape");
    await sees(terminal, "1 RUNNING");
    terminal.press("?");
    await sees(terminal, "puts it back", "end (tasks go on)");
    terminal.press("x", "p");
    await sees(terminal, "pause: written, taken up, paused: true", "PAUSED");
    terminal.press("p");
    await sees(terminal, "resume: written, taken up, paused: false");
    terminal.press("+");
    await sees(terminal, "set-workers 3: written, taken up", "/3 slots");
    terminal.press("-");
    await sees(terminal, "set-workers 2: written, taken up", "/2 slots");
    terminal.press("6");
    await sees(terminal, /▸ group wall 1 of 1 in work ▓▓▓▓▓ 0 wait 1 of 1 running/);
    terminal.press("2", "Enter");
    await sees(
      terminal,
      "1 task waits for others that",
      /▸ true +child waits for long, which runs/,
    );
    // A key that comes with an escape would be one with Alt.
    terminal.press("Escape");
    await sees(terminal, "1 RUNNING");
    terminal.press("/");
    for (const key of "bad-") terminal.press(key);
    await sees(terminal, "filter: bad-", "nothing matches the filter");
    terminal.press("Enter");
    await sees(terminal, "▸3 FAILED", /bad-[ab] 2x/);
    terminal.press("n", "Escape");
    await sees(terminal, "wait for others that they");
    terminal.press("3", "r");
    await sees(terminal, "Retry 2 tasks?");
    fs.writeFileSync(join(pool.dir, "go"), "");
    await waitFor(() => pool.settledCount() >= 4, { what: "the long task and its child" });
    // The key that came with the question would not count.
    await waitFor(
      () => {
        terminal.press("y");
        return terminal.screen().includes("2 written, 2 taken up");
      },
      { what: "the retry" },
    );
    for (const id of ["bad-a", "bad-b"]) await pool.result(id);
    terminal.press("5");
    await sees(terminal, "▸5 JUST ENDED", /A long one +long done +\d:\d\d .* ago/);
    terminal.press("4", "a");
    await sees(terminal, "answer paint: _");
    terminal.press("blue", "Enter");
    await sees(terminal, "answer written: paint is answered");
    expect(new QuestionStore(pool.state).answerOf("paint")).toBe("blue");
    pool.drop("hang", { exec: ["sleep", "1000"] });
    await sees(terminal, "1 RUNNING (1)", "hang");
    terminal.press("1", "c");
    await sees(terminal, "End run 1 of hang after");
    await waitFor(
      () => {
        terminal.press("y");
        return terminal.screen().includes("cancel hang: written, taken up");
      },
      { what: "the cancel" },
    );
    expect(await pool.error("hang")).toMatchObject({ kind: "cancelled" });
    terminal.press("q");
    await expectShell(terminal);
    await pool.stop();
  });

  it("in 80×24 the keys that move, search and put back do what the help says", async () => {
    const pool = newPool({
      config: "workers: 4\ndurability: process\ngrace_ms: 500\nretry: {max_attempts: 1}\n",
    });
    await pool.start();
    const go = join(pool.dir, "go");
    pool.drop("bad", { exec: ["test", "-e", go] });
    await pool.error("bad");
    const wide = "w".repeat(200);
    pool.drop("aa-log", {
      title: "A long log",
      exec: [
        "sh",
        "-c",
        `seq 500; echo needle; seq 501 900; echo ${wide}; echo wrong >&2; sleep 600`,
      ],
    });
    const begun = (id: string): Promise<unknown> =>
      waitFor(
        () => pool.events().some((one) => one["event"] === "started" && one["task_id"] === id),
        {
          what: `the run of ${id}`,
        },
      );
    await begun("aa-log");
    for (const id of ["bb-two", "cc-three"]) {
      pool.drop(id, { exec: ["sleep", "600"] });
      await begun(id);
    }
    const terminal = await openTop(pool, { columns: 80, rows: 24 });
    await sees(terminal, /▸ .* aa-log /, "bb-two", "cc-three", "3/4 slots");
    for (const [key, sight] of [
      ["j", /▸ .* bb-two /],
      ["Down", /▸ .* cc-three /],
      ["k", /▸ .* bb-two /],
      ["Up", /▸ .* aa-log /],
      ["G", /▸ .* cc-three /],
      ["g", /▸ .* aa-log /],
      ["End", /▸ .* cc-three /],
      ["Home", /▸ .* aa-log /],
      ["PageDown", /▸ .* cc-three /],
      ["PageUp", /▸ .* aa-log /],
      ["Tab", "▸2 WAITING"],
      ["Tab", "▸3 FAILED"],
      ["4", "▸4 NEEDS YOU"],
      ["BTab", "▸3 FAILED"],
      ["2", "▸2 WAITING"],
      ["3", "▸3 FAILED"],
      ["1", "▸1 RUNNING"],
      // One row after the other, also over the panes.
      ["n", /▸ .* bb-two /],
      ["n", /▸ .* cc-three /],
      ["N", /▸ .* bb-two /],
    ] as const) {
      terminal.press(key);
      await sees(terminal, sight);
    }
    // A task that no row has is opened by its id.
    terminal.press("/");
    terminal.press("b", "a", "d", "Enter");
    await sees(terminal, "▸3 FAILED", "filter: bad");
    terminal.press("Right");
    await sees(terminal, "bad  FAILED");
    fs.writeFileSync(go, "");
    terminal.press("r");
    await pool.result("bad");
    await sees(terminal, "bad  DONE");
    terminal.press("Left");
    await sees(terminal, "nothing matches the filter");
    terminal.press("Left");
    await waitFor(() => !terminal.screen().includes("filter: bad"), { what: "no filter" });
    await sees(terminal, "nothing has failed");
    terminal.press("/");
    terminal.press("b", "a", "d", "Enter");
    await sees(terminal, "bad  DONE");
    terminal.press("BSpace");
    await sees(terminal, "▸5 JUST ENDED", "nothing has failed");
    // The log of a task.
    terminal.press("1", "g", "Enter");
    await sees(terminal, "aa-log  RUNNING", "follows the end", "www");
    terminal.press("k");
    await sees(terminal, "below, G returns");
    terminal.press("f");
    await sees(terminal, "follows the end");
    terminal.press("w");
    await waitFor(
      () =>
        terminal
          .screen()
          .split("\n")
          .filter((line) => /^\W*w{20,}\W*$/.test(line)).length >= 3,
      {
        what: "a long line in pieces",
      },
    );
    terminal.press("w");
    await waitFor(
      () =>
        terminal
          .screen()
          .split("\n")
          .filter((line) => /w{20,}/.test(line)).length === 1,
      {
        what: "a long line that is cut",
      },
    );
    terminal.press("g");
    await waitFor(() => /^\W*1$/m.test(terminal.screen()), { what: "the first line" });
    terminal.press("/");
    terminal.press("n", "e", "e", "d", "l", "e", "Enter");
    // Above the first line there is none: the search goes on below.
    await waitFor(() => /^500\nneedle$/m.test(terminal.screen()), {
      what: "the line that is looked for",
    });
    terminal.press("G", "N");
    await waitFor(() => /^500\nneedle$/m.test(terminal.screen()), { what: "the one before" });
    terminal.press("o");
    await sees(terminal, "stderr.log", "wrong");
    terminal.press("o");
    await sees(terminal, "stdout.log");
    terminal.press("Escape");
    await sees(terminal, /▸ .* aa-log /);
    // What another program has written over the screen is drawn over.
    terminal.scribble("scribbled");
    await sees(terminal, "scribbled");
    terminal.press("C-l");
    await waitFor(() => !terminal.screen().includes("scribbled"), { what: "a clean screen" });
    // Any key but y and b is a no, once a person has had the time to read.
    terminal.press("c");
    await sees(terminal, "End run 1 of aa-log after");
    await waitFor(
      () => {
        terminal.press("x");
        return terminal.screen().includes("nothing was done");
      },
      { what: "no" },
    );
    expect(pool.errors()).toEqual([]);
    terminal.press("c");
    await sees(terminal, "End run 1 of aa-log after");
    await waitFor(
      () => {
        terminal.press("b");
        return terminal.screen().includes("requeue aa-log: written, taken up");
      },
      { what: "its return" },
    );
    const isBack = (one: Record<string, unknown>): boolean =>
      one["event"] === "cancelled" && one["error"] === "cancelled; it waits again";
    await waitFor(() => pool.events().some(isBack), { what: "the end of its run" });
    expect(pool.errors()).toEqual([]);
    terminal.press("q");
    await expectShell(terminal);
  });

  it("without a supervisor says that a command waits for one, and follows the size", async () => {
    const pool = newPool();
    pool.drop("one", { exec: ["true"] });
    const terminal = await openTop(pool, { columns: 200, rows: 60 });
    await sees(terminal, "NO SUPERVISOR", "wait: no supervisor runs", "do: mailchute run", "│");
    terminal.press("p");
    await sees(
      terminal,
      "pause: queued in control/inbox; no supervisor takes it up until `mailchute run`",
    );
    expect(fs.readdirSync(join(pool.state, "control", "inbox"))).toHaveLength(1);
    terminal.resize(40, 10);
    await waitFor(() => !terminal.screen().includes("│"), { what: "a small frame" });
    await sees(terminal, "1 RUNNING");
    expect(terminal.screen()).not.toContain("2 WAITING");
    terminal.resize(100, 30);
    await sees(terminal, "2 WAITING", "4 NEEDS YOU");
    fs.renameSync(pool.state, `${pool.state}-away`);
    await sees(terminal, "UNREADABLE", "is gone");
    fs.renameSync(`${pool.state}-away`, pool.state);
    await sees(terminal, "NO SUPERVISOR");
    terminal.press("q");
    await expectShell(terminal);
  });

  it.each([
    ["C-c", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGINT", 130],
  ])("gives the terminal back after %s, which the shell hears of", async (how, code) => {
    const pool = newPool();
    const terminal = await openTop(pool);
    if (how === "C-c") terminal.press(how);
    else process.kill(onlyPid(pool), how);
    await waitFor(() => terminal.screen().trimEnd().endsWith(PROMPT), { what: "the shell" });
    terminal.press("echo it was $?", "Enter");
    await sees(terminal, `it was ${code}`);
    await expectShell(terminal);
  });

  it("stops with Ctrl-Z, and is there again with fg", async () => {
    const pool = newPool();
    const terminal = await openTop(pool);
    terminal.press("C-z");
    await expectShell(terminal);
    terminal.press("fg", "Enter");
    await sees(terminal, "1 RUNNING", "4 NEEDS YOU");
    terminal.press("?");
    await sees(terminal, "end (tasks go on)");
    terminal.press("q");
    await expectShell(terminal);
  });

  it("gives the terminal back before the error of a crash is printed", async () => {
    const pool = newPool();
    const crash = join(pool.dir, "crash.cjs");
    const when = `require("node:fs").existsSync(${JSON.stringify(join(pool.dir, "crash"))})`;
    fs.writeFileSync(
      crash,
      `setInterval(() => { if (${when}) throw new Error("made to crash"); }, 50).unref();`,
    );
    const terminal = await openTop(pool, {
      env: `LC_ALL=C.UTF-8 NODE_OPTIONS='--require ${crash}'`,
    });
    fs.writeFileSync(join(pool.dir, "crash"), "");
    await sees(terminal, "Error: made to crash", PROMPT);
    await expectShell(terminal);
  });

  it.skipIf(spawnSync("reset", ["-V"]).status !== 0)(
    "after kill -9 the command reset repairs the terminal",
    async () => {
      const pool = newPool();
      const terminal = await openTop(pool);
      process.kill(onlyPid(pool), "SIGKILL");
      await waitFor(() => pidsOfTop(pool).length === 0, { what: "its end" });
      // Enter would be a carriage return here; a line feed ends the line in any mode.
      terminal.press("C-j", "reset", "C-j");
      const isReset = (): boolean => {
        const screen = terminal.screen().trimEnd();
        return screen.endsWith(PROMPT) && !screen.includes("1 RUNNING");
      };
      await waitFor(isReset, { what: "a clean screen" });
      terminal.press("stty -a; echo $((40 + 2)) is shown", "Enter");
      await sees(terminal, "42 is shown");
      expect(terminal.screen()).toMatch(/(?<!-)icanon/);
      expect(terminal.screen()).toMatch(/(?<!-)echo /);
    },
  );

  it("ends when its terminal is closed", async () => {
    const pool = newPool();
    const terminal = await openTop(pool);
    const pid = onlyPid(pool);
    terminal.close();
    await waitFor(() => !fs.existsSync(`/proc/${pid}`), { what: "its end" });
  });

  it("uses colours, or none at all", async () => {
    const pool = newPool();
    const coloured = await openTop(pool);
    expect(coloured.painted()).toMatch(/\x1b\[[0-9;]*3[0-7]m/);
    coloured.press("q");
    const plain = await openTop(pool, { env: "LC_ALL=C NO_COLOR=1" });
    expect(plain.painted()).not.toMatch(/\x1b\[/);
    expect(plain.screen()).toMatch(/^[ -~\n]*$/);
    plain.press("q");
    await expectShell(plain);
  });
});

/** Starts `top` on a terminal that is not read, sends it SIGTERM when its output has filled up, and prints how it ended. */
const STALLED = `
import fcntl, os, pty, signal, struct, subprocess, sys, termios, time
main, side = pty.openpty()
def resize(rows):
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 200, 0, 0))
def written():
    return int(open("/proc/%d/io" % child.pid).read().split("wchar: ")[1].split()[0])
resize(60)
child = subprocess.Popen(sys.argv[1:], stdin=side, stdout=side, stderr=side, start_new_session=True)
until = time.time() + 60
before, same = 0, 0
# Each new size makes it draw everything again, until the terminal takes no more.
while same < 10 and time.time() < until:
    for rows in (59, 60):
        resize(rows)
        child.send_signal(signal.SIGWINCH)
        time.sleep(0.05)
    now = written()
    # A few bytes are its own wake-ups.
    same = same + 1 if now - before < 500 and now > 8000 else 0
    before = now
child.send_signal(signal.SIGTERM)
print(same, child.wait(timeout=30))
`;

it.skipIf(spawnSync("python3", ["-V"]).status !== 0)(
  "ends by SIGTERM also while its terminal takes nothing",
  async () => {
    const pool = newPool();
    for (let n = 0; n < 60; n++) pool.drop(`task-${n}`, { exec: ["true"] });
    const words = MAILCHUTE.split(" ").map((word) => word.replaceAll("'", ""));
    const child = spawn(
      "python3",
      ["-c", STALLED, ...words, "top", "--interval", "50ms", "--state", pool.state],
      {
        cwd: pool.dir,
        env: { ...process.env, TERM: "xterm" },
      },
    );
    onTestFinished(() => void child.kill());
    let said = "";
    child.stdout.on("data", (text: Buffer) => {
      said += text.toString();
    });
    await waitFor(() => said !== "", { what: "its end", timeoutMs: 60_000 });
    expect(said.trim()).toBe("10 -15");
  },
);
