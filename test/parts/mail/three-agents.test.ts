/**
 * Three agents at work hand a piece of work to each other by mail. One of them is killed in the middle: the orchestrator hears of it and
 * lets it go on. The same with a SIGKILL of the supervisor at a random moment: `npm run test:mail` does that 20 times, this once.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { type Bench, newBench } from "../../agents/runs/bench.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { waitFor } from "../../support/wait-for.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;
const RUNS = Number(process.env["MAILCHUTE_MAIL_RUNS"] ?? 1);
const AT_ONCE = 2;
const LONG = { timeoutMs: 60_000 };

/** What each model does in every turn. Each message has an id, so it is said once however often a turn is repeated. */
const TURNS = {
  june: `
    ${CLI} say "write the page" --to ann --id ask-1
    if ${CLI} messages --from ann | grep -q "wake.* failed"; then
      : > may-go-on
      ${CLI} say "go on with the page" --to ann --id ask-2
    fi
    if test -e tested; then ${CLI} say "the page is ready" --to human --id done; fi`,
  // In the middle of its work it is killed, as by a machine that is short of memory.
  ann: `
    test -e may-go-on || { sleep 0.2; kill -9 $PPID; exit; }
    echo page > draft
    ${CLI} say "test the page" --to bob --id draft-1`,
  bob: `
    cp draft tested
    ${CLI} say "the page is ready" --to june --id tested-1`,
};

interface Office extends Bench {
  folder: MailFolder;
  said: () => Numbered[];
}

function newOffice(): Office {
  const agent = (name: keyof typeof TURNS, kind: "claude" | "codex") => ({
    name,
    kind,
    turns: [[{ run: `cd "$MAILCHUTE_STATE/.." && (${TURNS[name]})` }, { say: "ok" }]],
  });
  const bench = newBench([agent("june", "claude"), agent("ann", "claude"), agent("bob", "codex")]);
  fs.appendFileSync(join(bench.pool.state, "config.yaml"), "mail_enabled: true\ndata: .\n");
  const folder = new MailFolder({ dataDir: bench.pool.state, isDurable: false }, OUTSIDE);
  return { ...bench, folder, said: () => [...new MessageReader(folder).next()] };
}

/** @param killAfterMs when the supervisor is killed, from the first message on; undefined: it is not @returns how long it took (ms) */
async function work(office: Office, killAfterMs?: number): Promise<number> {
  const { folder, pool, said } = office;
  const { pid } = await pool.start();
  const store = { dataDir: pool.state, isDurable: false };
  const draft = { scope: OUTSIDE, from: "human", via: "cli", to: ["june"] } as const;
  send(store, { ...draft, text: "we need a page" }, Date.now());
  const fromMs = performance.now();
  if (killAfterMs !== undefined) {
    await waitFor(() => performance.now() - fromMs >= killAfterMs, { what: "the moment", ...LONG });
    process.kill(pid, "SIGKILL");
    await pool.start();
  }
  await waitFor(() => said().some(({ id }) => id === "done"), { what: "the page", ...LONG });
  const tookMs = performance.now() - fromMs;
  const isAtRest = (): boolean =>
    Object.keys(TURNS).every((name) => unreadOf(folder, name).messages.length === 0) &&
    [pool.inbox, pool.processing].every((dir) =>
      fs.readdirSync(dir).every((one) => one === ".tmp"),
    );
  await waitFor(isAtRest, { what: "all mail to be read", ...LONG });
  await pool.stop();
  return tookMs;
}

function check(office: Office): void {
  const { pool } = office;
  const all = office.said();
  const ids = all.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const spoken = all
    .filter(({ via }) => via === "run")
    .map(({ from_agent, id }) => [id, from_agent]);
  expect(Object.fromEntries(spoken)).toEqual({
    "ask-1": "june",
    "ask-2": "june",
    "draft-1": "ann",
    "tested-1": "bob",
    done: "june",
  });
  expect(spoken).toHaveLength(5);
  // Each end of a run of another agent is told to june, once.
  const exits = all.filter(({ type, from_agent: from }) => type === "exit" && from !== "june");
  expect(exits.map(({ from_agent: from }) => from).sort()).toEqual(["ann", "ann", "bob"]);
  for (const { to } of exits) expect(to).toEqual(["unknown:main:june"]);
  expect(exits.filter(({ content }) => / failed/.test(content))).toMatchObject([
    { from_agent: "ann" },
  ]);
  expect(office.messages("june").join()).toMatch(/> wake\.\S+ failed/);
  // One wake-up for each level: two for what ann was told, one for bob.
  const wakes = [...pool.results(), ...pool.errors()].filter(({ agent_id: by }) => by !== "june");
  expect(wakes.map(({ agent_id: by }) => by).sort()).toEqual(["ann", "ann", "bob"]);
  expect(fs.readFileSync(join(pool.dir, "tested"), "utf8")).toBe("page\n");
}

it("the work ends, also when the supervisor is killed at a random moment", {
  timeout: 3_600_000,
}, async () => {
  const undisturbed = newOffice();
  const tookMs = await work(undisturbed);
  check(undisturbed);
  const seed = Number(process.env["MAILCHUTE_MAIL_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const moments = Array.from({ length: RUNS }, () => Math.floor(random() * tookMs));
  const one = async (killAfterMs: number): Promise<void> => {
    const office = newOffice();
    try {
      await work(office, killAfterMs);
      check(office);
    } catch (error) {
      const told = office
        .said()
        .map(({ id, from_agent: from, content }) => `${from} ${id}: ${content}`);
      throw new Error(
        `killed after ${killAfterMs} ms, again with MAILCHUTE_MAIL_SEED=${seed}: ${String(error)}\n${told.join("\n")}`,
        { cause: error },
      );
    }
  };
  while (moments.length > 0) await Promise.all(moments.splice(0, AT_ONCE).map(one));
  process.stdout.write(
    `mail: ${RUNS} supervisors killed while three agents worked (seed ${seed})\n`,
  );
});
