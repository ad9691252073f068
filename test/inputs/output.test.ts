/** What tasks and programs say comes out as data: text for people is escaped, JSON stays JSON, digits stay digits. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newPool } from "../support/pool.ts";

const EVIL = "\u001b]0;owned\u0007\u001b[2J\u202egpj.exe\u2066\r\nfake line\u009b31m\u0000";

describe("text that could do something to a terminal", () => {
  it("is escaped in everything that is printed for people, and exact in JSON", async () => {
    const pool = newPool();
    await pool.start();
    const title = EVIL;
    const result = { output: EVIL, verdict: "pass", verdict_reason: EVIL };
    pool.drop("done", {
      title,
      exec: ["sh", "-c", 'printf %s "$0" > "$MAILCHUTE_RESULT_FILE"', JSON.stringify(result)],
    });
    const noNul = EVIL.replace("\0", "");
    pool.drop("broken", { title, exec: ["sh", "-c", 'printf %s "$0" >&2; exit 64', noNul] });
    pool.drop("waiting", { title, exec: ["true"], metadata: { dependencies: ["never"] } });
    expect((await pool.result("done")).output).toBe(EVIL);
    expect((await pool.error("broken")).error).toContain(noNul.trim());

    const views = [["status"], ["ls"], ["show", "done"], ["show", "broken"], ["show", "waiting"]];
    // `events` is left out: its lines are JSON for people too.
    for (const args of [...views, ["doctor"], ["ls", "--state-is", "failed"]]) {
      const { stdout, stderr } = await pool.run(args);
      expect(stdout, args.join(" ")).not.toBe("");
      // Line ends and nothing else below or beyond: no control, no format character.
      expect(`${stdout}${stderr}`.replaceAll("\n", ""), args.join(" ")).toMatch(
        /^[^\p{Cc}\p{Cf}]*$/u,
      );
      expect(stdout, args.join(" ")).not.toMatch(/^fake line/m);
    }
    for (const args of [["status"], ["ls"], ["show", "done"], ["show", "broken"]]) {
      const { stdout } = await pool.run([...args, "--json"]);
      for (const line of stdout.trimEnd().split("\n").slice(0, 1))
        expect(() => JSON.parse(args[0] === "ls" ? line : stdout) as unknown).not.toThrow();
    }
  });

  it("a payload reaches the record and the program digit for digit", async () => {
    const pool = newPool();
    await pool.start();
    const text =
      '{"exec":["sh","-c","cat \\"$MAILCHUTE_TASK_FILE\\""],"payload":{"n":1.10,"big":123456789012345678901234567890,"e":1e400}}';
    fs.writeFileSync(join(pool.inbox, "digits.json"), text);
    expect((await pool.result("digits")).output).toBe(text);
    const record = fs.readFileSync(join(pool.outbox, "digits_result.json"), "utf8");
    expect(record).toContain(`"task":${text}`);
  });
});
