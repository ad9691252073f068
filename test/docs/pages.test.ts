/** Tutorials and how-tos: each page's blocks run as they stand, in a fresh home directory, and one sees what the page says. */
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { pagesOfDocs, putClaude, runPage } from "../support/newcomer.ts";
import { tempDir } from "../support/temp-dir.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface Stage {
  /** Programs without which the page is not tried. */
  needs?: string[];
  /** Puts there what the page takes for granted, and stand-ins for what the machine of the tests lacks. */
  prepare?: (dir: string) => void;
}

/** A turn of the stand-in: it runs a command, and says something. */
const turn = (run: string, say = "Done."): object[] => [{ run }, { say }];

const STAGES: Record<string, Stage> = {
  "docs/tutorials/first-queue.md": {},
  "docs/tutorials/plan.md": {},
  "docs/tutorials/first-night.md": {
    needs: ["git"],
    prepare: (dir) =>
      putClaude(dir, {
        tasks: {
          "Write README": [turn("echo 'hello.sh prints a greeting.' > README.md")],
          "greet in German": [turn(`echo 'echo "Guten Tag"' > hello.sh`)],
          "Add a test": [turn("echo '[ $(sh hello.sh | wc -l) = 1 ]' >> check.sh")],
        },
      }),
  },
};

const PATH = (process.env["PATH"] ?? "").split(delimiter);
const isThere = (program: string): boolean => PATH.some((dir) => fs.existsSync(join(dir, program)));

test("caught: a page whose command fails, and one that shows what is not seen", async () => {
  const page = (command: string, seen: string): string =>
    `\`\`\`bash\n${command}\n\`\`\`\n\`\`\`text\n${seen}\n\`\`\`\n\`\`\`bash\ntrue\n\`\`\`\n`;
  await runPage(tempDir(), page("echo at 07:15, 3 s ago", "at 08:00, …"));
  await runPage(tempDir(), page("false   # exit code 1", ""));
  await expect(runPage(tempDir(), page("echo two", "one"))).rejects.toThrow();
  await expect(runPage(tempDir(), page("false; echo one", "one"))).rejects.toThrow();
});

test("every tutorial and how-to is tried", () => {
  const pages = pagesOfDocs().filter((name) => /^docs\/(?:tutorials|how-to)\//.test(name));
  expect(Object.keys(STAGES).sort()).toEqual(pages);
});

for (const [name, { needs = [], prepare }] of Object.entries(STAGES))
  test.skipIf(!needs.every(isThere))(`${name} does what it says`, async () => {
    const dir = tempDir();
    prepare?.(dir);
    await runPage(dir, fs.readFileSync(join(ROOT, name), "utf8"));
  });
