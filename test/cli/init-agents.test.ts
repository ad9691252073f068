/** init --agents: a config.yaml for the coding agents that are installed, which works as it is. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { type Cli, newCli, put } from "./run-cli.ts";

/** Puts stand-ins for these programs on a PATH of the test's own. @returns the environment */
function install(cli: Cli, ...kinds: string[]): Record<string, string> {
  const bin = join(cli.dir, "bin");
  fs.mkdirSync(bin);
  for (const kind of kinds) {
    const fake = fileURLToPath(new URL(`../fixtures/programs/fake-${kind}.mjs`, import.meta.url));
    const text = `#!/bin/sh\nexec '${process.execPath}' '${fake}' "$@"\n`;
    fs.writeFileSync(join(bin, kind), text, { mode: 0o755 });
  }
  return { HOME: cli.dir, PATH: `${bin}:/usr/bin:/bin`, XDG_STATE_HOME: join(cli.dir, "xdg") };
}

const agentsOf = (stdout: string): { name: string }[] => JSON.parse(stdout).settings.agents.value;

it("configures what is on PATH, and tasks run with it as it is", async () => {
  const cli = newCli();
  const env = install(cli, "claude", "codex");
  const made = await cli(["init", "--agents"], { env });
  expect(made.stdout).toContain(`agent       claude: ${join(cli.dir, "bin", "claude")}`);
  expect(made.stdout).toMatch(
    /\nNext: mailchute doctor\nthen: mailchute run\nand: {2}mailchute enqueue/,
  );
  const config = await cli(["config", "--json"], { env });
  expect(agentsOf(config.stdout)).toMatchObject([
    { name: "claude", default: true, permissions: { mode: "edit" } },
    { name: "codex" },
  ]);
  await cli(["enqueue", "--id", "ask", "--agent", "claude", "--prompt", "say ok"], { env });
  const run = await cli(["run", "--drain"], { env });
  expect(run.stdout).toContain("1 completed, 0 failed");
});

it("is valid with every comment taken away, too", async () => {
  const cli = newCli();
  const env = install(cli, "codex");
  await cli(["init", "--agents"], { env });
  const path = join(cli.dir, "state", "config.yaml");
  const text = fs.readFileSync(path, "utf8");
  expect(text).not.toContain("kind: claude");
  const isProse = /^# (?:yaml-language-server|Settings|Flags|`)/;
  const bare = text
    .split("\n")
    .map((line) => (isProse.test(line) ? line : line.replace(/^# /, "")));
  fs.writeFileSync(path, bare.join("\n"));
  const config = await cli(["config", "--json"], { env });
  expect(config.stderr).toBe("");
  expect(agentsOf(config.stdout).at(-1)).toMatchObject({ name: "codex", account: "work" });
});

it("leaves a config as it is, and says what to add to it", async () => {
  const cli = newCli();
  const env = install(cli, "claude");
  put(cli, "config.yaml", "workers: 2\n");
  const { stderr } = await cli(["init", "--agents"], { env });
  expect(fs.readFileSync(join(cli.dir, "state", "config.yaml"), "utf8")).toBe("workers: 2\n");
  expect(stderr).toContain("add this to its agents:");
  expect(stderr).toContain("kind: claude");
});

it("asks for nothing that a config has already", async () => {
  const cli = newCli();
  const env = install(cli, "claude", "codex");
  put(cli, "config.yaml", "agents: [{name: coder, kind: claude}]\n");
  const first = await cli(["init", "--agents"], { env });
  expect(first.stderr).toContain("kind: codex");
  expect(first.stderr).not.toContain("kind: claude");
  put(cli, "config.yaml", "agents: [{name: coder, kind: claude}, {name: codex, kind: codex}]\n");
  const second = await cli(["init", "--agents"], { env });
  expect([second.code, second.stderr]).toEqual([0, ""]);
});

it("where there is none, names a stand-in that works as an agent", async () => {
  const cli = newCli();
  const { code, stderr } = await cli(["init", "--agents"], { env: install(cli) });
  expect(code).toBe(0);
  expect(stderr).toContain("neither claude nor codex is on PATH: install one");
  const [agent = ""] = /\{name: me, .*\}/.exec(stderr) ?? [];
  fs.writeFileSync(join(cli.dir, "standin.sh"), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  put(cli, "config.yaml", `agents: [${agent.replace("/home/me", cli.dir)}]\n`);
  await cli(["enqueue", "--agent", "me", "--prompt", "say ok"]);
  expect((await cli(["run", "--drain"])).stdout).toContain("1 completed, 0 failed");
});
