/** What is left of landings and worktrees goes when its time is over, and nothing that is only there. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Clock } from "../../../src/core/clock.ts";
import { DAY_MS } from "../../../src/core/retention.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { cleanLandings } from "../../../src/parts/landing/clean-landings.ts";
import { landingRetention } from "../../../src/parts/landing/retention.ts";
import { findAll } from "../../../src/parts/worktrees/all-worktrees.ts";
import { cleanSaves } from "../../../src/parts/worktrees/clean-saves.ts";
import { openEnvironment } from "../../../src/supervisor/environment/environment.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import type { Tick } from "../../../src/supervisor/environment/service.ts";
import type { PartHost } from "../../../src/supervisor/part.ts";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";
/** The first run leaves a draft and fails, the second one commits more. */
const TWICE = "if [ -e a.txt ]; then echo more >> a.txt; commit; else echo a > a.txt; exit 1; fi";

interface Kept {
  refs: string[];
  files: string[];
}

async function newLanded(script = TWICE, land = "merge"): Promise<Place & { kept: () => Kept }> {
  const place = newPlace();
  const { pool, repo } = place;
  repo.git("checkout", "-q", "-b", TARGET);
  repo.commit({ "other.txt": "other\n" }, "other work");
  repo.git("checkout", "-q", "main");
  pool.drop("a", inWorktree(script, { land, max_attempts: 2 }));
  await (await pool.start(["--drain"])).ended;
  const kept = (): Kept => ({
    refs: repo.git("for-each-ref", "--format=%(refname)", "refs/mailchute").split("\n"),
    files: fs.readdirSync(join(pool.state, "landings")).filter((name) => name !== ".tmp"),
  });
  return { ...place, kept };
}

const envOf = ({ pool }: Place) =>
  openEnvironment({ tree: stateTree(pool.state), settings: DEFAULT_SETTINGS }, () => {});

async function cleanLater(place: Place, days: number): Promise<string[]> {
  const { trays } = envOf(place);
  const nowMs = Date.now() + days * DAY_MS;
  return cleanLandings({ stateDir: place.pool.state, trays, days: 30, nowMs });
}

async function cleanSavesLater({ pool }: Place, days: number): Promise<string[]> {
  const all = await findAll(pool.state, DEFAULT_SETTINGS);
  const nowMs = Date.now() + days * DAY_MS;
  return cleanSaves(all, { days: 180, nowMs, isLive: () => false });
}

test("30 days after work has landed its refs, drafts and files go, and the target stays", async () => {
  const place = await newLanded();
  const { repo, kept } = place;
  const target = repo.git("rev-parse", TARGET);
  expect(repo.git("log", "--format=%s", TARGET)).toBe("work\nother work\nfirst");
  const before = kept();
  expect(before.refs).toEqual([
    "refs/mailchute/a/1",
    "refs/mailchute/a/ended",
    "refs/mailchute/a/landing",
  ]);
  expect(before.files).toContain("a.order.json");
  expect(await cleanLater(place, 29)).toEqual([]);
  expect(kept()).toEqual(before);
  expect(await cleanLater(place, 31)).toEqual(["a"]);
  expect(kept()).toEqual({ refs: [""], files: [] });
  expect(repo.git("rev-parse", TARGET)).toBe(target);
  expect(await cleanLater(place, 31)).toEqual([]);
});

test("what was checked and is on no branch stays, however old it is", async () => {
  const place = await newLanded();
  const { repo, kept } = place;
  const before = kept();
  repo.git("branch", "-D", TARGET);
  expect(await cleanLater(place, 3000)).toEqual([]);
  expect(kept()).toEqual(before);
  repo.git("tag", "v1", "refs/mailchute/a/landing^1");
  expect(await cleanLater(place, 3000)).toEqual(["a"]);
});

test("work that waits for a person stays with its branch and its files", async () => {
  const place = await newLanded(TWICE, "branch");
  const before = place.kept();
  expect(before.refs).toEqual(["refs/mailchute/a/1", "refs/mailchute/a/base"]);
  expect(await cleanLater(place, 3000)).toEqual([]);
  expect(place.kept()).toEqual(before);
});

test("a save with commits that are nowhere else stays for its own, longer time", async () => {
  const lost = "git checkout -q --detach; echo b > b.txt; commit; git checkout -q mailchute/a";
  const place = await newLanded(`${lost}; echo a > a.txt; commit`);
  const { repo, kept } = place;
  await cleanLater(place, 100);
  expect(kept()).toEqual({ refs: ["refs/mailchute/a/1", "refs/mailchute/a/ended"], files: [] });
  expect(repo.git("log", "--format=%s", "refs/mailchute/a/1")).toContain("work");
  expect(await cleanSavesLater(place, 179)).toEqual([]);
  expect(await cleanSavesLater(place, 181)).toEqual(["refs/mailchute/a/1"]);
  expect(kept().refs).toEqual([""]);
});

test("a save stays while its task has a worktree; worktrees clean removes old ones", async () => {
  const place = newPlace("retention: {saves_days: 0}\n");
  const { pool, repo } = place;
  pool.drop("a", inWorktree("echo a > a.txt; exit 1"));
  await (await pool.start(["--drain"])).ended;
  const saves = () => repo.git("for-each-ref", "--format=%(refname)", "refs/mailchute/a/1");
  expect(saves()).toBe("refs/mailchute/a/1");
  expect(await cleanSavesLater(place, 181)).toEqual([]);
  expect((await pool.run(["worktrees", "clean"])).code).toBe(0);
  expect(saves()).toBe("refs/mailchute/a/1");
  expect((await pool.run(["worktrees", "clean", "a"])).code).toBe(0);
  expect((await pool.run(["worktrees", "clean"])).code).toBe(0);
  expect(saves()).toBe("");
});

test("a supervisor looks a minute after its start and every six hours, and not with a clock that jumped", async () => {
  const place = await newLanded();
  const env = envOf(place);
  let aheadMs = 0;
  const clock: Clock = {
    wallMs: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now(),
    random: Math.random,
  };
  const host = { env: { ...env, trays: { ...env.trays, clock } } } as unknown as PartHost;
  const look = async (
    nowMs: number,
    part = landingRetention(host) as Required<Part>,
  ): Promise<typeof part> => {
    part.work({ nowMs } as Tick);
    await part.finish(0);
    return part;
  };
  const young = await look(0);
  aheadMs = 40 * DAY_MS;
  await look(61_000, young);
  expect(place.kept().files, "its clock jumped").toContain("a.order.json");
  const part = await look(0);
  expect(part.nextMs(0)).toBe(60_000);
  await look(59_000, part);
  expect(place.kept().files).toContain("a.order.json");
  await look(61_000, part);
  expect(place.kept().files).toEqual([]);
  expect(part.nextMs(0)).toBe(61_000 + 6 * 3_600_000);
});
