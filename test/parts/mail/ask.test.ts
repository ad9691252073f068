/** Questions: of an agent to a person, whose answer comes to it as a message, once; and to another agent. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Apart } from "../../../src/core/apart.ts";
import { ask } from "../../../src/parts/mail/requests/ask.ts";
import { askedIn, sendAnswers } from "../../../src/parts/mail/requests/asked.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newBench } from "../../agents/runs/bench.ts";
import { newCli } from "../../cli/run-cli.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;

function newTree() {
  const stateDir = tempDir();
  const store = { dataDir: stateDir, isDurable: false };
  const folder = new MailFolder(store, OUTSIDE);
  const said = () => [...new MessageReader(folder).next()];
  const place = { stateDir, store };
  const draft = (id: string, more: object = {}) =>
    ({ id, scope: OUTSIDE, from: "coder", via: "run", to: [], text: `${id}?`, ...more }) as const;
  return { stateDir, store, said, place, draft, questions: new QuestionStore(stateDir) };
}

it("an answer is sent once, whatever dies in between", () => {
  const { stateDir, store, said, place, draft, questions } = newTree();
  ask(place, draft("q1"), 1000);
  // The worker died before it had removed the request.
  ask(place, draft("q1"), 2000);
  expect(questions.open(3000)).toMatchObject([{ id: "q1", question: "q1?", asked_at_ms: 1000 }]);
  // `status`, `top` and `doctor` say "Until then WHO waits", and the web pages "asked by WHO".
  expect(questions.open(3000)).toMatchObject([{ who: "unknown:main:coder" }]);
  expect(said()).toMatchObject([{ id: "q1", type: "question", requires_human: true }]);
  sendAnswers(stateDir, store, 3000, newApart());
  expect(said()).toHaveLength(1);
  questions.answer("q1", "blue", "cli", 4000);
  const asked = join(stateDir, "questions", "asked", "q1.json");
  const kept = fs.readFileSync(asked);
  sendAnswers(stateDir, store, 5000, newApart());
  // The supervisor died after the message was recorded.
  fs.writeFileSync(asked, kept);
  sendAnswers(stateDir, store, 6000, newApart());
  expect(said()).toMatchObject([
    { id: "q1" },
    { id: "answer.q1", to: ["unknown:main:coder"], from_agent: "human", reply_to: "q1" },
  ]);
  expect(said()[1]?.content).toContain("blue");
  expect(askedIn(stateDir).readAll()).toEqual([]);
});

it("a question whose file a person removes gets no answer, and is not asked again", () => {
  const { stateDir, store, said, place, draft, questions } = newTree();
  ask(place, draft("q1"), 1000);
  questions.close("q1");
  sendAnswers(stateDir, store, 2000, newApart());
  expect(askedIn(stateDir).readAll()).toEqual([]);
  expect(said()).toHaveLength(1);
});

it("an agent that asks without end is refused at 20 open questions", () => {
  const { place, draft, questions, stateDir, store } = newTree();
  for (let n = 1; n <= 20; n++) ask(place, draft(`q${n}`), n);
  expect(() => ask(place, draft("q21"), 21)).toThrow("20 questions of coder wait for an answer");
  ask(place, draft("other", { from: "june" }), 21);
  questions.answer("q1", "yes", "cli", 22);
  sendAnswers(stateDir, store, 23, newApart());
  ask(place, draft("q21"), 24);
  expect(questions.open(25)).toHaveLength(21);
});

it("the answer of a person, by command or by file, wakes the agent that asked", async () => {
  const turns = [
    [
      { run: `${CLI} ask "Which colour?" --id q1; ${CLI} ask "Which size?" --id q2` },
      { say: "ok" },
    ],
    [{ say: "thanks" }],
  ];
  const bench = newBench([{ name: "coder", kind: "claude", turns }]);
  const { pool } = bench;
  fs.appendFileSync(join(pool.state, "config.yaml"), "mail_enabled: true\ndata: .\n");
  await pool.start();
  pool.drop("main", { agent: "coder", prompt: "go" });
  await pool.result("main", 60_000);
  expect((await pool.run(["status"])).stdout).toContain("Which colour?");
  expect(await pool.run(["answer", "q1", "blue"])).toMatchObject({ code: 0 });
  const file = join(pool.state, "questions", "open", "q2.md");
  fs.appendFileSync(file, "\nlarge\n");
  const told = (): string => bench.messages("coder").join("\n");
  await waitFor(() => told().includes("blue") && told().includes("large"), {
    what: "the agent to be told both answers",
    timeoutMs: 60_000,
  });
  expect(told().split("You asked: Which colour?")).toHaveLength(2);
});

it("another agent answers with --reply-to, and --wait prints the answer", async () => {
  const cli = newCli();
  const env = { MAILCHUTE_DATA: join(cli.dir, "data") };
  await cli(["init"]);
  const asked = cli(["ask", "Is it merged?", "--to", "june", "--id", "q1", "--wait"], { env });
  await waitFor(() => fs.existsSync(join(env.MAILCHUTE_DATA, "scopes")), { what: "the question" });
  const reply = ["say", "yes, today", "--to", "human", "--from", "june", "--reply-to", "q1"];
  expect(await cli(reply, { env })).toMatchObject({ code: 0 });
  expect(await asked).toMatchObject({ code: 0, stdout: "yes, today\n" });
  const late = ["ask", "Really?", "--wait", "--timeout", "10ms"];
  expect(await cli(late, { env })).toMatchObject({ code: 124 });
});

/** Nothing fails here. */
function newApart(): Apart {
  return new Apart({
    what: "the answer to",
    nowMs: () => 0,
    tell: (_, message) => expect.fail(message),
  });
}
