/** A person saves a text that is older than what a killed supervisor did: the next supervisor runs no node a second time. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { newPool, type Pool } from "../../support/pool.ts";
import { readPlan } from "../../support/read-plan.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";

takeSome();

const IDS = ["n-1", "n-2", "n-3"];

interface Site {
  pool: Pool;
  roadmap: string;
  /** The plan as it was before any node ran. */
  old: string;
}

/** Undefined in the instant in which the supervisor replaces the file. */
function readIfThere(path: string): string | undefined {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function statuses({ roadmap }: Site): Record<string, string> {
  const text = readIfThere(roadmap);
  if (text === undefined) return {};
  const { nodes } = parse(text) as {
    nodes: { id: string; status: string }[];
  };
  return Object.fromEntries(nodes.map((node) => [node.id, node.status]));
}

const isDone = (site: Site): boolean => {
  const found = statuses(site);
  return IDS.every((id) => found[id] === "done");
};

/** How often each node ran. */
function runs({ pool }: Site): Record<string, number> {
  const lines = fs.readFileSync(join(pool.dir, "ran"), "utf8").split("\n").filter(Boolean);
  return Object.fromEntries(IDS.map((id) => [id, lines.filter((line) => line === id).length]));
}

const ONCE = { "n-1": 1, "n-2": 1, "n-3": 1 };
const TWICE = { "n-1": 2, "n-2": 2, "n-3": 2 };

function save({ roadmap }: Site, text: string): void {
  fs.writeFileSync(`${roadmap}.mine`, text);
  fs.renameSync(`${roadmap}.mine`, roadmap);
}

/** A pool whose nodes are all done, with its supervisor still running. */
async function doneSite(): Promise<Site> {
  const pool = newPool();
  const ran = join(pool.dir, "ran");
  const lines = IDS.map((id, i) => {
    const on = i === 0 ? "" : `, dependencies: [n-${i}]`;
    return `  - { id: ${id}, status: open${on}, exec: [sh, -c, "echo ${id} >> ${ran}"] }`;
  });
  const site = {
    pool,
    roadmap: join(pool.state, "roadmap.yaml"),
    old: `nodes:\n${lines.join("\n")}\n`,
  };
  fs.writeFileSync(site.roadmap, site.old);
  await pool.start(["--no-live"]);
  await waitFor(() => isDone(site), { what: "all nodes to be done" });
  return site;
}

const drain = ({ pool }: Site) => pool.run(["run", "--drain", "--no-live"]);

describe("after a supervisor was killed, an old copy of the plan", () => {
  it("that was saved before the next one starts opens no node that is done", async () => {
    const site = await doneSite();
    await site.pool.killAll();
    save(site, site.old);
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual(ONCE);
    expect(isDone(site)).toBe(true);
  });

  it("that is saved while the next one runs opens no node that is done", async () => {
    const site = await doneSite();
    await site.pool.killAll();
    await site.pool.start(["--no-live"]);
    const loaded = (): number =>
      site.pool.events().filter(({ event }) => event === "roadmap_loaded").length;
    await waitFor(() => loaded() === 2, { what: "the next supervisor to load the plan" });
    save(site, site.old);
    await waitFor(() => loaded() === 3 && isDone(site), { what: "the nodes to be done again" });
    await site.pool.stop();
    expect(runs(site)).toEqual(ONCE);
  });

  it("opens no node whose record a program has taken away", async () => {
    const site = await doneSite();
    await site.pool.killAll();
    for (const id of IDS) fs.rmSync(join(site.pool.outbox, `${id}_result.json`));
    save(site, site.old);
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual(ONCE);
  });

  it("is told of, with the way to run the nodes again, and that way works", async () => {
    const site = await doneSite();
    await site.pool.killAll();
    save(site, site.old);
    expect((await drain(site)).code).toBe(0);
    const told = site.pool.alerts().map(({ message }) => String(message));
    expect(told.filter((message) => message.includes("taken for an old copy"))).toHaveLength(1);
    for (const id of IDS) await site.pool.run(["node", "set-status", id, "open"]);
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual(TWICE);
  });
});

/**
 * As if n-2 had ended after the last look into the journal and before the plan said so, and a person had then saved a text in
 * which it is open. The text is saved so late that only one thing speaks against a wish: the plan never said that n-2 was done.
 */
async function untoldSite(change: (text: string) => string = (text) => text): Promise<Site> {
  const site = await doneSite();
  await site.pool.killAll();
  const journal = join(site.pool.state, "analytics", "supervisor_lifecycle.jsonl");
  const lines = fs.readFileSync(journal, "utf8").split("\n");
  const isEnd = (line: string): boolean => /"event":"completed","task_id":"n-2"/.test(line);
  expect(lines.filter(isEnd)).toHaveLength(1);
  fs.writeFileSync(journal, lines.filter((line) => !isEnd(line)).join("\n"));
  fs.rmSync(join(site.pool.state, "evidence", "n-2"), { recursive: true });
  const done = readPlan(site.roadmap);
  save(site, change(done.replace(/(id: n-2, status: )done/, "$1open")));
  const laterS = Date.now() / 1000 + 10;
  fs.utimesSync(site.roadmap, laterS, laterS);
  return site;
}

describe("a run that ended while no supervisor looked", () => {
  it("counts for a node that the saved plan has as open", async () => {
    const site = await untoldSite();
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual(ONCE);
    expect(isDone(site)).toBe(true);
    const told = site.pool.alerts().map(({ message }) => String(message));
    expect(told.filter((message) => message.includes("n-2 has run already"))).toHaveLength(1);
    // From here on the plan has said it, so that the same text is a wish.
    save(site, readPlan(site.roadmap).replace(/(id: n-2, status: )done/, "$1open"));
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual({ ...ONCE, "n-2": 2 });
  });

  it("does not count for a node whose text has changed", async () => {
    const site = await untoldSite((text) => text.replace("id: n-2,", "id: n-2, title: again,"));
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual({ ...ONCE, "n-2": 2 });
  });

  it("does not count for a node that a command has set open since", async () => {
    const site = await untoldSite((text) => text.replace(/(id: n-2, status: )open/, "$1blocked"));
    expect((await site.pool.run(["node", "set-status", "n-2", "open"])).code).toBe(0);
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual({ ...ONCE, "n-2": 2 });
  });
});

describe("a wish to run nodes again", () => {
  it("counts after a kill, too, for a node whose text has changed", async () => {
    const site = await doneSite();
    await site.pool.killAll();
    save(site, site.old.replaceAll("status: open", "status: open, title: again"));
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual(TWICE);
  });

  it("counts after a kill, too, for one node that is set open some time after its run", async () => {
    const site = await doneSite();
    await site.pool.killAll();
    const done = readPlan(site.roadmap);
    save(site, done.replace(/(id: n-3, status: )done/, "$1open"));
    const laterS = Date.now() / 1000 + 10;
    fs.utimesSync(site.roadmap, laterS, laterS);
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual({ ...ONCE, "n-3": 2 });
  });

  it("counts for all nodes when the last supervisor has ended in order", async () => {
    const site = await doneSite();
    await site.pool.stop();
    save(site, site.old);
    expect((await drain(site)).code).toBe(0);
    expect(runs(site)).toEqual(TWICE);
  });
});
