/** The built command line of mail: say to a name, messages, mail, agents and archive. Nothing else runs. */
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { changeAgent, createAgent } from "../../../src/parts/mail/agents/agents.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { type Cli, newCli } from "../../cli/run-cli.ts";
import { newRepository } from "../../support/git-repository.ts";
import { waitFor } from "../../support/wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));

/** A command line in the branch feature/login of the repository app, and in one beside it. */
function newMail() {
  const cli = newCli();
  const app = newRepository(join(cli.dir, "app"));
  app.git("checkout", "--quiet", "-b", "feature/login");
  newRepository(join(cli.dir, "backend"));
  const env = { MAILCHUTE_DATA: join(cli.dir, "data") };
  const run = (args: readonly string[], more: Record<string, string> = {}, cwd = "app") =>
    cli(args, { env: { ...env, ...more }, cwd });
  const folder = new MailFolder(
    { dataDir: env.MAILCHUTE_DATA, isDurable: false },
    { project: "app", branch: "feature/login" },
  );
  return { cli, run, folder };
}

type Answer = Awaited<ReturnType<Cli>>;
const said = (answer: Answer): string => {
  expect(answer).toMatchObject({ code: 0 });
  return answer.stdout;
};
const json = (answer: Answer) => JSON.parse(said(answer));
const textsOf = (answer: Answer): string[] =>
  json(answer).messages.map((message: { content: string }) => message.content);

describe("say to a name", () => {
  it("records the message for agents that do not run, in this scope and in another one", async () => {
    const { run } = newMail();
    const sent = await run([
      "say",
      "the schema is merged",
      "--to",
      "June",
      "--to",
      "backend:main:ann",
    ]);
    expect(said(sent)).toMatch(
      /^message m-\S+ to app:feature\/login:june, backend:main:ann: recorded\n$/,
    );
    expect(sent.stderr).toContain("kept for an agent of that name, which is not there");
    expect(textsOf(await run(["mail", "june", "--json"]))).toEqual(["the schema is merged"]);
    expect(textsOf(await run(["mail", "ann", "--json"], {}, "backend"))).toHaveLength(1);
    expect(textsOf(await run(["mail", "june", "--json"], {}, "backend"))).toEqual([]);
  });

  it("to a name of two repositories is refused with both paths, and goes through with the digits of one", async () => {
    const { cli, run } = newMail();
    newRepository(join(cli.dir, "other", "app"));
    for (const cwd of ["app", "other/app"]) said(await run(["say", cwd, "--to", "june"], {}, cwd));
    const args = ["say", "hello", "--to", "app:main:june", "--json"];
    const refused = await run(args, {}, "backend");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    for (const path of ["app", "other/app"])
      expect(refused.stderr).toContain(`(${join(cli.dir, path)})`);
    for (const [n, name] of [...refused.stderr.matchAll(/app~[0-9a-f]{8}(?= \()/g)].entries()) {
      const to = ["say", `to ${n}`, "--to", `${name[0]}:main:june`, "--wait", "recorded"];
      expect(await run(to, {}, "backend")).toMatchObject({ code: 0 });
    }
    const texts = textsOf(await run(["mail", "june", "--json"], {}, "other/app"));
    expect(texts).toEqual(["other/app", "to 1"]);
    expect(textsOf(await run(["mail", "june", "--scope", "app:main", "--json"]))).toEqual(["to 0"]);
  });

  it("goes to whom the text mentions", async () => {
    const { run } = newMail();
    expect(json(await run(["say", "ping @Impl-1 and @backend:main:June", "--json"]))).toMatchObject(
      {
        to: ["app:feature/login:impl-1", "backend:main:june"],
        state: "recorded",
        is_new: true,
      },
    );
  });

  it("with an id is recorded once", async () => {
    const { run } = newMail();
    const args = ["say", "hi", "--to", "june", "--id", "m1"];
    expect(said(await run(args))).toContain(": recorded");
    expect(said(await run(args))).toContain(": was recorded before");
    expect(await run(["say", "ho", "--to", "june", "--id", "m1"])).toMatchObject({ code: 2 });
    expect(textsOf(await run(["mail", "june", "--json"]))).toEqual(["hi"]);
  });

  it.each([
    [["say", "hello"], "it is not said to whom"],
    [["say", " ", "--to", "june"], "there is no text"],
    [["say", "hi", "--to", "a b"], "is no address"],
    [["say", "hi", "--to", "june", "--scope", "app"], '"app" is no scope'],
    [["mail", "a b"], "is no name of an agent"],
    [["mail", "backend:main:june"], "--scope backend:main"],
  ])("is refused: %j", async (args, fault) => {
    const answer = await newMail().run(args);
    expect(answer.stderr).toContain(fault);
    expect(answer.code).toBe(2);
  });

  it("is said by the agent of the run that calls, and never by a person then", async () => {
    const { cli, run } = newMail();
    const task = join(cli.dir, "task.json");
    fs.writeFileSync(task, JSON.stringify({ id: "t", agent: "Impl-1" }));
    const inRun = { MAILCHUTE_LEASE: "s.1.w", MAILCHUTE_TASK_FILE: task };
    await run(["say", "done", "--to", "june"], inRun);
    expect(json(await run(["mail", "june", "--json"]))).toMatchObject({
      messages: [{ from_agent: "impl-1", via: "run" }],
    });
    expect(await run(["say", "hi", "--to", "june", "--from", "Human"], inRun)).toMatchObject({
      code: 2,
    });
    const unknown = await run(["say", "hi", "--to", "june"], { MAILCHUTE_LEASE: "s.1.w" });
    expect(unknown.stderr).toContain("name it with --from NAME");
  });
});

describe("messages", () => {
  async function newConversation() {
    const mail = newMail();
    for (const [from, text, ...more] of [
      ["human", "one @june", "--id", "m1"],
      ["june", "two @ann", "--thread", "m1"],
      ["ann", "three @june", "--reply-to", "m1"],
    ])
      await mail.run(["say", text ?? "", "--from", from ?? "", ...more]);
    const list = async (...args: string[]): Promise<string[]> =>
      said(await mail.run(["messages", "--json", ...args]))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line).content);
    return { ...mail, list };
  }

  it("are listed, and filtered by sender, receiver, thread and count", async () => {
    const { run, list } = await newConversation();
    expect(await list()).toEqual(["one @june", "two @ann", "three @june"]);
    expect(await list("--from", "june")).toEqual(["two @ann"]);
    expect(await list("--mentions", "june")).toEqual(["one @june", "three @june"]);
    expect(await list("--thread", "m1")).toHaveLength(3);
    expect(await list("--mentions", "june", "--last", "1")).toEqual(["three @june"]);
    expect(await list("--last", "0")).toEqual([]);
    expect(await list("--scope", "backend:main")).toEqual([]);
    const text = said(await run(["messages", "--last", "1"]));
    expect(text).toMatch(/^3 {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}ann {2}m-\S+\n {4}three @june\n$/);
  });

  it("that are unread are what the reader has not acknowledged", async () => {
    const { run, list } = await newConversation();
    await run(["mail", "june", "--ack"]);
    await run(["say", "four @june"]);
    expect(await list("--mentions", "june", "--unread")).toEqual(["four @june"]);
    expect(await list("--mentions", "ann", "--unread")).toEqual(["two @ann"]);
    expect(await list("--unread")).toEqual([]);
  });

  it("are shown with -f as they come", async () => {
    const { cli, run } = await newConversation();
    const child = spawn(process.execPath, [LAUNCHER, "messages", "-f"], {
      cwd: join(cli.dir, "app"),
      env: { PATH: process.env["PATH"], MAILCHUTE_DATA: join(cli.dir, "data") },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      let seen = "";
      child.stdout.on("data", (chunk: Buffer) => {
        seen += chunk.toString();
      });
      await waitFor(() => seen.includes("three @june"), { what: "the first messages" });
      await run(["say", "four @june"]);
      await waitFor(() => seen.includes("four @june"), { what: "the new message" });
      expect(seen.match(/one @june/g)).toHaveLength(1);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("that are torn are counted", async () => {
    const { run, folder } = await newConversation();
    fs.appendFileSync(folder.path("messages.1.jsonl"), '{"v":1,"id"');
    await run(["say", "four @june"]);
    const answer = await run(["messages"]);
    expect(answer.stderr).toContain("1 lines");
    expect(said(answer)).toContain("four @june");
  });
});

describe("mail", () => {
  it("stays unread until it is acknowledged", async () => {
    const { run } = newMail();
    await run(["say", "please answer", "--to", "human", "--from", "june"]);
    await run(["say", "look", "--to", "ann", "--from", "june", "--needs-human"]);
    for (let times = 0; times < 2; times++)
      expect(textsOf(await run(["mail", "--json"]))).toEqual(["please answer", "look"]);
    expect(said(await run(["mail", "--ack"]))).toContain("to ann (needs a person)");
    expect(said(await run(["mail"]))).toBe("no unread mail\n");
    expect(textsOf(await run(["mail", "ann", "--json"]))).toEqual(["look"]);
  });

  it("is not acknowledged when its reader goes away", async () => {
    const { cli, run, folder } = newMail();
    const { scope } = folder;
    const text = "x".repeat(900_000);
    const store = { dataDir: join(cli.dir, "data"), isDurable: false };
    send(store, { scope, from: "june", via: "cli", to: ["human"], text }, Date.now());
    const env = { PATH: process.env["PATH"], MAILCHUTE_DATA: join(cli.dir, "data") };
    execFileSync("sh", ["-c", `"$0" "$1" mail --ack | head -c 10`, process.execPath, LAUNCHER], {
      cwd: join(cli.dir, "app"),
      env,
    });
    expect(textsOf(await run(["mail", "--json"]))).toHaveLength(1);
  });
});

describe("agents", () => {
  it("are listed with their unread mail, and are gone when they are archived", async () => {
    const { run, folder } = newMail();
    expect(said(await run(["agents"]))).toBe("app:feature/login has no agents\n");
    for (const name of ["june", "busy"])
      await createAgent(folder, { name, type: "claude", task: "the schema" }, Date.now());
    await changeAgent(folder, "busy", { status: "busy" }, Date.now());
    await run(["say", "hi", "--to", "june"]);
    expect(said(await run(["agents"]))).toMatch(/june +claude +idle +1 +- +the schema/);
    expect(await run(["archive", "busy"])).toMatchObject({ code: 4 });
    // Its task has ended, and no supervisor has looked since.
    const ended = { status: "busy", task_id: "build", home: folder.dir };
    await changeAgent(folder, "busy", ended, Date.now());
    expect(await run(["archive", "busy"])).toMatchObject({ code: 0 });
    await createAgent(folder, { name: "busy", type: "claude" }, Date.now());
    expect(await run(["archive", "nobody"])).toMatchObject({ code: 3 });
    expect(said(await run(["archive", "june"]))).toBe("archived june\n");
    expect(await run(["archive", "june"])).toMatchObject({ code: 4 });
    expect(json(await run(["agents", "--json"])).agents).toMatchObject([{ name: "busy" }]);
    expect(json(await run(["agents", "--json", "--archived"])).agents).toHaveLength(2);
  });
});

describe("mail of agents of another project", () => {
  const foreign = {
    scope: { project: "backend", branch: "main" },
    from: "ann",
    via: "run",
    to: ["app:feature/login:june"],
    text: "the schema is merged, @june",
  } as const;

  it("is held for a person, who passes it on", async () => {
    const { cli, run } = newMail();
    const store = { dataDir: join(cli.dir, "data"), isDurable: false };
    const { id } = send(store, foreign, Date.now());
    expect(textsOf(await run(["mail", "june", "--json"]))).toEqual([]);
    expect(said(await run(["mail"]))).toContain("(held)");
    expect(said(await run(["messages"]))).toContain("(held)");
    for (let twice = 0; twice < 2; twice++)
      expect(said(await run(["release", id]))).toContain(`to app:feature/login:june: recorded`);
    const { messages } = json(await run(["mail", "june", "--json"]));
    expect(messages).toMatchObject([{ from_agent: "human", reply_to: id, mentions: [] }]);
    expect(messages[0].content).toContain("backend:main:ann wrote");
    expect(await run(["release", `release.${id}`])).toMatchObject({ code: 4 });
    expect(await run(["release", "nothing"])).toMatchObject({ code: 3 });
  });

  it.each(["backend", "*"])("is not held when accept_mail_from has %j", async (project) => {
    const { cli, run } = newMail();
    await cli(["init"]);
    const config = join(cli.dir, "state", "config.yaml");
    fs.appendFileSync(config, `accept_mail_from: ["${project}"]\n`);
    send({ dataDir: join(cli.dir, "data"), isDurable: false }, foreign, Date.now());
    expect(textsOf(await run(["mail", "june", "--json"]))).toEqual([foreign.text]);
    expect(textsOf(await run(["mail", "--json"]))).toEqual([]);
  });

  it("is not held when a person writes it, who does not speak for a program", async () => {
    const { run } = newMail();
    await run(["say", "hi", "--to", "app:feature/login:june"], {}, "backend");
    await run(["say", "red", "--to", "app:feature/login:june", "--from", "ci"], {}, "backend");
    expect(textsOf(await run(["mail", "june", "--json"]))).toEqual(["hi"]);
    expect(textsOf(await run(["mail", "--json"]))).toEqual(["red"]);
  });
});

it("the setting `data` keeps mail in the state tree", async () => {
  const cli = newCli();
  await cli(["init"]);
  fs.writeFileSync(join(cli.dir, "state", "config.yaml"), "data: .\n");
  expect(await cli(["say", "hi", "--to", "june"])).toMatchObject({ code: 0 });
  expect(fs.existsSync(join(cli.dir, "state", "scopes", "unknown", "main"))).toBe(true);
});
