/** `enqueue --file todo.md` and `list`, as a person uses them: the built command line, real files, a real pool. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type Cli, newCli, put } from "../../cli/run-cli.ts";
import { timeLimitMs } from "../../support/time-limit.ts";
import { waitFor } from "../../support/wait-for.ts";

/** Agents that are shell programs: each run adds the title of its task to `runs.txt`. */
const CONFIG = `
durability: process
sweep_ms: 200
agents:
  - {name: coder, kind: exec, program: sh, args: ["-c", "sed -n '1s/^# //p' $MAILCHUTE_PACKET >> runs.txt"]}
  - {name: failing, kind: exec, program: sh, args: ["-c", "echo no such test >&2; exit 3"]}
  - {name: waiting, kind: exec, program: sh, args: ["-c", "touch running; until test -e go; do sleep 0.1; done"]}
`;

let cli: Cli;
beforeEach(() => {
  cli = newCli();
  put(cli, "config.yaml", CONFIG);
});

interface Item {
  state: string;
  title: string;
  id: string | null;
  line: number | null;
  reason: string | null;
}

const pathOf = (name: string): string => join(cli.dir, name);
const write = (text: string, name = "todo.md"): void => fs.writeFileSync(pathOf(name), text);
const read = (name = "todo.md"): string => fs.readFileSync(pathOf(name), "utf8");
const runs = (): string[] =>
  fs.existsSync(pathOf("runs.txt")) ? read("runs.txt").trim().split("\n").sort() : [];
const enqueue = (...more: string[]) =>
  cli(["enqueue", "--agent", "coder", "--file", "todo.md", ...more]);
const drain = () => cli(["run", "--drain", "--no-live"]);

async function items(name = "todo.md"): Promise<Item[]> {
  const { stdout } = await cli(["list", "ls", name, "--json"]);
  return (JSON.parse(stdout) as { lists: { items: Item[] }[] }).lists[0]?.items ?? [];
}
const states = async (): Promise<string[]> =>
  (await items()).map(({ state, title }) => `${state} ${title}`);

async function sync(...more: string[]): Promise<Record<string, unknown>> {
  const { stdout, stderr, code } = await cli(["list", "sync", ...more, "--json"]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { lists: Record<string, unknown>[] }).lists[0] ?? {};
}

describe("a list", () => {
  it("is worked from top to bottom", async () => {
    const titles = Array.from({ length: 12 }, (_, n) => `item ${(n * 7) % 12}`);
    write(titles.map((title) => `- [ ] ${title}\n`).join(""));
    put(cli, "config.yaml", `workers: 1\n${CONFIG}`);
    await enqueue();
    expect((await drain()).code).toBe(0);
    expect(read("runs.txt").trim().split("\n")).toEqual(titles);
  });

  it("becomes a task for each open box, which is ticked when it has landed, and nothing else changes", async () => {
    const text =
      "\ufeff# Todo\r\n\r\n- [ ] first  \r\n\tdetails\r\n* [x] done\n+ [ ] héading\r  - [ ] below\n\n```\n- [ ] code\n```\n10. [ ] last";
    write(text);
    fs.chmodSync(pathOf("todo.md"), 0o640);
    const { code, stdout } = await enqueue();
    expect(code).toBe(0);
    const ids = stdout.trim().split("\n");
    expect(ids).toHaveLength(3);
    expect(await states()).toEqual([
      "waiting first",
      "ticked done",
      "waiting below",
      "waiting last",
    ]);
    await drain();
    expect(runs()).toEqual(["below", "first", "last"]);
    expect(read()).toBe(text);
    expect(await sync("todo.md")).toMatchObject({ file: "todo.md", ticked: 4, open: 0 });
    expect(read()).toBe(text.replace(/\[ \](?! code)/g, "[x]"));
    expect(fs.statSync(pathOf("todo.md")).mode & 0o777).toBe(0o640);
    expect(fs.readdirSync(cli.dir).sort()).toEqual(["runs.txt", "state", "todo.md"]);
    expect((await items()).map(({ state, id }) => [state, id])).toEqual([
      ["landed", ids[0]],
      ["ticked", null],
      ["landed", ids[1]],
      ["landed", ids[2]],
    ]);
  });

  it("gives the task its text, its title and the options", async () => {
    write("- [ ] Mend it\n  as follows\n");
    const { stdout } = await enqueue("--priority", "3", "--after", "x", "--cwd", ".");
    const task = JSON.parse(
      fs.readFileSync(join(cli.inbox, `${stdout.trim()}.json`), "utf8"),
    ) as object;
    expect(task).toMatchObject({
      title: "Mend it",
      prompt: "Mend it\nas follows",
      agent: "coder",
      priority: 3,
      cwd: cli.dir,
      metadata: { dependencies: ["x"], list: pathOf("todo.md") },
    });
  });

  it("adds only what is new when it is enqueued again, whatever became of the tasks", async () => {
    write("- [ ] a\n- [ ] b\n");
    await enqueue();
    expect((await enqueue()).stdout).toBe("");
    await drain();
    write("- [ ] c\n- [ ] b\n- [x] a\n");
    expect(JSON.parse((await enqueue("--json")).stdout)).toMatchObject({
      submitted: 1,
      unchanged: 1,
    });
    await drain();
    // A program has taken the results away.
    fs.rmSync(join(cli.dir, "state", "mailbox", "outbox"), { recursive: true });
    expect((await enqueue()).stdout).toBe("");
    expect(runs()).toEqual(["a", "b", "c"]);
    expect(await sync()).toMatchObject({ ticked: 2, open: 0 });
    expect(read()).toBe("- [x] c\n- [x] b\n- [x] a\n");
  });

  it("shows what waits, runs, has failed and why, and what is gone from the file", async () => {
    write("- [ ] a\n");
    await cli(["enqueue", "--agent", "failing", "--file", "todo.md", "--max-attempts", "1"]);
    await drain();
    write("- [ ] a\n- [ ] b\n- [ ] gone\n");
    await enqueue();
    write("- [ ] a\n- [ ] b\n  edited\n- [ ] c\n");
    const shown = await items();
    expect(shown.map(({ state, title, line }) => [state, title, line])).toEqual([
      ["failed", "a", 1],
      ["waiting", "b", 2],
      ["open", "c", 4],
      ["gone", "gone", null],
    ]);
    expect(shown[0]?.reason).toMatch(/no such test/);
    expect(shown[1]?.reason).toMatch(/details were changed/);
    expect(await sync()).toMatchObject({ ticked: 0, open: 3 });
    fs.rmSync(pathOf("todo.md"));
    expect(await states()).toEqual(["gone a", "gone b", "gone gone"]);
  });

  it("shows a task that runs", async () => {
    write("- [ ] a\n");
    await cli(["enqueue", "--agent", "waiting", "--file", "todo.md"]);
    const running = drain();
    await waitFor(() => fs.existsSync(pathOf("running")), { what: "the run" });
    expect(await states()).toEqual(["running a"]);
    fs.writeFileSync(pathOf("go"), "");
    await running;
  });

  it("may be edited while its tasks run: what is there is ticked, and only what was changed is new", async () => {
    write("- [ ] a\r\n- [ ] b\r\n- [ ] c");
    await cli(["enqueue", "--agent", "waiting", "--file", "todo.md"]);
    const running = drain();
    await waitFor(() => fs.existsSync(pathOf("running")), { what: "the run" });
    write("- [ ] b, better\r\n  with details\r\n- [ ] a\r\n\t- step\r\n- [x] d");
    fs.writeFileSync(pathOf("go"), "");
    await running;
    expect(await sync()).toMatchObject({ ticked: 1, open: 1, reopened: [] });
    expect(read()).toBe("- [ ] b, better\r\n  with details\r\n- [x] a\r\n\t- step\r\n- [x] d");
    expect(await states()).toEqual(["open b, better", "landed a", "ticked d", "gone b", "gone c"]);
    const again = JSON.parse((await enqueue("--json")).stdout) as object;
    expect(again).toMatchObject({ submitted: 1, unchanged: 0 });
  });

  it("with --wait ends when its new tasks have settled", async () => {
    write("- [ ] a\n");
    const running = cli(["run", "--no-live"]);
    expect((await enqueue("--wait")).code).toBe(0);
    expect(runs()).toEqual(["a"]);
    await cli(["stop"]);
    await running;
  });

  it("of two thousand items is enqueued, shown and ticked quickly", async () => {
    write(Array.from({ length: 2000 }, (_, n) => `- [ ] item ${n}\n`).join(""));
    const startMs = performance.now();
    expect((await enqueue()).stdout.trim().split("\n")).toHaveLength(2000);
    expect((await enqueue()).stdout).toBe("");
    expect(await items()).toHaveLength(2000);
    expect(await sync()).toMatchObject({ ticked: 0, open: 2000 });
    expect(performance.now() - startMs).toBeLessThan(timeLimitMs(8000));
  });
});

describe("a tick", () => {
  it("follows a symbolic link to the file, which is the same list", async () => {
    write("- [ ] a\n", "real.md");
    fs.symlinkSync("real.md", pathOf("todo.md"));
    await enqueue();
    await drain();
    expect(await sync("todo.md")).toMatchObject({ ticked: 1 });
    expect(fs.lstatSync(pathOf("todo.md")).isSymbolicLink()).toBe(true);
    expect(read("real.md")).toBe("- [x] a\n");
    expect((await cli(["enqueue", "--agent", "coder", "--file", "real.md"])).stdout).toBe("");
  });

  it("is not written again into a box that a person opened, unless asked, or the task has landed again", async () => {
    write("- [ ] a\n- [ ] b\n");
    const id = (await enqueue()).stdout.split("\n")[0] ?? "";
    await drain();
    await sync();
    write("- [ ] a\n- [x] b\n");
    expect(await sync()).toMatchObject({ ticked: 0, reopened: ["a"] });
    expect((await enqueue()).stdout).toBe("");
    expect((await items())[0]?.reason).toMatch(/opened again/);
    expect(await sync("--again")).toMatchObject({ ticked: 1, reopened: [] });
    write("- [ ] a\n- [x] b\n");
    const before = Math.floor(Date.now() / 1000);
    await waitFor(() => Math.floor(Date.now() / 1000) > before, { what: "the next second" });
    expect((await cli(["retry", id, "--completed"])).code).toBe(0);
    expect(await states()).toEqual(["waiting a", "landed b"]);
    await drain();
    expect(runs()).toEqual(["a", "a", "b"]);
    expect(await sync()).toMatchObject({ ticked: 1, reopened: [] });
  });

  it("waits for the landing of a task that has one, and for it to succeed", async () => {
    write("- [ ] a\n- [ ] b\n");
    const [a = "", b = ""] = (await enqueue()).stdout.split("\n");
    await drain();
    for (const id of [a, b]) {
      const path = join(cli.dir, "state", "mailbox", "outbox", `${id}_result.json`);
      const record = JSON.parse(fs.readFileSync(path, "utf8")) as object;
      fs.writeFileSync(path, JSON.stringify({ ...record, landing: "pending" }));
    }
    expect(await states()).toEqual(["waiting a", "waiting b"]);
    expect((await cli(["enqueue", "--id", `${a}.land`, "--", "true"])).code).toBe(0);
    await cli([
      "enqueue",
      "--id",
      `${b}.land`,
      "--max-attempts",
      "1",
      "--",
      "sh",
      "-c",
      "echo conflict >&2; exit 1",
    ]);
    expect(await sync()).toMatchObject({ ticked: 0, open: 2 });
    await drain();
    expect(await sync()).toMatchObject({ ticked: 1, open: 1 });
    expect(read()).toBe("- [x] a\n- [ ] b\n");
    expect((await items())[1]).toMatchObject({
      state: "failed",
      reason: expect.stringMatching(/did not land: .*conflict/) as string,
    });
  });

  it("of a heading comes with the last one below it", async () => {
    write("- [ ] A\n  - [ ] one\n  - [ ] two\n- [ ] B\n  - [x] three\n");
    await cli(["enqueue", "--agent", "coder", "--file", "todo.md"]);
    await drain();
    write(`${read()}  - [ ] four\n`);
    await sync();
    expect(read()).toBe(
      "- [x] A\n  - [x] one\n  - [x] two\n- [ ] B\n  - [x] three\n  - [ ] four\n",
    );
  });
});

/** Writes the list, and gives the arguments on. */
function listOf(text: string | Buffer, args: string[]): string[] {
  fs.writeFileSync(pathOf("todo.md"), text);
  return args;
}

describe("what is no list is refused, and nothing is submitted", () => {
  const cases: [string, () => string[], number, RegExp][] = [
    [
      "a missing file",
      () => ["nope.md"],
      74,
      /ErrIo: there is no such file\n {2}where: .*nope\.md/,
    ],
    ["a directory", () => ["state"], 2, /ErrInvalidList: it is a directory/],
    [
      "a file without a box",
      () => listOf("text\n- plain\n", ["todo.md"]),
      2,
      /ErrInvalidList: it has no box/,
    ],
    [
      "a file that is not UTF-8",
      () => listOf(Buffer.from("- [ ] a\n- [ ] \xe9\n", "latin1"), ["todo.md"]),
      2,
      /ErrInvalidList: line 2 of the list is not UTF-8/,
    ],
    [
      "a file that is too large",
      () => listOf(`- [ ] a\n${"x".repeat(1024 * 1024)}`, ["todo.md"]),
      2,
      /ErrInvalidList: the list has 1048584 bytes/,
    ],
    [
      "too many boxes",
      () => listOf("- [ ] a\n".repeat(10_001), ["todo.md"]),
      2,
      /ErrInvalidList: the list has 10001 boxes/,
    ],
    [
      "an unknown agent",
      () => listOf("- [ ] a\n", ["todo.md", "--agent", "codr"]),
      2,
      /ErrUsage: no agent "codr" is configured\n {2}do: did you mean --agent coder\?/,
    ],
    [
      "no agent",
      () => listOf("- [ ] a\n", ["todo.md", "--cap", "x"]),
      2,
      /ErrUsage: a list needs --agent NAME/,
    ],
    [
      "a prompt beside it",
      () => listOf("- [ ] a\n", ["todo.md", "--agent", "coder", "--prompt", "x"]),
      2,
      /a list and --prompt exclude each other/,
    ],
    [
      "a program beside it",
      () => listOf("- [ ] a\n", ["todo.md", "--agent", "coder", "--", "ls"]),
      2,
      /a list and -- CMD exclude each other/,
    ],
  ];
  it.each(cases)("%s", async (_what, prepare, code, message) => {
    const [file = "", ...more] = prepare();
    const agent = more.length > 0 ? [] : ["--agent", "coder"];
    const refused = await cli(["enqueue", "--file", file, ...agent, ...more]);
    expect(refused.stderr).toMatch(message);
    expect(refused.code).toBe(code);
    expect(fs.existsSync(cli.inbox)).toBe(false);
  });

  it("damaged notes", async () => {
    write("- [ ] a\n");
    await enqueue();
    const dir = join(cli.dir, "state", "lists");
    const [name = ""] = fs.readdirSync(dir).filter((one) => one.endsWith(".json"));
    fs.writeFileSync(join(dir, name), '{"list": 3}');
    const refused = await enqueue();
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(
      /ErrInvalidList: the notes of a list are damaged\n {2}where: .*lists/,
    );
    fs.rmSync(join(dir, name));
    // As the error says: what is still there does not run again.
    expect(JSON.parse((await enqueue("--json")).stdout)).toMatchObject({
      submitted: 0,
      unchanged: 1,
    });
  });
});

it("without a list there is nothing to show or to tick", async () => {
  put(cli, "mailbox/inbox/x.json", { exec: ["true"] });
  for (const verb of ["ls", "sync"])
    expect(await cli(["list", verb])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("no list was enqueued") as string,
    });
});

it("one list that cannot be read keeps no other from its ticks", async () => {
  write("- [ ] a\n");
  write("- [ ] b\n", "b.md");
  await enqueue();
  await cli(["enqueue", "--agent", "coder", "--file", "b.md"]);
  await drain();
  fs.rmSync(pathOf("todo.md"));
  const synced = await cli(["list", "sync"]);
  expect(synced).toMatchObject({ code: 74, stdout: "b.md: 1 box ticked, 0 open\n" });
  expect(synced.stderr).toMatch(/todo\.md: ErrIo: there is no such file/);
  expect(read("b.md")).toBe("- [x] b\n");
});
