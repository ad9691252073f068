/** What a task takes along of the environment of the one who calls; and a secret that reaches its program, and no file. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { newCli } from "./run-cli.ts";

it("enqueue takes variables from a file and from its caller, and names what it left out", async () => {
  const cli = newCli();
  fs.writeFileSync(join(cli.dir, "vars"), '# a comment\n\nexport A=1\nB="two words"\nC=x=y\nD=\n');
  const args = ["enqueue", "--id", "t", "--vars", "vars", "--inherit-env", "--env", "A=9"];
  const env = {
    MINE: "m",
    B: "lost",
    GITHUB_TOKEN: "t",
    MY_KEY: "k",
    SSH_AUTH_SOCK: "/s",
    KEYMAP: "de",
  };
  const { code, stderr } = await cli([...args, "--env-from", "S=env:S", "--", "true"], { env });
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("left out, because they may be secrets: GITHUB_TOKEN, MY_KEY;");
  const task = JSON.parse(fs.readFileSync(join(cli.inbox, "t.json"), "utf8")) as {
    env: Record<string, string>;
    env_from: object;
  };
  // The tests themselves run with folders of their own.
  const { PATH: _, XDG_STATE_HOME: _state, XDG_DATA_HOME: _data, ...own } = task.env;
  expect(own).toEqual({ A: "9", B: "two words", C: "x=y", D: "", MINE: "m", KEYMAP: "de" });
  expect(task.env_from).toEqual({ S: "env:S" });
  fs.writeFileSync(join(cli.dir, "vars"), "A=1\nno equals sign\n");
  for (const [bad, why] of [
    [["--vars", "vars"], "line 2 is not NAME=value"],
    [["--vars", "none"], "ENOENT"],
    [["--env-from", "A"], "--env-from wants"],
    [["--env-from", "A=/etc/x"], "env_from.A"],
    [["--each", "vars", "--inherit-env"], "exclude each other"],
  ] as const) {
    const refused = await cli(["enqueue", ...bad, "--", "true"]);
    expect(refused.code, why).toBe(2);
    expect(refused.stderr).toContain(why);
  }
});

it("a secret reaches its program at each start, and is in no file of the tree", async () => {
  const pool = newPool();
  const secret = join(pool.dir, "secret");
  fs.writeFileSync(secret, "first-s3cret\n", { mode: 0o600 });
  const seen = join(pool.dir, "seen");
  const script = `echo "$TOKEN" >> ${seen}; echo "bad $TOKEN" >&2; printf 'second-s3%s' cret > ${secret}; exit 3`;
  pool.drop("t", {
    exec: ["sh", "-c", script],
    env_from: { TOKEN: `file:${secret}` },
    max_attempts: 2,
  });
  pool.drop("none", { exec: ["true"], env_from: { A: "env:NOT_THERE" }, max_attempts: 1 });
  await pool.start();
  const { error } = await pool.error("t");
  expect(fs.readFileSync(seen, "utf8")).toBe("first-s3cret\nsecond-s3cret\n");
  expect(error).toContain("bad ***");
  expect(await pool.error("none")).toMatchObject({ kind: "environment", code: "ErrEnvironment" });
  await pool.stop();
  const found = execFileSync("sh", ["-c", `grep -rl s3cret ${pool.state} || true`]).toString();
  // What a program prints is its own affair.
  const others = found.split("\n").filter((path) => path !== "" && !path.endsWith("/stderr.log"));
  expect(others).toEqual([]);
});
