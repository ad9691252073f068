/** The sample state tree of the repository: what `init --sample` writes, and trays that a clone has. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SAMPLE_CONFIG, SAMPLE_ROADMAP } from "../../src/cli/text/samples.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** As committed: in the working tree people, and the supervisor, edit these files. */
function committed(path: string): string | undefined {
  const { status, stdout } = spawnSync("git", ["show", `HEAD:${path}`], {
    cwd: ROOT,
    encoding: "utf8",
  });
  return status === 0 ? stdout : undefined;
}

describe.skipIf(committed("package.json") === undefined)("the sample state tree", () => {
  test("holds the very files that init --sample writes", () => {
    expect(committed("state/roadmap.yaml")).toBe(SAMPLE_ROADMAP);
    expect(committed("state/config.yaml")).toBe(SAMPLE_CONFIG);
  });

  test.each(["mailbox", "control"])("has the trays of %s, so that cp finds them", (mailbox) => {
    for (const tray of ["inbox", "processing", "outbox", "failed"])
      expect(committed(`state/${mailbox}/${tray}/.gitkeep`)).toBe("");
  });
});
