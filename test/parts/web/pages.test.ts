/** The pages as data, over real HTTP and with a real pool: what they show, what they hide, and that they change nothing. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import type { Line, Page } from "../../../src/parts/web/page.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { blockOf, openWeb } from "./open-web.ts";

const HOSTILE = `<img src=x onerror=alert(1)> \u001b]52;c;aGk=\u0007 \u202egnp \u009b31m \u200b`;

/** All texts of a page. */
function textsOf(page: Page): string[] {
  const texts: string[] = [];
  JSON.stringify(page, (_key, value: unknown) => {
    if (typeof value === "string") texts.push(value);
    return value;
  });
  return texts;
}

async function settled(): Promise<Pool> {
  const pool = newPool({ config: "workers: 2\ndurability: process\nretry: {max_attempts: 1}\n" });
  pool.drop("good", {
    title: "A good one",
    exec: ["sh", "-c", "seq 300; printf '\\033[31mred\\033[0m'"],
  });
  pool.drop("bad", { exec: ["sh", "-c", "echo disk full >&2; exit 3"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

it("the overview has the counts, what waits and why, and failures by their cause", async () => {
  const pool = await settled();
  pool.drop("child", { exec: ["true"] });
  const web = await openWeb(pool.state);
  const page = await web.page("/");
  expect(page).toMatchObject({
    title: "Overview",
    command: "mailchute top",
    health: { state: "stopped" },
  });
  const { facts } = blockOf(page, "facts");
  expect(facts.slice(0, 4)).toEqual([
    ["waiting", { text: "1", to: "/tasks?state=waiting" }],
    ["running", { text: "0", to: "/tasks?state=running" }],
    ["done", { text: "1", to: "/tasks?state=done" }],
    ["failed", { text: "1", to: "/tasks?state=failed" }],
  ]);
  expect(blockOf(page, "table", "Running").rows).toEqual([]);
  expect(blockOf(page, "table", "Waiting, and why").rows).toEqual([
    [
      "1",
      "wait: no supervisor runs on this state tree",
      { text: "true", to: "/tasks/child", small: "child" },
      "mailchute run",
    ],
  ]);
  const [row] = blockOf(page, "table", "Failed, by cause").rows;
  expect(row).toEqual([
    { text: "1", to: expect.stringContaining("/tasks?state=failed&cause=disk+full") },
    "exit",
    expect.stringContaining("disk full"),
    { at_ms: expect.any(Number) as number },
    { text: "sh -c echo disk full >&2; exit 3", to: "/tasks/bad", small: "bad" },
    { acts: [{ text: "Retry", what: "retry bad", verb: "retry", ids: ["bad"] }] },
  ]);
});

it("the overview follows a running task", async () => {
  const pool = newPool();
  await pool.start();
  const go = join(pool.dir, "go");
  pool.drop("slow", {
    exec: ["sh", "-c", `echo '::progress 40 half'; until test -e ${go}; do sleep 0.1; done`],
  });
  const web = await openWeb(pool.state);
  let page = await web.page("/");
  const isShown = async (): Promise<boolean> => {
    page = await web.page("/");
    return JSON.stringify(blockOf(page, "table", "Running").rows).includes("40 %  half");
  };
  await waitFor(isShown, { what: "its progress" });
  expect(page.health).toEqual({ state: "live", text: "live" });
  const open = await web.page("/tasks/slow");
  expect(blockOf(open, "facts").facts).toContainEqual(["state", { look: "run", word: "running" }]);
  fs.writeFileSync(go, "");
  await pool.result("slow");
  await pool.stop();
});

it("a task has its state, its error, and the end of its log, with a way back to its beginning", async () => {
  const pool = await settled();
  const web = await openWeb(pool.state);
  const good = await web.page("/tasks/good");
  expect(good).toMatchObject({ title: "A good one", command: "mailchute show good" });
  expect(good.health).toMatchObject({ state: "stopped" });
  const facts = Object.fromEntries(blockOf(good, "facts").facts);
  expect(facts).toMatchObject({
    state: { look: "good", word: "done" },
    id: { id: "good" },
    run: "1",
    file: join(pool.outbox, "good_result.json"),
  });
  const seen: Line[] = [];
  let page = good;
  for (let pages = 0; pages < 5; pages++) {
    const { lines, older } = blockOf(page, "log");
    seen.unshift(...lines);
    if (older === null) break;
    page = await web.page(older.to);
  }
  expect(seen).toEqual([...Array.from({ length: 300 }, (_, n) => String(n + 1)), [["red", "red"]]]);
  expect(blockOf(page, "log").end).toMatchObject({ to: "/tasks/good?file=stdout.log" });
  const bad = await web.page("/tasks/bad");
  expect(textsOf(bad)).toContainEqual(expect.stringMatching(/^exit: disk full/));
  expect(blockOf(bad, "log").title).toBe("stderr.log, its end");
});

it("a task whose work could not land is not simply done, and says why", async () => {
  const pool = await settled();
  const { lease } = await pool.result("good");
  const put = (path: string, content: object): void => {
    fs.mkdirSync(dirname(join(pool.state, path)), { recursive: true });
    fs.writeFileSync(join(pool.state, path), JSON.stringify(content));
  };
  const factsNow = async (): Promise<Page> => (await openWeb(pool.state)).page("/tasks/good");
  const order = { v: 1, task_id: "good", lease, land: "merge", branch: "b", target: "main" };
  put("landings/good.order.json", order);
  put("landings/good.sent.json", { v: 1, lease });
  put("mailbox/inbox/good.land.json", { exec: ["true"] });
  expect(blockOf(await factsNow(), "facts").facts).toEqual(
    expect.arrayContaining([
      ["state", { look: "good", word: "done" }],
      ["landing", { text: "good.land has not ended: waiting", to: "/tasks/good.land" }],
    ]),
  );
  fs.rmSync(join(pool.inbox, "good.land.json"));
  put("mailbox/failed/good.land_error.json", {
    task_id: "good.land",
    error: "it conflicts in a.txt",
  });
  const page = await factsNow();
  expect(blockOf(page, "facts").facts).toEqual(
    expect.arrayContaining([
      ["state", { look: "bad", word: "done, but its work did not land" }],
      ["landing", { text: "good.land failed", to: "/tasks/good.land" }],
    ]),
  );
  expect(textsOf(page)).toContain("its work did not land: it conflicts in a.txt");
});

it("a task that waits says why", async () => {
  const pool = newPool();
  pool.drop("child", { exec: ["true"], metadata: { dependencies: ["parent"] } });
  const web = await openWeb(pool.state);
  const page = await web.page("/tasks/child");
  expect(textsOf(page)).toContainEqual(expect.stringMatching(/^it waits for parent/));
  expect(blockOf(page, "table", "Runs after").rows).toEqual([
    [
      { text: "parent", to: "/tasks/parent" },
      { look: "soft", word: "not found" },
    ],
  ]);
});

it("a task has what it waits for and what waits for it, in the inbox and in the plan", async () => {
  const pool = newPool();
  pool.drop("parent", { title: "The first", exec: ["true"] });
  pool.drop("child", { title: "The next", exec: ["true"], dependencies: ["parent", "node-a"] });
  pool.drop("other", { exec: ["true"], dependencies: "PARENT" });
  const nodes = [
    { id: "parent", title: "The first", status: "in_progress", exec: ["true"] },
    { id: "node-a", title: "A", status: "open", exec: ["true"], dependencies: ["parent"] },
    { id: "node-b", title: "B", status: "open", exec: ["true"], dependencies: ["node-a"] },
  ];
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes }));
  const web = await openWeb(pool.state);
  const waiting = { look: "soft", word: "waiting" };
  const node = [{ text: "A", small: "node-a", to: "/plan?node=node-a" }];
  expect(blockOf(await web.page("/tasks/parent"), "table", "What waits for it").rows).toEqual([
    [{ text: "The next", small: "child", to: "/tasks/child" }, waiting],
    [{ text: "true", small: "other", to: "/tasks/other" }, waiting],
    [...node, { look: "soft", word: "node: open" }],
  ]);
  const rows = async (): Promise<unknown> =>
    blockOf(await web.page("/tasks/child"), "table", "Runs after").rows;
  expect(await rows()).toMatchObject([
    [{ text: "The first" }, waiting],
    [{ text: "A" }, {}],
  ]);
  fs.rmSync(join(pool.inbox, "child.json"));
  await waitFor(async () => !JSON.stringify(await web.page("/tasks/parent")).includes("The next"), {
    what: "the page without the child",
  });
});

it("each run of a task has its logs, and stdout and stderr stand together without an order of their lines", async () => {
  const pool = newPool({
    config: "durability: process\nretry: {max_attempts: 2, backoff_ms: 10}\n",
  });
  const script =
    "echo first >&2; echo $MAILCHUTE_ATTEMPT of them; sleep 0.05; echo last >&2; exit 1";
  pool.drop("twice", { exec: ["sh", "-c", script] });
  await pool.run(["run", "--drain"]);
  const web = await openWeb(pool.state);
  const logsOf = (page: Page): [string, Line[]][] =>
    page.blocks.flatMap((block) => (block.kind === "log" ? [[block.title, block.lines]] : []));
  const page = await web.page("/tasks/twice");
  expect(logsOf(page)).toEqual([
    ["stdout.log, its end", ["2 of them"]],
    ["stderr.log, its end", ["first", "last"]],
  ]);
  expect(textsOf(page)).toContainEqual(expect.stringMatching(/^Two files: .* is not known/));
  const runs = blockOf(page, "table", "Runs");
  const isOfEach = (name: string): boolean => name !== "CPU" && name !== "memory";
  expect(runs.columns.filter(isOfEach)).toEqual(["run", "waited", "began", "took", "end", "why"]);
  const [[first] = [], [second] = []] = runs.rows as { text: string; to: string }[][];
  expect([first?.text, second?.text]).toEqual(["1", "2"]);
  const before = await web.page(first?.to ?? "");
  expect(blockOf(before, "heading").text).toBe("Run 1");
  expect(logsOf(before)[0]?.[1]).toEqual(["1 of them"]);
  // The folder of a run of another task is not shown.
  const other = (first?.to ?? "").replace("/tasks/twice", "/tasks/else");
  pool.drop("else", { exec: ["true"] });
  expect(logsOf(await web.page(other)).map(([title]) => title)).toEqual([
    "task, without the values of its variables",
  ]);
});

it("a text is found in a log from its end to its beginning, and is marked", async () => {
  const pool = newPool();
  pool.drop("long", { exec: ["sh", "-c", "seq -f 'line %g.' 3000"] });
  await pool.run(["run", "--drain"]);
  const web = await openWeb(pool.state);
  const found: string[] = [];
  let page = await web.page("/tasks/long?find=7.");
  for (let pages = 0; pages < 100; pages++) {
    const { lines, older } = blockOf(page, "log");
    for (const line of lines.toReversed())
      if (typeof line !== "string")
        found.push((line as [string, string][]).map(([text]) => text).join(""));
    if (older === null) break;
    expect(older.text).toBe("find before these");
    page = await web.page(older.to);
  }
  const wanted = Array.from({ length: 300 }, (_, n) => `line ${n * 10 + 7}.`);
  expect([...new Set(found)]).toEqual(wanted.reverse());
  expect(blockOf(await web.page("/tasks/long?find=2007."), "log").lines).toContainEqual([
    ["line ", ""],
    ["2007.", "mark"],
  ]);
  const none = blockOf(await web.page("/tasks/long?find=nowhere"), "log");
  expect(none.title).toBe("stdout.log: not found in the last 8 MiB");
});

it("a search in a conversation looks at what the page shows, and opens the result that it is in", async () => {
  const pool = newPool();
  pool.drop("talk", { exec: ["true"] });
  await pool.run(["run", "--drain"]);
  const { run } = await pool.result("talk");
  const dir = join(pool.state, "runs", String(run));
  const session = { v: 1, task_id: "talk", agent: "ada", kind: "claude", account: "default" };
  const rest = { session_id: "s", cwd: "/", was_refused: false, hand_off: "", updated_at: 1 };
  const booked = { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 };
  fs.writeFileSync(join(dir, "session.json"), JSON.stringify({ ...session, ...rest, booked }));
  const of = (type: string, content: object): string =>
    JSON.stringify({ type, message: { role: type, content: [content] } });
  const lines = [
    of("assistant", { type: "text", text: 'He said "stop"\nat once.' }),
    of("assistant", { type: "tool_use", id: "t", name: "Bash", input: { command: "ls" } }),
    of("user", { type: "tool_result", tool_use_id: "t", content: "one\ttwo\nthree" }),
  ];
  fs.writeFileSync(join(dir, "events.jsonl"), `${lines.join("\n")}\n`);
  const web = await openWeb(pool.state);
  const find = async (text: string) =>
    blockOf(
      await web.page(`/tasks/talk?file=events.jsonl&find=${encodeURIComponent(text)}`),
      "log",
    );
  expect((await find('"stop"')).title).toBe("conversation, its end");
  expect((await find("tool_use")).title).toBe("conversation: not found in the last 8 MiB");
  const result = (await find("three")).lines.find(
    (line) => typeof line === "object" && "head" in line,
  );
  expect(result).toMatchObject({ is_open: true });
});

it("a task has its program, its place and the names of its variables, as show has them with values", async () => {
  const pool = newPool();
  const exec = ["sh", "-c", "echo $A\n  echo\u0007"];
  pool.drop("t", {
    title: "T",
    exec,
    cwd: "/tmp",
    env: { A: "secret" },
    env_from: { B: "env:B" },
    verify: [["test", "-s", "a b"], ["true"]],
  });
  const web = await openWeb(pool.state);
  const rows = [
    ["cwd", "/tmp"],
    ["env from", "B=env:B"],
    ["verify", "test -s 'a b'"],
    ["verify", "true"],
  ];
  const page = await web.page("/tasks/t");
  const { facts } = blockOf(page, "facts");
  const script = ["exec", "sh -c 'echo $A\n  echo?'"];
  expect(facts).toEqual(expect.arrayContaining([script, ...rows, ["env", "A=…"]]));
  expect(JSON.stringify(page)).not.toContain("secret");
  const { stdout } = await pool.run(["show", "t"]);
  const lines = stdout.split("\n").map((line) => [line.slice(0, 14).trim(), line.slice(14)]);
  expect(lines).toEqual(expect.arrayContaining([...rows, ["env", "A=secret"]]));
});

it("a task that is in no tray is said to be in none, whatever its id is", async () => {
  const web = await openWeb(newPool().state);
  for (const id of ["gone", "..%2F", "a%2Fb", "%00", "a".repeat(300), "%F0%9F%92%A9"])
    expect(blockOf(await web.page(`/tasks/${id}`), "text").text).toMatch(/^no tray has a task "/);
});

it("lists have each task once over their pages, and only those whose id begins so", async () => {
  const pool = newPool();
  const ids = Array.from({ length: 230 }, (_, n) => `task-${n}`);
  for (const id of [...ids, "other"]) pool.drop(id, { exec: ["true"], title: `title of ${id}` });
  const web = await openWeb(pool.state);
  const seen: string[] = [];
  let path: string | undefined = "/tasks?q=task-";
  while (path !== undefined) {
    const page: Page = await web.page(path);
    const { rows } = blockOf(page, "table");
    expect(rows.length).toBeLessThanOrEqual(100);
    for (const [cell] of rows) seen.push((cell as { small: string }).small);
    const links = page.blocks.flatMap((block) => (block.kind === "links" ? block.links : []));
    path = links.find(({ text }) => text === "next page")?.to;
  }
  expect(seen.sort()).toEqual(ids.sort());
  const failed = await web.page("/tasks?state=failed");
  expect(blockOf(failed, "table")).toMatchObject({ rows: [], none: "no task is failed" });
  expect(failed.command).toBe("mailchute ls --state-is failed");
  expect((await web.page("/tasks?state=nonsense")).title).toBe("Tasks: waiting");
});

it("no text of a task steers anything", async () => {
  const pool = newPool({ config: "workers: 2\ndurability: process\nretry: {max_attempts: 1}\n" });
  const print = ["sh", "-c", 'printf "%s\\n" "$0"; printf "%s" "$0" >&2; exit 1', HOSTILE];
  pool.drop("hostile", { title: HOSTILE, exec: print });
  await pool.run(["run", "--drain"]);
  const web = await openWeb(pool.state);
  const pages = ["/", "/tasks?state=failed", "/tasks/hostile", "/tasks/hostile?file=stderr.log"];
  for (const path of [
    ...pages,
    `/tasks/${encodeURIComponent(HOSTILE)}`,
    `/tasks?q=${encodeURIComponent(HOSTILE)}`,
  ]) {
    const page = await web.page(path);
    const { value, ...find } = page.blocks.find((block) => block.kind === "find") ?? { value: "" };
    // What a person typed is in the field as it was typed.
    expect(["", HOSTILE]).toContain(value);
    const shown = { ...page, blocks: [...page.blocks.filter(({ kind }) => kind !== "find"), find] };
    for (const text of textsOf(shown as Page))
      expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  }
  expect(textsOf(await web.page("/tasks/hostile"))).toContainEqual(
    expect.stringMatching(/^<img src=x onerror=alert\(1\)> \\x1b\]52;c;aGk=\\x07 /),
  );
});

it("a link in the place of a run's folder or file is not followed", async () => {
  const pool = await settled();
  const web = await openWeb(pool.state);
  const hidden = join(pool.dir, "hidden");
  fs.mkdirSync(hidden);
  fs.writeFileSync(join(hidden, "stdout.log"), "content-that-is-not-shown");
  const record = JSON.parse(fs.readFileSync(join(pool.outbox, "good_result.json"), "utf8")) as {
    run: string;
  };
  const runDir = join(pool.state, "runs", record.run);
  fs.rmSync(join(runDir, "stdout.log"));
  fs.symlinkSync(join(hidden, "stdout.log"), join(runDir, "stdout.log"));
  expect(JSON.stringify(await web.page("/tasks/good?file=stdout.log"))).not.toContain("not-shown");
  fs.rmSync(runDir, { recursive: true });
  fs.symlinkSync(hidden, runDir);
  const page = await web.page("/tasks/good?file=stdout.log");
  expect(blockOf(page, "facts").facts).toContainEqual(["state", { look: "good", word: "done" }]);
  const links = page.blocks.flatMap((block) => (block.kind === "links" ? block.links : []));
  expect(links.map(({ text }) => text.split(" ")[0])).toEqual(["good_result.json"]);
});

it("a tree that is gone is said on the page, and comes back", async () => {
  const pool = newPool();
  pool.drop("one", { exec: ["true"] });
  const web = await openWeb(pool.state);
  fs.renameSync(pool.state, `${pool.state}-away`);
  for (const path of ["/", "/tasks", "/tasks/one"]) {
    const page = await web.page(path);
    expect(page.health?.state).toBe("unreadable");
    expect(blockOf(page, "text").text).toContain("is gone");
  }
  fs.renameSync(`${pool.state}-away`, pool.state);
  expect((await web.page("/tasks/one")).title).toBe("one");
});

/** Each file below a folder, with its size and times. */
function everything(dir: string): string[] {
  return fs.readdirSync(dir, { recursive: true, encoding: "utf8" }).map((name) => {
    const { size, mtimeMs, ctimeMs } = fs.lstatSync(join(dir, name));
    return `${name} ${size} ${mtimeMs} ${ctimeMs}`;
  });
}

it("reading the pages changes no file of the tree", async () => {
  const pool = await settled();
  pool.drop("waits", { exec: ["true"] });
  const web = await openWeb(pool.state);
  const before = everything(pool.state);
  for (const path of [
    "/",
    "/tasks",
    "/tasks?state=done",
    "/tasks/good",
    "/tasks/waits",
    "/tasks/none",
  ])
    await web.page(path);
  expect(everything(pool.state)).toEqual(before);
});

it("a search finds tasks by their words, group, agent, time and cause, in any state, and has buttons for what it found", async () => {
  const pool = newPool({ config: "workers: 2\ndurability: process\nretry: {max_attempts: 1}\n" });
  const fails = (host: string): string[] => [
    "sh",
    "-c",
    `echo cannot reach ${host}:5432 >&2; exit 3`,
  ];
  pool.drop("a-1", { title: "Count the WORDS", group: "text", exec: ["true"] });
  pool.drop("b-1", { group: "net", exec: fails("10.0.0.1") });
  pool.drop("b-2", { group: "net", exec: fails("10.0.0.2") });
  pool.drop("c-1", { description: "about words, too", exec: ["false"] });
  await pool.run(["run", "--drain"]);
  pool.drop("d-1", { agent: "ada", prompt: "Spell words right", exec: ["true"] });
  const web = await openWeb(pool.state);
  const idsAt = async (path: string): Promise<string[]> => {
    const { rows } = blockOf(await web.page(path), "table");
    return rows.map(([id]) => (id as { small: string }).small).sort();
  };
  expect(await idsAt("/tasks?state=all&find=words")).toEqual(["a-1", "c-1", "d-1"]);
  expect(await idsAt("/tasks?state=failed&group=net")).toEqual(["b-1", "b-2"]);
  expect(await idsAt("/tasks?state=all&agent=ada")).toEqual(["d-1"]);
  expect(await idsAt("/tasks?state=done&since=1h")).toEqual(["a-1"]);
  expect(await idsAt("/tasks?state=skipped")).toEqual([]);
  const causes = blockOf(await web.page("/"), "table", "Failed, by cause").rows;
  const [both] = causes.flatMap(([count]) => count as { text: string; to: string });
  expect(both?.text).toBe("2");
  expect(await idsAt(both?.to ?? "")).toEqual(["b-1", "b-2"]);
  const page = await web.page("/tasks?state=all&find=words");
  expect(blockOf(page, "acts").acts).toMatchObject([
    { text: "Retry these 1", ids: ["c-1"] },
    { text: "Cancel these 1…", ids: ["d-1"], ask: expect.any(String) },
  ]);
  expect(blockOf(page, "links").links.map(({ text }) => text)).toEqual([
    "waiting 1",
    "ready 0",
    "held 0",
    "running 0",
    "done 1",
    "failed 3",
    "cancelled",
    "skipped 0",
    "all",
  ]);
  // A person may paste the command, and a link may hold anything.
  const pasted = await web.page(`/tasks?find=${encodeURIComponent("$(touch x)'\n")}`);
  expect(pasted.command).toBe("mailchute ls --state-is waiting --find '$(touch x)'\\''?'");
  const { stdout } = await pool.run(["ls", "--find", "WORDS", "--json"]);
  const { tasks } = JSON.parse(stdout) as { tasks: { id: string; agent: string | null }[] };
  expect(tasks.map(({ id }) => id).sort()).toEqual(["a-1", "c-1", "d-1"]);
  expect(tasks.find(({ id }) => id === "d-1")?.agent).toBe("ada");
});
