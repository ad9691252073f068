/**
 * Three scopes at once, with agents of the same names and one data directory: a project, another branch of it, another project. Each has
 * a supervisor of its own, and nothing that is said or asked, and nobody who is woken or archived, crosses; unless it is addressed so.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readAgent } from "../../../src/parts/mail/agents/agents.ts";
import type { Scope } from "../../../src/parts/mail/scope/scope.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { readWakes } from "../../../src/parts/mail/store/wake-log.ts";
import { type Bench, newBench } from "../../agents/runs/bench.ts";
import { newRepository } from "../../support/git-repository.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const LONG = { timeoutMs: 120_000 };

interface Place extends Bench {
  scope: Scope;
  /** What stands in each text that is said here. */
  mark: string;
  folder: MailFolder;
  said: () => Numbered[];
  cli: (...args: string[]) => Promise<string>;
}

/** Agents `ann` and `bob` in the repository around it. @param asks what the first run of ann does */
function newPlace(scope: Scope, mark: string, parent: string, dataDir: string): Place {
  const cli = `${process.execPath} ${BIN}`;
  const ann = [
    [
      { run: `${cli} ask "Which ${mark}?" --id q1` },
      { run: `${cli} say "from a run in ${mark}, @bob"` },
      // The first two are meant for other scopes. Of the last one only the name is meant.
      { run: `${cli} say "${mark} crosses" --to app:feature/login:bob --id x-${mark}-branch` },
      { run: `${cli} say "${mark} crosses" --to shop:main:bob --id x-${mark}-project` },
      { say: `work of ${mark}` },
    ],
    [{ say: `again ${mark}` }],
  ];
  const bench = newBench(
    [
      { name: "ann", kind: "claude", turns: ann },
      { name: "bob", kind: "codex", turns: [[{ say: `bob of ${mark}` }]] },
    ],
    { place: { parent, env: { MAILCHUTE_DATA: dataDir } } },
  );
  const more = "mail_enabled: true\norchestrator: bob\n";
  fs.appendFileSync(join(bench.pool.state, "config.yaml"), more);
  const folder = new MailFolder({ dataDir, isDurable: false, orchestrator: "bob" }, scope);
  return {
    ...bench,
    scope,
    mark,
    folder,
    said: () => [...new MessageReader(folder).next()],
    async cli(...args) {
      const { code, stdout, stderr } = await bench.pool.run(args);
      expect(stderr).toBe("");
      expect(code).toBe(0);
      return stdout;
    },
  };
}

function newPlaces(): [Place, Place, Place] {
  const dir = tempDir();
  const dataDir = join(dir, "data");
  const app = newRepository(join(dir, "app"));
  app.git("worktree", "add", "--quiet", "-b", "feature/login", join(dir, "app-login"));
  newRepository(join(dir, "shop"));
  const place = (project: string, branch: string, mark: string, parent: string): Place =>
    newPlace({ project, branch }, mark, join(dir, parent), dataDir);
  return [
    place("app", "main", "RED", "app"),
    place("app", "feature/login", "GREEN", "app-login"),
    place("shop", "main", "BLUE", "shop"),
  ];
}

const each = async (places: readonly Place[], act: (place: Place) => unknown): Promise<void> =>
  void (await Promise.all(places.map(act)));

/** Everything that the agents of a place were told. */
const toldIn = (place: Place): string =>
  [...place.messages("ann"), ...place.messages("bob")].join("\n");
const marksIn = (text: string): string[] =>
  ["RED", "GREEN", "BLUE"].filter((mark) => text.includes(mark));
const crossing = ({ content }: Numbered): boolean => content.includes("crosses");

it("nothing crosses between them that is not addressed so", async () => {
  const places = newPlaces();
  const [red, green, blue] = places;
  await each(places, async ({ pool, folder }) => {
    await pool.start();
    await waitFor(() => readAgent(folder, "ann") && readAgent(folder, "bob"), {
      what: "both agents",
    });
  });
  await each(places, async ({ cli, mark }) => {
    await cli("say", `hello ann of ${mark}`, "--to", "ann");
    await cli("say", `hello @bob of ${mark}`);
  });
  // Ann asks and says in her run, bob hears of its end.
  await each(places, ({ said, folder, mark }) =>
    waitFor(
      () =>
        said().some((one) => one.type === "exit" && one.from_agent === "ann") &&
        unreadOf(folder, "ann").messages.length === 0 &&
        unreadOf(folder, "bob").messages.length === 0,
      { what: `the mail of ${mark} to be read`, ...LONG },
    ),
  );

  // Messages, mentions, exits: each in its own scope, and those that were to cross.
  for (const { scope, said, mark } of places) {
    const own = said().filter((one) => !crossing(one));
    expect(own.map(({ project, branch }) => ({ project, branch }))).toEqual(own.map(() => scope));
    for (const { to, mentions } of own)
      for (const address of [...to, ...mentions])
        expect(address.startsWith(`${scope.project}:${scope.branch}:`)).toBe(true);
    expect(marksIn(own.map(({ content }) => content).join("\n"))).toEqual([mark]);
    expect(own.some(({ content }) => content === `from a run in ${mark}, @bob`)).toBe(true);
  }
  const ids = (place: Place): string[] =>
    place
      .said()
      .filter(crossing)
      .map(({ id }) => id)
      .sort();
  expect(ids(red)).toEqual(["x-RED-branch", "x-RED-project"]);
  expect(ids(green)).toEqual(
    ["x-GREEN-branch", "x-GREEN-project", "x-RED-branch"].concat("x-BLUE-branch").sort(),
  );
  expect(ids(blue)).toEqual(
    ["x-BLUE-branch", "x-BLUE-project", "x-GREEN-project", "x-RED-project"].sort(),
  );

  // What agents were told: their own project's words, and none of another project before a person passes them on.
  expect(marksIn(toldIn(red))).toEqual(["RED"]);
  expect(marksIn(toldIn(green))).toEqual(["RED", "GREEN"]);
  expect(marksIn(toldIn(blue))).toEqual(["BLUE"]);
  expect(toldIn(green)).toContain("From app:main:ann at ");
  expect(toldIn(green)).not.toContain("GREEN crosses\n\nFrom app:main:bob");
  for (const place of places)
    for (const name of ["ann", "bob"])
      for (const { from } of readWakes(place.folder, name))
        for (const address of from)
          expect(address.startsWith(`${place.scope.project}:`), address).toBe(true);
  expect(await blue.cli("mail")).toContain("(held)");
  await blue.cli("release", "x-RED-project");
  await waitFor(() => toldIn(blue).includes("> RED crosses"), {
    what: "what was released",
    ...LONG,
  });
  expect(toldIn(blue)).not.toContain("GREEN");

  // One question of the same id in each tree; the answer goes to the one that asked.
  expect(await green.cli("status")).toContain("Which GREEN?");
  await green.cli("answer", "q1", "the dark one");
  await waitFor(() => green.messages("ann").join().includes("the dark one"), {
    what: "the answer",
    ...LONG,
  });
  for (const { pool, folder, mark } of [red, blue]) {
    const open = fs.readFileSync(join(pool.state, "questions", "open", "q1.md"), "utf8");
    expect(open).toContain(`Which ${mark}?`);
    expect([...new MessageReader(folder).next()].map(({ id }) => id)).not.toContain("answer.q1");
  }

  // The lists of each scope, and what is archived in one of them.
  await waitFor(() => readAgent(red.folder, "ann")?.status === "idle", { what: "idle", ...LONG });
  await red.cli("archive", "ann");
  for (const { cli, scope, pool, mark } of places) {
    const { agents } = JSON.parse(await cli("agents", "--json"));
    const names = mark === "RED" ? ["bob"] : ["ann", "bob"];
    expect(agents.map(({ name, home }: { name: string; home: string }) => [name, home])).toEqual(
      names.map((name) => [name, pool.state]),
    );
    expect(JSON.parse(await cli("mail", "--json")).scope).toEqual(scope);
  }
  expect(readCursor(green.folder, "ann").upto).toBeGreaterThan(0);
});
