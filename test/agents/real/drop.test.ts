/** The real codex in its sandbox: it may write to the drop folder of its run, and to nothing else of the state tree. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { newAgentBench } from "./agent-bench.ts";

const SLOW_MS = 120_000;
const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
/** Not in `/tmp`, to which the sandbox lets it write. */
const OUTSIDE_TMP = "/var/tmp";

const SCRIPT = [
  `${process.execPath} ${BIN} enqueue --id sub --wait -- true`,
  `printf '%s' '{"exec":["true"]}' > "$MAILCHUTE_DROP/moved.part"`,
  `mv "$MAILCHUTE_DROP/moved.part" "$MAILCHUTE_DROP/moved.json"`,
  `echo '{"exec":["true"]}' > "$MAILCHUTE_STATE/mailbox/inbox/forged.json"`,
  `echo x > "$MAILCHUTE_DROP/../other"`,
].join("; ");

const REFUSED = /read-only file system/i;

const benchOf = (mode: string, permissions: string) =>
  newAgentBench("codex", [{ run: SCRIPT }, { say: "Done." }], {
    agent: { mode, permissions: { mode: permissions } },
    parent: OUTSIDE_TMP,
  });

describe.each(["exec", "app-server"])("codex in mode %s", (mode) => {
  it("leaves tasks in the drop folder from its sandbox, and reaches nothing else of the tree", async () => {
    const { api, pool, drop } = await benchOf(mode, "edit");
    await pool.start();
    drop("main");
    expect(await pool.result("main", SLOW_MS)).toMatchObject({ output: "Done." });
    expect(api.requests.at(-1)?.messages.join()).toMatch(REFUSED);
    for (const id of ["sub", "moved"])
      expect(await pool.result(id)).toMatchObject({ task: { sender: "main" } });
    expect(pool.results()).toHaveLength(3);
    expect(pool.errors()).toEqual([]);
    expect(fs.readdirSync(join(pool.state, "drops")).filter((name) => name !== ".lock")).toEqual(
      [],
    );
  });

  it("with permissions to read leaves nothing", async () => {
    const { api, pool, drop } = await benchOf(mode, "read");
    await pool.start();
    drop("main");
    expect(await pool.result("main", SLOW_MS)).toMatchObject({ output: "Done." });
    expect(api.requests.at(-1)?.messages.join()).toMatch(REFUSED);
    expect([pool.results().length, pool.errors().length]).toEqual([1, 0]);
  });
});
