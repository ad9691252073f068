/** How much a run may write: all of its files count, however many there are and whatever their names are. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type OutputFault, OutputWatch } from "../../src/agents/program-watch.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const OWN_BYTES = 5000;

interface Watched {
  dir: string;
  watch: OutputWatch;
  faults: OutputFault[];
}

/** Watches a folder that has a task and a packet of ours in it. */
function watchFolder(bytesMax: number, fill: (dir: string) => void): Watched {
  const dir = tempDir();
  fs.writeFileSync(join(dir, "task.json"), Buffer.alloc(4000));
  fs.writeFileSync(join(dir, "packet.md"), Buffer.alloc(1000));
  fill(dir);
  const faults: OutputFault[] = [];
  const watch = new OutputWatch({
    dir,
    ownBytes: OWN_BYTES,
    bytesMax,
    freeBytesMin: 0,
    onFault: (fault) => faults.push(fault),
  });
  onTestFinished(() => watch.close());
  return { dir, watch, faults };
}

const put = (dir: string, name: string, bytes: number): void =>
  fs.appendFileSync(join(dir, name), Buffer.alloc(bytes));

it("what is ours comes on top, to the byte", async () => {
  for (const [bytes, fault] of [
    [2000, undefined],
    [2001, "output"],
  ] as const) {
    const { watch } = watchFolder(2000, (dir) => put(dir, "stdout.log", bytes));
    await watch.close();
    expect(watch.fault).toBe(fault);
  }
});

it.each(["task.json", "packet.md", "packet.more.md", "claim"])(
  "what a program writes into %s counts like anything else",
  async (name) => {
    const { faults } = watchFolder(2000, (dir) => put(dir, name, 2001));
    await waitFor(() => faults.length > 0, { what: "its end" });
  },
);

it("of more than 2,000 small files all are counted", async () => {
  const { faults } = watchFolder(2400, (dir) => {
    const one = join(dir, "one");
    fs.writeFileSync(one, "x");
    for (let n = 0; n < 2500; n++) fs.linkSync(one, join(dir, String(n)));
  });
  await waitFor(() => faults.length > 0, { what: "its end" });
});

it("a run with more than 20,000 files has written too much, however small they are", async () => {
  const { faults } = watchFolder(1e7, (dir) => {
    const one = join(dir, "one");
    fs.writeFileSync(one, "");
    for (let n = 0; n < 20_000; n++) fs.linkSync(one, join(dir, String(n)));
  });
  await waitFor(() => faults.length > 0, { what: "its end" });
});

it("a cut takes from the logs, then from the largest, and from what is ours only when nothing else is left", async () => {
  const { dir, watch, faults } = watchFolder(2000, (at) => {
    put(at, "stdout.log", 500);
    put(at, "more", 2500);
  });
  await waitFor(() => faults.length > 0, { what: "its end" });
  await watch.cut([join(dir, "stdout.log")]);
  const sizeOf = (name: string): number => fs.statSync(join(dir, name)).size;
  expect(["stdout.log", "more", "task.json", "packet.md"].map(sizeOf)).toEqual([
    0, 2000, 4000, 1000,
  ]);
});
