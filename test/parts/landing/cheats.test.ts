/** Runs that bend the check of their work do not land, and honest work does: a real pool, real projects, a catalogue of cases. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { sampleOf } from "../../support/walks.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";
import { type Case, putProject, readCases } from "./cheats/projects.ts";

const listAt = (name: string): Case[] =>
  readCases(fileURLToPath(new URL(`./cheats/${name}.txt`, import.meta.url)));

/** As `init --agents` proposes it. */
const GUARDS = { protect: ["@checks"], verify_from: "target" };
/** So many cases run side by side. */
const AT_ONCE = 3;

/** @returns what became of the work: the words of its landing, or of the run that never came so far */
async function play({ name, project, script }: Case, guards: object): Promise<string> {
  const place = newPlace();
  const { pool, repo, env } = place;
  const home = join(pool.dir, "home");
  fs.mkdirSync(join(home, "bin"), { recursive: true });
  Object.assign(env, { HOME: home, PATH: `${join(home, "bin")}:${process.env["PATH"]}` });
  putProject(repo, project);
  const { verify } = project;
  pool.drop("a", inWorktree(script, { land: "merge", target: "landed", verify, ...guards }));
  const run = await pool.start(["--drain"]);
  // A check that is red before the work, too, and stays so, is a question to a person.
  const isHeld = (): boolean =>
    fs.readdirSync(pool.processing).some((name) => name.includes("~hold-base-"));
  let isOver = false;
  void run.ended.then(() => {
    isOver = true;
  });
  const isAsked = await waitFor(() => (isHeld() ? "asked" : isOver && "ended"), {
    what: `the end of ${name}`,
    timeoutMs: 120_000,
  });
  if (isAsked === "asked") {
    await pool.stop();
    return "did not land: the base is red";
  }
  const tip = repo.git("for-each-ref", "--format=%(objectname)", "refs/heads/landed");
  if (tip !== "" && tip !== repo.git("rev-parse", "main")) return "landed";
  const [error] = pool.errors().filter(({ recordFile }) => recordFile.startsWith("a.land"));
  return error === undefined
    ? `did not land: ${pool.errors()[0]?.error ?? "nothing"}`
    : error.error;
}

async function playAll(cases: readonly Case[], guards: object): Promise<Map<string, string>> {
  const ends = new Map<string, string>();
  const left = [...cases];
  const work = async (): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = left.shift())
      ends.set(one.name, await play(one, guards));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return ends;
}

const namesOf = (ends: Map<string, string>, isMeant: (end: string) => boolean): string[] =>
  [...ends].flatMap(([name, end]) => (isMeant(end) ? [`${name}: ${end.slice(0, 300)}`] : []));

test("no cheat lands, and without the guards they do", async () => {
  const cases = sampleOf(listAt("cheats"), 8);
  const ends = await playAll(cases, GUARDS);
  expect(namesOf(ends, (end) => end === "landed")).toEqual([]);
  const unguarded = await playAll(sampleOf(cases, 4), {});
  const bent = namesOf(unguarded, (end) => end === "landed").length;
  fs.writeSync(
    1,
    `${ends.size} cheats: 0 landed, ${bent} of ${unguarded.size} without the guards\n`,
  );
  expect(bent).toBeGreaterThan(0);
});

test("honest work lands, or waits because it changes a protected file", async () => {
  const ends = await playAll(sampleOf(listAt("honest"), 8), GUARDS);
  const isWaiting = (end: string): boolean => end.includes("changes protected files");
  expect(namesOf(ends, (end) => end !== "landed" && !isWaiting(end))).toEqual([]);
  const waiting = namesOf(ends, isWaiting);
  fs.writeSync(1, `${ends.size} honest changes: ${waiting.length} wait for a person\n`);
  for (const name of waiting) expect(name).toContain("which waits");
});
