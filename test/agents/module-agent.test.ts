/** Where the code of a module agent comes from: from its own file, and from no place that others may write. */
import fs from "node:fs";
import { join } from "node:path";
import { createJiti } from "jiti";
import { expect, it } from "vitest";
import { pathOfEntry } from "../../src/host/package.ts";
import { newPool } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";

/** What the loader would keep of a file in this shared folder, with other code in it, as its owner could put there. */
async function plantCache(sharedDir: string, module: string): Promise<void> {
  const cache = join(sharedDir, "jiti");
  fs.mkdirSync(cache, { mode: 0o777 });
  const load = (): Promise<{ default(): string }> =>
    createJiti(pathOfEntry("worker/entry"), { fsCache: cache, moduleCache: false }).import(module);
  expect((await load()).default()).toBe("ours");
  for (const name of fs.readdirSync(cache)) {
    const path = join(cache, name);
    fs.writeFileSync(path, fs.readFileSync(path, "utf8").replaceAll("ours", "planted"));
  }
  expect((await load()).default()).toBe("planted");
}

it("runs the text of a TypeScript handler, whatever lies in the shared folder for temporary files", async () => {
  const shared = tempDir();
  const pool = newPool({ env: { TMPDIR: shared, JITI_ESM_EVAL_TEMP_FILE: "true" } });
  const module = join(pool.dir, "handler.ts");
  fs.writeFileSync(join(pool.dir, "part.ts"), "export const answer: string = 'ours';\n");
  fs.writeFileSync(
    module,
    "import { answer } from './part.ts';\nexport default (): string => answer;\n",
  );
  await plantCache(shared, module);
  const before = fs.readdirSync(shared, { recursive: true });
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `agents: [{ name: ts, kind: module, module: ${module}, default: true }]\n`,
  );
  await pool.start();
  pool.drop("a", { prompt: "?" });
  expect((await pool.result("a")).output).toBe("ours");
  expect(fs.readdirSync(shared, { recursive: true })).toEqual(before);
});
