/** Messages that programs drop into `post/inbox`: taken once, refused with a reason, and recovered after each crash. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { MailDropFolder } from "../../../src/parts/mail/post/mail-drop-folder.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { newCli } from "../../cli/run-cli.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const HOME = { project: "app", branch: "main" };
const GOOD = { from_agent: "ci", to: "june", content: "the build is red" };

function newPost() {
  const state = tempDir();
  const dataDir = join(state, "data");
  const trays = openTrays(join(state, "post"), { durability: "process" });
  const errors: unknown[] = [];
  const box = new MailDropFolder({
    trays,
    store: { dataDir, isDurable: false },
    home: HOME,
    settleMs: 30,
    leaseTtlMs: 3_600_000,
    onError: (error) => errors.push(error),
  });
  const drop = (id: string, message: object | string): void => {
    const staged = join(state, `${id}.staged`);
    fs.writeFileSync(staged, typeof message === "string" ? message : JSON.stringify(message));
    fs.renameSync(staged, join(trays.inbox, `${id}.json`));
  };
  const read = (scope = HOME): Numbered[] => [
    ...new MessageReader(new MailFolder({ dataDir, isDurable: false }, scope)).next(),
  ];
  return { state, dataDir, trays, box, errors, drop, read };
}

const documentAt = (...path: string[]) => JSON.parse(fs.readFileSync(join(...path), "utf8"));

describe("a message in post/inbox", () => {
  it("is recorded in the scope of the tree or in its own, and answered in post/outbox", async () => {
    const { trays, box, drop, read, errors } = newPost();
    drop("m1", GOOD);
    drop("m2", {
      ...GOOD,
      project: "shop",
      branch: "dev",
      to: ["ann", "app:main:june"],
      when: "now",
    });
    await box.take();
    expect(errors).toEqual([]);
    expect(read()).toMatchObject([
      { id: "m1", from_agent: "ci", via: "file", to: ["app:main:june"], ...HOME },
      { id: "m2", project: "shop", branch: "dev" },
    ]);
    expect(read({ project: "shop", branch: "dev" })).toMatchObject([{ id: "m2", when: "now" }]);
    expect(documentAt(trays.outbox, "m1_result.json")).toMatchObject({
      task_id: "m1",
      status: "completed",
      result: { id: "m1", to: ["app:main:june"], is_new: true },
    });
    for (const dir of [trays.inbox, trays.processing, trays.tmp])
      expect(fs.readdirSync(dir)).toEqual([]);
  });

  it("that comes again is answered, and there once", async () => {
    const { trays, box, drop, read } = newPost();
    for (let times = 0; times < 2; times++) {
      drop("m1", GOOD);
      await box.take();
    }
    expect(read()).toHaveLength(1);
    const answers = fs.readdirSync(trays.outbox);
    expect(answers).toHaveLength(2);
    const isNew = answers.map((name) => documentAt(trays.outbox, name).result.is_new);
    expect(isNew).toContain(true);
    expect(isNew).toContain(false);
  });

  it("is taken in the order in which it came", async () => {
    const { box, drop, read } = newPost();
    const ids = ["z", "b", "y", "a"];
    for (const id of ids) {
      drop(id, GOOD);
      const cameMs = Date.now();
      // Two files that come within one tick of the kernel (at most 10 ms) have no order.
      await waitFor(() => Date.now() > cameMs + 20, { what: "the clock to go on" });
    }
    await box.take();
    expect(read().map(({ id }) => id)).toEqual(ids);
  });

  it("is waited for until it is whole", async () => {
    const { trays, box, read } = newPost();
    const path = join(trays.inbox, "m1.json");
    const text = JSON.stringify(GOOD);
    fs.writeFileSync(path, text.slice(0, 20));
    await box.take();
    expect(box.hasWaiting).toBe(true);
    fs.writeFileSync(path, text);
    await box.take();
    expect(read()).toHaveLength(1);
  });
});

describe("a file that is no message", () => {
  it.each<[string, object | string, string]>([
    ["no JSON", "{nonsense}", "byte"],
    ["no object", "[]", "expected a JSON object"],
    ["without a sender", { content: "hi" }, "from_agent"],
    ["without a text", { from_agent: "ci", content: " " }, "there is no text"],
    ["of a person", { ...GOOD, from_agent: "Human" }, "cannot speak as human"],
    ["to no name", { ...GOOD, to: ["a b"] }, "is no address"],
    ["of a bad sender", { ...GOOD, from_agent: "a b" }, "is no name of a sender"],
    ["with another time", { ...GOOD, when: "soon" }, "now, next, idle"],
    ["with another id", { ...GOOD, id: "m2" }, "the file is named m1"],
    ["of a bad scope", { ...GOOD, branch: "a:b" }, "no ':'"],
  ])("moves to failed/ with the reason: %s", async (_what, message, reason) => {
    const { trays, box, drop, read } = newPost();
    drop("m1", message);
    await waitFor(
      async () => {
        await box.take();
        return fs.readdirSync(trays.inbox).length === 0;
      },
      { what: "the file to be refused" },
    );
    await waitFor(() => fs.existsSync(join(trays.failed, "m1_error.json")), { what: "the reason" });
    const record = documentAt(trays.failed, "m1_error.json");
    expect(record).toMatchObject({ status: "failed", code: "ErrInvalidMessage" });
    expect(record.error).toContain(reason);
    const kept = await waitFor(
      () => fs.readdirSync(trays.failed).find((name) => /^m1~\w+\.json$/.test(name)),
      { what: "the file" },
    );
    const text = typeof message === "string" ? message : JSON.stringify(message);
    expect(fs.readFileSync(join(trays.failed, kept), "utf8")).toBe(text);
    expect(read()).toEqual([]);
  });

  it("is a link or another message under a known id", async () => {
    const { state, trays, box, drop, read } = newPost();
    drop("m1", GOOD);
    await box.take();
    drop("m1", { ...GOOD, content: "another text" });
    fs.writeFileSync(join(state, "elsewhere"), JSON.stringify(GOOD));
    fs.symlinkSync(join(state, "elsewhere"), join(trays.inbox, "m2.json"));
    await box.take();
    await waitFor(() => fs.readdirSync(trays.failed).length >= 4, { what: "both reasons" });
    expect(read()).toMatchObject([{ content: GOOD.content }]);
    expect(fs.existsSync(join(state, "elsewhere"))).toBe(true);
  });

  it("is left alone when its name says that it is another program's", async () => {
    const { trays, box } = newPost();
    fs.writeFileSync(join(trays.inbox, ".hidden.json"), "x");
    fs.writeFileSync(join(trays.inbox, "notes.txt"), "x");
    await box.take();
    expect(fs.readdirSync(trays.inbox).sort()).toEqual([".hidden.json", "notes.txt"]);
  });
});

it("a message waits in the inbox while the data directory cannot be used", async () => {
  const { dataDir, trays, box, errors, drop, read } = newPost();
  fs.writeFileSync(dataDir, "in the way");
  drop("m1", GOOD);
  await box.take();
  expect(errors).toHaveLength(1);
  expect(fs.readdirSync(trays.inbox)).toEqual(["m1.json"]);
  fs.rmSync(dataDir);
  await box.take();
  expect(read()).toHaveLength(1);
});

it("a shell sends a message with mv, and `mail` takes it", async () => {
  const cli = newCli();
  await cli(["init"]);
  const env = { MAILCHUTE_DATA: join(cli.dir, "data") };
  const script =
    'mkdir -p state/post/inbox && printf \'{"from_agent":"ci","to":"human","content":"red"}\' > state/m1 && mv state/m1 state/post/inbox/m1.json';
  execFileSync("sh", ["-c", `umask 077; ${script}`], { cwd: cli.dir });
  const { code, stdout, stderr } = await cli(["mail", "--json"], { env });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(JSON.parse(stdout).messages).toMatchObject([{ id: "m1", content: "red" }]);
});
