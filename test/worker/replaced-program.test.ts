/** An upgrade that replaces the files of mailchute below running workers. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** An installed copy, whose files can be taken away. */
function installedCopy(): string {
  const dir = join(tempDir(), "installed");
  for (const name of ["bin", "dist", "templates", "package.json"])
    fs.cpSync(join(ROOT, name), join(dir, name), { recursive: true });
  fs.symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  return dir;
}

it("a node waits when what runs it is gone, and uses up no attempt", async () => {
  const program = installedCopy();
  const config = `${QUICK_CONFIG}
agents:
  - {name: sh, kind: exec, program: sh, args: [-c, "echo '<result>{\\"status\\": \\"success\\"}</result>'"], default: true, phases: [IMPLEMENT]}
`;
  const pool = newPool({ config, launcher: join(program, "bin/mailchute.js") });
  await pool.start(["--workers", "1"]);
  pool.drop("plain", { exec: ["true"] });
  await pool.result("plain");

  const worker = join(program, "dist/worker");
  const [late = ""] = fs.readdirSync(worker).filter((name) => name.startsWith("run-node-"));
  fs.renameSync(join(worker, late), join(program, late));
  const plan = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(plan, "version: 1\nnodes:\n  - {id: n, prompt: go}\n");
  const failed = await waitFor(
    () => pool.events().find((event) => event["task_id"] === "n" && event["error"] !== undefined),
    { what: "a word that it cannot run" },
  );
  expect(failed["error"]).toContain("mailchute was installed again while it ran: restart it");

  fs.renameSync(join(program, late), join(worker, late));
  expect(await pool.result("n")).toMatchObject({ attempts: 1 });
});

it.each(["drop-", "submit-"])(
  "a task of an agent waits while %s… is gone, and leaves its slot",
  async (file) => {
    const program = installedCopy();
    const config = `${QUICK_CONFIG}
agents:
  - {name: sh, kind: exec, program: sh, args: [-c, "echo hi"], default: true}
`;
    const pool = newPool({ config, launcher: join(program, "bin/mailchute.js") });
    await pool.start(["--workers", "1"]);
    pool.drop("plain", { exec: ["true"] });
    await pool.result("plain");

    const worker = join(program, "dist/worker");
    const [late = expect.fail(file)] = fs
      .readdirSync(worker)
      .filter((name) => name.startsWith(file) && name.endsWith(".cjs"));
    fs.renameSync(join(worker, late), join(program, late));
    pool.drop("a", { prompt: "go" });
    const failed = await waitFor(
      () => pool.events().find((event) => event["task_id"] === "a" && event["error"] !== undefined),
      { what: "a word that it cannot run" },
    );
    expect(failed["error"]).toContain("mailchute was installed again while it ran: restart it");
    pool.drop("b", { exec: ["true"] });
    await pool.result("b");

    fs.renameSync(join(program, late), join(worker, late));
    expect(await pool.result("a")).toMatchObject({ attempts: 1 });
  },
);
