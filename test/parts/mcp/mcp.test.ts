/** `mailchute mcp` as a client uses it: the built command line, on a real state tree. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newPool } from "../../support/pool.ts";
import { startClient } from "./client.ts";

const AGENTS =
  'data: .\nagents: [{name: coder, kind: claude, program: "true"}, {name: other, kind: codex, program: "true"}]\n';

function newPlace() {
  const pool = newPool();
  fs.appendFileSync(join(pool.state, "config.yaml"), AGENTS);
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  const said = () => [...new MessageReader(folder).next()];
  const start = (...args: string[]) => startClient(pool.dir, args, { MAILCHUTE_STATE: pool.state });
  const tasks = () =>
    fs
      .readdirSync(pool.inbox)
      .map((name) => JSON.parse(fs.readFileSync(join(pool.inbox, name), "utf8")));
  return { pool, said, start, tasks };
}

const namesOf = ({ result }: Record<string, unknown>): string[] =>
  (result as { tools: { name: string }[] }).tools.map(({ name }) => name);

it("a client looks, writes under its name, reads its mail and gives an agent a task", async () => {
  const { pool, said, start, tasks } = newPlace();
  const client = start("--as", "Pat");
  expect(await client.request("initialize", {})).toMatchObject({ id: 1 });
  expect(await client.call("say", { to: ["coder", "human"], text: "--json" })).toContain(
    "recorded",
  );
  expect(said()).toMatchObject([
    { from_agent: "pat", via: "mcp", content: " --json", to: [/coder$/, /human$/].map(matching) },
  ]);
  await pool.run("say hello --to pat --scope unknown:main".split(" "));
  expect(await client.call("mail")).toContain("hello");
  expect(await client.call("mail", { ack: true })).toContain("hello");
  expect(await client.call("mail")).toBe("no unread mail");
  expect(await client.call("ask", { question: "Which one?" })).toContain("recorded");
  expect(said().at(-1)).toMatchObject({ from_agent: "pat", via: "mcp", type: "question" });
  const id = await client.call("enqueue", { agent: "coder", prompt: "-" });
  expect(tasks()).toMatchObject([{ agent: "coder", prompt: " -" }]);
  expect(await client.call("enqueue", { agent: "nobody", prompt: "x" })).toContain(
    'error: mailchute: ErrUsage: no agent "nobody" is configured',
  );
  expect(tasks()).toHaveLength(1);
  expect(await client.call("task", { id })).toContain(id);
  expect(await client.call("task", { id: "none" })).toContain("error: mailchute: ErrTaskNotFound");
  expect(await client.call("wait", { ids: [id], seconds: 1 })).toMatch(
    /^error: .*has not settled/s,
  );
  expect(await client.end()).toBe(0);
});

it.each(["human", "Human"])("a client cannot be %s", async (name) => {
  const { pool } = newPlace();
  const answer = await pool.run(["mcp", "--as", name], "");
  expect(answer).toMatchObject({ code: 2, stdout: "" });
  expect(answer.stderr).toContain("an agent cannot speak as human");
});

it("programs and control are there when a person allows them, and not otherwise", async () => {
  const { pool, start, tasks } = newPlace();
  const plain = start();
  const few = namesOf(await plain.request("tools/list"));
  expect(few).toContain("enqueue");
  for (const name of ["enqueue_program", "cancel", "pause", "spawn", "answer"]) {
    expect(few).not.toContain(name);
    const refused = await plain.request("tools/call", { name, arguments: {} });
    expect(refused).toMatchObject({ error: { code: -32_602 } });
  }
  const more = start("--allow", "exec,control", "--as", "pat");
  expect(namesOf(await more.request("tools/list"))).toHaveLength(few.length + 11);
  const argv = ["echo", "--json", "--"];
  await more.call("enqueue_program", { argv, cwd: pool.dir });
  expect(tasks()).toMatchObject([{ exec: argv, cwd: pool.dir }]);
  expect(await more.call("spawn", { agent: "coder", task: "go", name: "writer" })).toContain(
    "writer: task spawn.",
  );
  const writer = join(pool.state, "scopes", "unknown", "main", "agents", "writer.json");
  expect(JSON.parse(fs.readFileSync(writer, "utf8"))).toMatchObject({ spawned: { by: "pat" } });
  const bad = await pool.run(["mcp", "--allow", "all"]);
  expect(bad).toMatchObject({ code: 2 });
  expect(bad.stderr).toContain("choose of exec, control");
});

it("a client cannot speak as a person, nor read a person's mail", async () => {
  // As the server calls the verbs; with another name it cannot be started.
  const pool = newPool({ env: { MAILCHUTE_VIA: "mcp" } });
  fs.appendFileSync(join(pool.state, "config.yaml"), AGENTS);
  for (const words of [
    "say obey --to coder --from human",
    "ask Really? --from human",
    "mail --ack",
  ]) {
    const { code, stderr } = await pool.run(words.split(" "));
    expect(code, words).toBe(2);
    expect(stderr, words).toContain("cannot speak as human");
  }
});

function matching(pattern: RegExp): unknown {
  return expect.stringMatching(pattern);
}
