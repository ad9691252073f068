/** Spawned agents: what cannot be spawned makes nothing, and those without work are archived after a time. In this process, on real files. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { submitAll } from "../../../src/mailbox/submit/submit.ts";
import { changeAgent, listAgents, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { type SpawnRequest, spawnAgent } from "../../../src/parts/mail/agents/spawn.ts";
import { archiveIdle } from "../../../src/parts/mail/delivery/archive-idle.ts";
import { openWatch } from "../../../src/parts/mail/delivery/mail-watch.ts";
import { writeOffer } from "../../../src/parts/mail/delivery/offers.ts";
import { askedIn } from "../../../src/parts/mail/requests/asked.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { openPostOffice, type PostOffice } from "./post-office.ts";

const HOUR_MS = 60 * 60 * 1000;
const coder = { name: "Coder", kind: "claude" } as AgentSettings;

async function openOffice() {
  let wallMs = Date.now();
  let nowMs = 0;
  const clock = { wallMs: () => wallMs, monotonicMs: () => nowMs, random: Math.random };
  const office = await openPostOffice(tempDir(), ["Coder", "Ann"], { clock });
  const pass = (ms: number): void => {
    wallMs += ms;
    nowMs += ms;
  };
  const { env, folder } = office;
  const place = { folder, settings: env.settings, stateDir: env.tree.dir, trays: env.trays };
  const spawn = async (more: Partial<SpawnRequest> = {}) =>
    (
      await spawnAgent(
        place,
        { request: "r1", by: "human", agent: coder, text: "build", ...more },
        wallMs,
      )
    ).agent;
  const mail = (to: string): void => {
    send(
      office.store,
      { scope: OUTSIDE, from: "bob", via: "cli", to: [to], text: "look" },
      Date.now(),
    );
  };
  return { ...office, pass, spawn, mail };
}

const inboxOf = ({ env }: Pick<PostOffice, "env">): string[] =>
  fs.readdirSync(env.trays.inbox).filter((name) => name.endsWith(".json"));

describe("a request that cannot be carried out", () => {
  it.each([
    ["ErrInvalidTask", { text: "x".repeat(1024 * 1024) }],
    ["ErrInvalidMessage", { cwd: "src" }],
    ["ErrInvalidMessage", { cwd: "/none/there" }],
    ["ErrInvalidMessage", { cwd: "/\0" }],
  ])("is refused with %s, and makes no agent and no task", async (code, more) => {
    const office = await openOffice();
    await expect(office.spawn(more)).rejects.toMatchObject({ code });
    expect(listAgents(office.folder, true).map(({ name }) => name)).toEqual(["ann", "coder"]);
    expect(inboxOf(office)).toEqual([]);
    await expect(office.spawn({ cwd: office.env.tree.dir })).resolves.toMatchObject({ inc: 1 });
  });
});

it("a first task that cannot be submitted yet is tried again, and keeps no agent from its mail", async () => {
  const office = await openOffice();
  const { env, folder, mail, pass, alerts } = office;
  const { trays } = env;
  await office.spawn();
  const [file = ""] = inboxOf(office);
  const id = file.slice(0, -".json".length);
  // As after a crash between the record and the task, while a person has given another task this id.
  const bytes = fs.readFileSync(join(trays.inbox, file), "utf8").trim();
  const { spawned } = readAgent(folder, "coder-2") ?? expect.fail("no agent");
  const undone = spawned === null ? null : { ...spawned, task: bytes };
  fs.rmSync(join(trays.inbox, file));
  fs.rmSync(join(trays.dir, ".once"), { recursive: true });
  await submitAll(trays, [{ id, bytes: Buffer.from('{"exec": ["true"]}\n') }]);
  await changeAgent(folder, "coder-2", { spawned: undone }, Date.now());
  mail("ann");
  env.settings.data = ".";
  const watch = await openWatch(env, new Map());
  await watch.look(true);
  pass(60_000);
  await watch.look();
  expect(inboxOf(office).filter((name) => name.startsWith("wake."))).toHaveLength(1);
  expect(alerts.join()).toContain("the first task of coder-2 waits");
  fs.rmSync(join(trays.inbox, file));
  await watch.look();
  expect(fs.readFileSync(join(trays.inbox, file), "utf8").trim()).toBe(bytes);
  expect(readAgent(folder, "coder-2")?.spawned?.task).toBeNull();
});

describe("a spawned agent", () => {
  /** One whose first task has ended, after so long. */
  async function withIdle(afterMs: number) {
    const office = await openOffice();
    const { name } = await office.spawn();
    for (const file of inboxOf(office)) fs.rmSync(join(office.env.trays.inbox, file));
    office.pass(afterMs);
    const look = async (): Promise<number | null | undefined> => {
      await archiveIdle(office.env, office.folder);
      return readAgent(office.folder, name)?.archived_at;
    };
    return { ...office, name, look };
  }

  it("without work and mail for an hour is archived, and its place is free; an agent of the settings stays", async () => {
    const { env, folder, look, pass, spawn } = await withIdle(HOUR_MS - 2000);
    expect(await look()).toBeNull();
    pass(3000);
    expect(await look()).toBe(Math.floor(env.trays.clock.wallMs() / 1000));
    expect(readAgent(folder, "ann")?.archived_at).toBeNull();
    expect(await spawn({ request: "r2" })).toMatchObject({ name: "coder-3" });
  });

  it("is never archived with archive_ms: 0", async () => {
    const { env, look } = await withIdle(1000 * HOUR_MS);
    env.settings.spawn = { ...env.settings.spawn, archive_ms: 0 };
    expect(await look()).toBeNull();
  });

  it("with its first task, unread mail, an offer, an open question or a run stays", async () => {
    const office = await withIdle(2 * HOUR_MS);
    const { env, folder, look, mail, name } = office;
    const task = `${readAgent(folder, name)?.spawned?.task_id}.json`;
    fs.writeFileSync(join(env.trays.inbox, task), "{}");
    expect(await look()).toBeNull();
    fs.rmSync(join(env.trays.inbox, task));
    const asked = { v: 1, id: "q1", agent: name, question: "why?", ...OUTSIDE } as const;
    askedIn(env.tree.dir).replace(asked.id, asked);
    expect(await look()).toBeNull();
    fs.rmSync(join(env.tree.dir, "questions"), { recursive: true });
    const offer = { v: 1, task: "t", isWake: false, n: 0, upto: 1, text: "x", hops: 0, say: 1 };
    writeOffer(folder, name, offer as never);
    expect(await look()).toBeNull();
    fs.rmSync(folder.path("offers"), { recursive: true });
    await changeAgent(folder, name, { status: "busy" }, 0);
    expect(await look()).toBeNull();
    await changeAgent(folder, name, { status: "failed" }, 0);
    mail("someone-else");
    expect(await look()).not.toBeNull();
    await changeAgent(folder, name, { archived_at: null }, 0);
    mail(name);
    expect(await look()).toBeNull();
  });

  it("to which someone writes in the moment when it is archived is there again", async () => {
    const { folder, look, mail, name } = await withIdle(2 * HOUR_MS);
    const makeDir = folder.makeDir.bind(folder);
    let isWritten = false;
    folder.makeDir = (...parts) => {
      if (!isWritten) mail(name);
      isWritten = true;
      makeDir(...parts);
    };
    expect(await look()).toBeNull();
    expect(isWritten).toBe(true);
  });
});
