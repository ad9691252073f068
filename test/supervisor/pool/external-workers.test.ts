/** Who else works in this tree, as the documents of `workers/` tell. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import type { WorkerDocument } from "../../../src/core/documents.ts";
import { thisProcess } from "../../../src/host/identity.ts";
import { ExternalWorkers } from "../../../src/supervisor/pool/external-workers.ts";
import { tempDir } from "../../support/temp-dir.ts";

const OURS = new Set<string>();

it("those that are there stay known while workers/ cannot be listed", () => {
  const workersDir = tempDir();
  const { place, pid, startTicks } = thisProcess();
  const document: WorkerDocument = {
    id: "w-a-b",
    place,
    pid,
    start_ticks: startTicks,
    supervisor_pid: 1,
    slots: 3,
    started_at: new Date(0).toISOString(),
    settings: "digest",
    tree: null,
    host: "here",
  };
  const others = new ExternalWorkers({
    workersDir,
    stateDir: workersDir,
    silenceMaxMs: 60_000,
    digest: "digest",
    onUnlike: () => {},
  });
  fs.writeFileSync(join(workersDir, "w-a-b.json"), JSON.stringify(document));
  expect(others.survey(OURS)).toBe(true);
  expect(others.adopted.map(({ id }) => id)).toEqual(["w-a-b"]);

  const look = vi.spyOn(fs, "readdirSync").mockImplementation(() => {
    throw Object.assign(new Error("made up"), { code: "EMFILE" });
  });
  onTestFinished(() => look.mockRestore());
  expect(others.survey(OURS)).toBe(false);
  expect(others.slots).toBe(3);
  look.mockRestore();

  fs.rmSync(join(workersDir, "w-a-b.json"));
  expect(others.survey(OURS)).toBe(true);
  expect(others.count).toBe(0);
});
