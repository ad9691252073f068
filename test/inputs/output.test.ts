/** What tasks and programs say comes out as data: text for people is escaped, JSON stays JSON, digits stay digits. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const EVIL =
  "\u001b]0;owned\u0007\u001b[2J\u202egpj.exe\u2066\r\nfake line\u009b31m\u0000\u2028\u2029";
/** No control, no format character, no break of a line. */
const PLAIN = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;

describe("what a refused file holds", () => {
  it("stands in no message about it: it may be a secret, and the file lies beside its record", async () => {
    // Also not when a person looks for a fault: see below.
    const pool = newPool({ env: { MAILCHUTE_DEBUG: "1" } });
    const secret = "hunter2-do-not-tell";
    const control = join(pool.state, "control");
    const put = (dir: string, name: string, text: string): void => {
      fs.writeFileSync(join(pool.dir, name), text);
      fs.renameSync(join(pool.dir, name), join(dir, "inbox", name));
    };
    await pool.start();
    const tasks = {
      text: `{"exec":"curl -H ${secret}"}`,
      parts: `{"exec":["curl",{"header":"${secret}"}]}`,
      env: `{"exec":["true"],"env":{"TOKEN":["${secret}"]}}`,
      time: `{"prompt":"?","not_before":"${secret}"}`,
      broken: `{"exec":["curl","${secret}"],}`,
      word: `{"exec":["curl",${secret}]}`,
    };
    for (const [id, text] of Object.entries(tasks)) put(pool.mailbox, `${id}.json`, text);
    for (const id of Object.keys(tasks)) await pool.error(id);
    const commands = {
      args: `{"command":"pause","args":"${secret}"}`,
      when: `{"command":"pause","expires_at":"${secret}"}`,
      half: `{"command":"pause","x":"${secret}"]`,
    };
    for (const [id, text] of Object.entries(commands)) put(control, `${id}.json`, text);
    for (const id of Object.keys(commands))
      await waitFor(() => fs.existsSync(join(control, "failed", `${id}_error.json`)), {
        what: `the refusal of ${id}`,
      });
    put(pool.mailbox, "batch.ndjson", `${Object.values(tasks).join("\n")}\n`);
    await pool.result("batch");
    const running = await pool.run(["events"]);
    await pool.stop();

    const told = [running.stdout, JSON.stringify([pool.errors(), pool.alerts(), pool.events()])];
    told.push(fs.readFileSync(join(pool.outbox, "batch_results.ndjson"), "utf8"));
    for (const id of Object.keys(commands))
      told.push(fs.readFileSync(join(control, "failed", `${id}_error.json`), "utf8"));
    expect(told.filter((text) => text.includes(secret))).toEqual([]);
    expect(pool.errors().find(({ task_id }) => task_id === "text")?.error).toMatch(
      /^exec: expected .*, found a text of 27 characters$/,
    );
    for (const { file } of pool.errors())
      expect(fs.readFileSync(join(pool.mailbox, file ?? ""), "utf8")).toContain(secret);
  });
});

it("arguments of programs stand in no message about a run that failed", async () => {
  const pool = newPool();
  const secret = "hunter2-do-not-tell";
  const tasks = {
    line: { exec: [`curl -H ${secret}`] },
    lines: { exec: [`curl -H ${secret}`, "x"] },
    arguments: { exec: ["no-such-program", secret] },
    long: { exec: ["true", secret.padEnd(200_000, "x")] },
    judged: { exec: ["true"], verify: ["sh", "-c", "exit 64", secret] },
    killed: { exec: ["true"], verify: ["sh", "-c", "kill -9 $$", secret] },
    unjudged: { exec: ["true"], verify: [`grep ${secret}`] },
  };
  for (const [id, task] of Object.entries(tasks)) pool.drop(id, { ...task, max_attempts: 1 });
  const { stdout, stderr } = await pool.run(["run", "--drain", "--live"]);
  const errors = Object.fromEntries(pool.errors().map(({ task_id: id, error }) => [id, error]));
  expect(Object.keys(errors).sort()).toEqual(Object.keys(tasks).sort());
  expect(errors["killed"]).toBe('verify: "sh": it was ended by SIGKILL');
  const told = [stdout, stderr, JSON.stringify([errors, pool.alerts(), pool.events()])];
  expect(told.filter((text) => text.includes(secret))).toEqual([]);
});

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
    for (const args of [...views, ["doctor"], ["events"], ["ls", "--state-is", "failed"]]) {
      const { stdout, stderr } = await pool.run(args);
      expect(stdout, args.join(" ")).not.toBe("");
      expect(`${stdout}${stderr}`.replaceAll("\n", ""), args.join(" ")).toMatch(PLAIN);
      expect(stdout, args.join(" ")).not.toMatch(/^fake line/m);
    }
    for (const args of [["status"], ["ls"], ["show", "done"], ["show", "broken"]]) {
      const { stdout } = await pool.run([...args, "--json"]);
      expect(stdout.replaceAll("\n", ""), args.join(" ")).toMatch(PLAIN);
      for (const line of stdout.trimEnd().split("\n").slice(0, 1))
        expect(() => JSON.parse(args[0] === "ls" ? line : stdout) as unknown).not.toThrow();
    }
  });

  it("is the same value in JSON, as an escape", async () => {
    const pool = newPool();
    await pool.start();
    // A tag of U+E0041 is two units of UTF-16, and two escapes.
    const value = `${EVIL}\u{e0041}\u007f\u00ad`;
    fs.mkdirSync(join(pool.state, "analytics"), { recursive: true });
    fs.appendFileSync(
      join(pool.state, "analytics", "supervisor_lifecycle.jsonl"),
      `${JSON.stringify({ event: "progress", task_id: "x", details: { value } })}\n`,
    );
    const { stdout } = await pool.run(["events", "--task", "x"]);
    expect(stdout.trimEnd()).toMatch(PLAIN);
    expect(JSON.parse(stdout)).toMatchObject({ details: { value } });
    const kept = await pool.run(["kv", "put", "n", "k", value.replaceAll("\0", ""), "--json"]);
    expect(kept.stdout.trimEnd(), kept.stderr).toMatch(PLAIN);
    expect(JSON.parse(kept.stdout)).toMatchObject({ value: value.replaceAll("\0", "") });
    // A pipe gets the value itself.
    expect((await pool.run(["kv", "get", "n", "k"])).stdout).toBe(
      `${value.replaceAll("\0", "")}\n`,
    );
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
