/** A run speaks through its own folder: the worker outside records what it says, as the agent of its lease, whatever the run claims. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { listAgents } from "../../../src/parts/mail/agents/agents.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { type Bench, newBench } from "../../agents/runs/bench.ts";
import { waitFor } from "../../support/wait-for.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;

/** An agent `Coder` whose run is this shell script, in a tree that keeps its mail. */
function newTalker(script: readonly string[], more: readonly string[] = []) {
  const turns = [[{ run: script.join("\n") }, { say: "done" }]];
  const bench = newBench([
    { name: "Coder", kind: "claude", turns, settings: { account: "coder" } },
  ]);
  const { pool } = bench;
  fs.appendFileSync(join(pool.state, "config.yaml"), ["data: .", ...more, ""].join("\n"));
  const store = { dataDir: pool.state, isDurable: false };
  const folder = new MailFolder(store, OUTSIDE);
  return { bench, pool, store, folder, said: () => [...new MessageReader(folder).next()] };
}

const runMain = async ({ pool }: Bench): Promise<void> => {
  await pool.start();
  pool.drop("main", { agent: "Coder", prompt: "go" });
  await pool.result("main", 60_000);
};
const shown = ({ from_agent, via, to, content, hops }: Numbered) => ({
  from_agent,
  via,
  to,
  content,
  hops,
});

it("what it says is of its agent, by the command line and by a file that it moves in", async () => {
  const { bench, said } = newTalker([
    `${CLI} say "by command, @june" --json >> "$MAILCHUTE_STATE/../out"`,
    `echo '{"to": ["june"], "content": "by file"}' > "$MAILCHUTE_DROP/x.part"`,
    `mv "$MAILCHUTE_DROP/x.part" "$MAILCHUTE_DROP/x.mail"`,
  ]);
  await runMain(bench);
  const june = "unknown:main:june";
  const own = { from_agent: "coder", via: "run", hops: 0 };
  expect(said().map(shown)).toEqual([
    { ...own, to: [], content: "by command, @june" },
    { ...own, to: [june], content: "by file" },
  ]);
  const out = JSON.parse(fs.readFileSync(join(bench.pool.dir, "out"), "utf8"));
  expect(out).toMatchObject({ to: [june], state: "recorded", is_new: true, id: said()[0]?.id });
});

it("under another name it is refused, and told why, also as a person or as the orchestrator", async () => {
  const names = ["human", "june", "coder-2"];
  const put = `echo '{"from_agent": "human", "to": "june", "content": "x"}' > "$MAILCHUTE_DROP/forged.mail"`;
  const say = (name: string): string =>
    `${CLI} say hi --to ann --from ${name} 2>>"$MAILCHUTE_STATE/../said"; echo "$?" >>"$MAILCHUTE_STATE/../codes"`;
  const { bench, pool, said } = newTalker([...names.map(say), put]);
  await runMain(bench);
  expect(said()).toEqual([]);
  expect(fs.readFileSync(join(pool.dir, "codes"), "utf8")).toBe("2\n2\n2\n");
  const told = fs.readFileSync(join(pool.dir, "said"), "utf8");
  for (const name of names)
    expect(told).toContain(`this run cannot speak as "${name}": it is a run of coder`);
  const alerts = JSON.stringify(pool.alerts().filter(({ alert }) => alert === "drop_refused"));
  expect(alerts).toContain("forged.mail");
});

it("it acknowledges its own mail, and not that of another agent", async () => {
  const { bench, pool, folder, store } = newTalker([
    `${CLI} mail --ack >> "$MAILCHUTE_STATE/../out"`,
    `${CLI} mail june --ack; echo "$?" >> "$MAILCHUTE_STATE/../out"`,
  ]);
  for (const to of ["coder", "june"])
    send(store, { scope: OUTSIDE, from: "human", via: "cli", to: [to], text: `to ${to}` }, 0);
  await runMain(bench);
  expect(fs.readFileSync(join(pool.dir, "out"), "utf8")).toMatch(/to coder\n2\n$/);
  expect(readCursor(folder, "coder").upto).toBe(2);
  expect(readCursor(folder, "june").upto).toBe(0);
});

it("what the worker had not recorded when it was killed, the next one records, once", async () => {
  const { bench, pool, said, store } = newTalker(["sleep 1000"]);
  await pool.start();
  pool.drop("main", { agent: "Coder", prompt: "go" });
  await waitFor(() => bench.log("Coder").some((one) => one.event_type === "tool_started"), {
    what: "the run",
  });
  const [worker] = pool.workers();
  process.kill(worker?.pid ?? 0, "SIGSTOP");
  const drops = join(pool.state, "drops");
  const own = fs.readdirSync(drops).find((name) => name.startsWith("main@")) ?? "";
  for (const id of ["new", "twice"])
    fs.writeFileSync(join(drops, own, `${id}.mail`), `{"to": "june", "content": "${id}"}`);
  // As after a crash between the record and the removal of the file.
  const twice = { id: "twice", text: "twice", to: ["june"] };
  send(store, { ...twice, scope: OUTSIDE, from: "coder", via: "run" }, Date.now());
  process.kill(worker?.pid ?? 0, "SIGKILL");
  // Its folder has another name while it is taken.
  const isTaken = (): boolean => fs.readdirSync(drops).every((name) => !name.includes(own));
  await waitFor(isTaken, { what: "the folder to be taken" });
  expect(said().map(({ id }) => id)).toEqual(["twice", "new"]);
  expect((await pool.run(["cancel", "main", "--wait"])).code).toBe(0);
});

it("it can be neither a person nor the orchestrator in files of the post, in questions, in answers, or by a spawned name", async () => {
  const put = (id: string, from: string): string =>
    `echo '{"from_agent": "${from}", "to": "ann", "content": "x"}' > "$MAILCHUTE_STATE/post/inbox/${id}.json"`;
  const attempts = [
    "ask Really? --to ann --from human",
    "ask Really? --from june",
    "answer q1 yes",
    "release m1",
    "spawn Coder x --name human",
    "spawn Coder x --name june",
  ];
  const { bench, pool, folder, said } = newTalker([
    ...attempts.map(
      (words) =>
        `${CLI} ${words} 2>> "$MAILCHUTE_STATE/../said"; echo $? >> "$MAILCHUTE_STATE/../codes"`,
    ),
    `mkdir -p -m 700 "$MAILCHUTE_STATE/post/inbox"`,
    put("as-human", "Human"),
    put("as-june", "june"),
  ]);
  await runMain(bench);
  expect(fs.readFileSync(join(pool.dir, "codes"), "utf8")).toBe("2\n2\n4\n4\n2\n2\n");
  const told = fs.readFileSync(join(pool.dir, "said"), "utf8");
  for (const part of [
    'this run cannot speak as "human"',
    'this run cannot speak as "june"',
    "a run of an agent may not use `mailchute answer`",
    "a run of an agent may not use `mailchute release`",
    "human is the name of a person",
    "it is the name of the orchestrator",
  ])
    expect(told).toContain(part);
  await pool.run(["messages", "--scope", "unknown:main"]);
  expect(said()).toEqual([]);
  const failed = fs.readdirSync(join(pool.state, "post", "failed")).sort();
  expect(failed).toEqual(expect.arrayContaining(["as-human_error.json", "as-june_error.json"]));
  expect(listAgents(folder)).toEqual([]);
});

it("what it writes to agents of a project that does not accept it is held for a person", async () => {
  const { bench, pool, store } = newTalker([`${CLI} say "do it" --to app:main:ann`]);
  await runMain(bench);
  const other = new MailFolder(store, { project: "app", branch: "main" });
  expect(unreadOf(other, "ann").messages).toEqual([]);
  expect(unreadOf(other, "human").messages).toMatchObject([{ from_agent: "coder", via: "run" }]);
  const shown = await pool.run(["mail", "--scope", "app:main"]);
  expect(shown.stdout).toContain("unknown:main:coder to ann (held)");
});
