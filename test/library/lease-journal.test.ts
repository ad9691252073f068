/** What a program does with the library in a state tree stands in its journals, as what a worker does. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Mailbox, openTrays, type StateTree, stateTree } from "../../src/index.ts";
import { tempDir } from "../support/temp-dir.ts";

function readLines(path: string): Record<string, string>[] {
  const lines = fs.readFileSync(path, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, string>);
}

interface Place {
  tree: StateTree;
  mailbox: Mailbox;
  lines: (which: "events" | "leases") => string[];
}

function newTree(): Place {
  const tree = stateTree(join(tempDir(), "state"));
  openTrays(tree.control);
  const mailbox = Mailbox.open(tree.mailbox, { durability: "process" });
  const told = { events: "event", leases: "status" };
  const lines = (which: "events" | "leases"): string[] =>
    readLines(tree[which]).map((line) =>
      [line[told[which]], line["task_id"], line["attempt"]].join(" "),
    );
  return { tree, mailbox, lines };
}

it("a claim, its retry, its release and its end are told, with who holds the lease", async () => {
  const { tree, mailbox, lines } = newTree();
  await mailbox.enqueue({ id: "a", title: "a" });
  const first = mailbox.claim();
  expect(lines("leases")).toEqual(["active a 1"]);
  await mailbox.fail(first, "not yet");
  mailbox.release(mailbox.claim());
  await mailbox.complete(mailbox.claim());
  const runs = ["a 1", "a 2", "a 2"];
  const ends = ["retry_scheduled", "released", "completed"];
  const events = runs.flatMap((run, i) =>
    ["assigned", "started", ends[i]].map((event) => `${event} ${run}`),
  );
  expect(lines("events")).toEqual(["selected a 1", ...events]);
  const [selected, assigned, started] = readLines(tree.events);
  expect(selected).toMatchObject({ lease: assigned?.["lease"], owner: "" });
  expect(started).toMatchObject({ lease: assigned?.["lease"], owner: assigned?.["owner"] });
  expect(`${assigned?.["lease"]}.${assigned?.["owner"]}`).toBe(first.lease);
  expect(lines("leases")).toEqual(runs.flatMap((run) => [`active ${run}`, `released ${run}`]));
});

it("a dead letter is told as failed, then completed, and a lost lease as fenced", async () => {
  const { mailbox, lines } = newTree();
  await mailbox.enqueue({ id: "a", title: "a" });
  await mailbox.fail(mailbox.claim(), "no", { canRetry: false });
  expect(lines("events").slice(-2)).toEqual(["failed a 1", "completed a 1"]);
  await mailbox.enqueue({ id: "b", title: "b" });
  const lost = mailbox.claim();
  fs.rmSync(lost.path);
  await expect(mailbox.complete(lost)).rejects.toMatchObject({ code: "ErrLeaseLost" });
  expect(lines("events").at(-1)).toBe("fenced b 1");
});

it("a mailbox outside a state tree has no journal", async () => {
  const dir = join(tempDir(), "mailbox");
  const mailbox = Mailbox.open(dir, { durability: "process" });
  await mailbox.enqueue({ id: "a", title: "a" });
  await mailbox.complete(mailbox.claim());
  expect(fs.readdirSync(join(dir, ".."))).toEqual(["mailbox"]);
});
