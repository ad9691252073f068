/** `say ID` to a task that has ended: it advises only what then works. */
import { expect, test } from "vitest";
import { newPool } from "../support/pool.ts";

test("of a program is refused without advice that would be refused, too", async () => {
  const pool = newPool();
  pool.drop("a", { exec: ["true"] });
  await (await pool.start(["--drain"])).ended;
  await pool.result("a");
  const said = await pool.run(["say", "a", "and now?"]);
  expect(said.code).toBe(4);
  expect(said.stderr).toMatch(/"a" has ended.*no session to go on in/s);
  expect(said.stderr).not.toContain("continue");
  // What it does not advise would be refused.
  expect(await pool.run(["continue", "a", "and now?"])).toMatchObject({ code: 4 });
});
