/** Work comes on top of its target as it was reviewed, whatever the settings of the person do to lines. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { openRepository } from "../../../src/git/repository.ts";
import { breakSources, type Change } from "../../support/broken.ts";
import { GIT_ENVIRONMENT, newRepository } from "../../support/git-repository.ts";
import { tempDir } from "../../support/temp-dir.ts";

const SRC = fileURLToPath(new URL("../../../src", import.meta.url));
const WORK = "trailing space \t\nline\r\n\n\n";

/** Settings that let git change lines or names of what it applies. */
const SETTINGS: readonly (readonly string[])[] = [
  ["rebase.backend=apply", "apply.whitespace=fix"],
  ["rebase.backend=apply", "apply.whitespace=error", "apply.ignoreWhitespace=change"],
  ["merge.renormalize=true", "core.autocrlf=true"],
  ["merge.directoryRenames=true"],
];

/** @returns what the work has become on top of a target that has moved */
async function landed(src: string, settings: readonly string[]): Promise<string> {
  const repo = newRepository(join(tempDir(), "repo"));
  fs.mkdirSync(join(repo.dir, "old"));
  const base = repo.commit({ "old/one": "one\n", "old/two": "two\n" });
  repo.git("mv", "old", "new");
  const target = repo.commit({});
  repo.git("checkout", "--quiet", "--detach", base);
  fs.mkdirSync(join(repo.dir, "sub"));
  const more = settings.includes("merge.directoryRenames=true") ? { "old/three": "three\n" } : {};
  const tip = repo.commit({ "sub/work.txt": WORK, ...more });
  const own = join(repo.dir, ".git", "person");
  for (const one of settings) repo.git("config", "--file", own, ...one.split("="));
  const { bringTogether } = (await import(
    /* @vite-ignore */ pathToFileURL(join(src, "parts/landing/bring-together.ts")).href
  )) as typeof import("../../../src/parts/landing/bring-together.ts");
  const gitDir = join(repo.dir, ".git");
  const repository = await openRepository(repo.dir, { ...GIT_ENVIRONMENT, GIT_CONFIG_GLOBAL: own });
  const where = { path: repo.dir, gitDir };
  const made = await bringTogether(repository, where, { id: "a", base, tip, target });
  if (made.kind === "conflict") return `conflict ${made.files.join(" ")}`;
  return repo.git("ls-tree", "-r", `${made.commit}`, "sub", "old", "new");
}

let asWritten: Promise<string> | undefined;
const expected = (): Promise<string> => (asWritten ??= landed(SRC, []));

test.each(SETTINGS.map((settings) => [settings.join(", "), settings] as const))(
  "%s: the work is what it was",
  async (_, settings) => {
    const made = await landed(SRC, settings);
    // git would move the file into the folder that was renamed: a person decides.
    if (settings.includes("merge.directoryRenames=true")) expect(made).toBe("conflict new/three");
    else expect(made).toBe(await expected());
  },
);

test("without our own settings git would change the lines, and that is noticed", async () => {
  const change: Change = {
    file: "parts/landing/bring-together.ts",
    from: '"rebase.backend=merge",\n  "apply.whitespace=nowarn",',
    to: "",
  };
  const broken = join(breakSources(change), "src");
  const [settings = []] = SETTINGS;
  expect(await landed(broken, settings)).not.toBe(await expected());
});
