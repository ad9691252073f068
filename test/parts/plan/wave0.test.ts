/** The acceptance criteria of the supervisor's specification, with its own shell lines, against a state tree. */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { endOfFile, tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const LAUNCHER = join(ROOT, "bin", "mailchute.js");
const ID = "TEST-SUPERVISOR-INTEGRATION-001";
const hasJq = spawnSync("jq", ["--version"]).status === 0;

/** A project as the specification lays it out: `state/`, and the tool in `tools/wvo_mcp/`. */
let project = "";
const atEnd = endOfFile();
const sh = (script: string): { code: number | null; stdout: string } => {
  const { status, stdout } = spawnSync("bash", ["-c", script], {
    cwd: project,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  return { code: status, stdout };
};

beforeAll(async () => {
  project = tempDir(atEnd);
  const tool = join(project, "tools", "wvo_mcp");
  fs.mkdirSync(tool, { recursive: true });
  for (const name of ["src", "bin", "dist", "scripts", "templates", "node_modules"])
    fs.symlinkSync(join(ROOT, name), join(tool, name));
  const scripts = { wave0: `node ${join(ROOT, "scripts", "wave0.mjs")} ../../state` };
  fs.writeFileSync(join(tool, "package.json"), JSON.stringify({ name: "wave0", scripts }));
  spawnSync(process.execPath, [LAUNCHER, "init", "--sample", join(project, "state")]);
  const wave0 = spawn("bash", ["-c", "cd tools/wvo_mcp && npm run wave0"], {
    cwd: project,
    stdio: "ignore",
  });
  let code: number | null | undefined;
  wave0.once("exit", (exitCode) => {
    code = exitCode;
  });
  await waitFor(() => code !== undefined, { timeoutMs: 60_000, what: "the end of wave0" });
  expect(code).toBe(0);
});

const jqLines = (script: string): Record<string, unknown>[] =>
  sh(script)
    .stdout.split(/\n(?=\{)/)
    .filter((text) => text.trim() !== "")
    .map((text) => JSON.parse(text) as Record<string, unknown>);

describe.skipIf(!hasJq)("what jq says", () => {
  it("AC1: a task was selected and assigned, and its lease was active", () => {
    for (const script of [
      `cd tools/wvo_mcp && cat ../../state/analytics/supervisor_lifecycle.jsonl | jq 'select(.event=="selected")'`,
      `cd tools/wvo_mcp && cat ../../state/analytics/supervisor_lifecycle.jsonl | jq 'select(.event=="assigned")'`,
      `cd tools/wvo_mcp && cat ../../state/supervisor_leases.jsonl | jq 'select(.status=="active")'`,
    ])
      expect(jqLines(script).map((line) => line["task_id"])).toContain(ID);
  });

  it("AC2: all four lifecycle events are there", () => {
    const events = jqLines(`cat state/analytics/supervisor_lifecycle.jsonl | \\
  jq 'select(.task_id=="${ID}")'`).map((line) => line["event"]);
    for (const event of ["selected", "assigned", "started", "completed"])
      expect(events.filter((each) => each === event)).toHaveLength(1);
    expect(events.filter((each) => each === "phase_finished")).toHaveLength(9);
  });

  it("AC4: leases have all their fields and end released", () => {
    const leases = jqLines(`cat state/supervisor_leases.jsonl | jq '.'`);
    for (const lease of leases) {
      expect(lease).toMatchObject({
        task_id: expect.any(String),
        agent_id: expect.any(String),
        acquired_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      });
      expect(["active", "released", "expired"]).toContain(lease["status"]);
      const lengthMs =
        Date.parse(String(lease["expires_at"])) - Date.parse(String(lease["acquired_at"]));
      expect(lengthMs).toBeGreaterThanOrEqual(4 * 3600 * 1000);
    }
    const own = leases.filter((lease) => lease["task_id"] === ID);
    expect(own.map((lease) => lease["status"])).toEqual(["active", "released"]);
  });
});

describe("wave0", () => {
  it("AC3: the telemetry is complete and in order", () => {
    const { stdout } = sh(`node -e "
const events = require('fs')
  .readFileSync('state/analytics/supervisor_lifecycle.jsonl', 'utf8')
  .trim().split('\\n')
  .map(JSON.parse)
  .filter(e => e.task_id === '${ID}');

const required = ['selected', 'assigned', 'started', 'completed'];
const found = events.map(e => e.event);

console.log('Required:', required);
console.log('Found:', found);
console.log('Valid:', required.every(r => found.includes(r)));
console.log('Ordered:', required.map(r => found.indexOf(r)).every((at, i, all) => i === 0 || at > all[i - 1]));
console.log('Fields:', events.every(e => e.task_id && e.timestamp && e.agent_id));
"`);
    expect(stdout).toContain("Valid: true");
    expect(stdout).toContain("Ordered: true");
    expect(stdout).toContain("Fields: true");
  });

  it("AC5: the test task is done in the roadmap, and the log of the start was kept", () => {
    const { code, stdout } = sh(`grep "${ID}" state/roadmap.yaml | grep "status: done"`);
    expect(code).toBe(0);
    expect(stdout.split("\n").filter((line) => line !== "")).toHaveLength(2);
    expect(sh("tail -n 2 state/analytics/wave0_startup.log").stdout).toMatch(/2 done/);
  });

  it("AC6: the evidence bundle has the lifecycle, a summary and an artefact of each phase", () => {
    const { stdout } = sh(`ls state/evidence/${ID}/`);
    const files = stdout.trim().split("\n");
    expect(files).toEqual(expect.arrayContaining(["lifecycle.json", "summary.md"]));
    for (const phase of "strategize spec plan think implement verify review pr monitor".split(" "))
      expect(files).toContain(`${phase}.md`);
    const lifecycle = JSON.parse(
      fs.readFileSync(join(project, "state", "evidence", ID, "lifecycle.json"), "utf8"),
    ) as Record<string, unknown>;
    for (const event of ["selected", "assigned", "started", "completed"])
      expect(lifecycle[event]).toMatch(/^\d{4}-/);
    const summary = fs.readFileSync(join(project, "state", "evidence", ID, "summary.md"), "utf8");
    expect(summary).toContain("status: done");
  });

  it("AC7: the new architecture is there, the old one is not, and wave0 runs again", () => {
    expect(sh(`grep -r "class Supervisor" tools/wvo_mcp/src/supervisor/`).code).toBe(0);
    expect(sh(`grep -r "class Agent" tools/wvo_mcp/src/agents/`).code).toBe(0);
    expect(sh(`! grep -r "old_autopilot" tools/wvo_mcp/src/`).code).toBe(0);
    expect(sh("cd tools/wvo_mcp && npm run wave0 && cd ../..").code).toBe(0);
    const roadmap = fs.readFileSync(join(project, "state", "roadmap.yaml"), "utf8");
    expect(roadmap.match(/status: done/g)).toHaveLength(2);
  });
});
