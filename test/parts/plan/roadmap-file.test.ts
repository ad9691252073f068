/** The plan's file: replaced whole, while people save it by any means, and whoever dies in between. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { NODE_STATUSES, type NodeStatus } from "../../../src/core/roadmap.ts";
import { withRoadmapLock } from "../../../src/parts/plan/change-plan.ts";
import { applyEdits, type RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import { RoadmapFile } from "../../../src/parts/plan/file/roadmap-file.ts";
import { SETTLED_MS } from "../../../src/parts/plan/file/saved-text.ts";
import { parseRoadmap } from "../../../src/parts/plan/read/document.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const PROGRAM = fileURLToPath(
  new URL("../../fixtures/programs/edits-roadmap.mjs", import.meta.url),
);

function place(text?: string) {
  const dir = tempDir();
  const path = join(dir, "roadmap.yaml");
  if (text !== undefined) fs.writeFileSync(path, text);
  const open = () => new RoadmapFile(path, { durability: "process" });
  return { dir, path, open, file: open(), leftovers: () => listLeftovers(dir) };
}

function listLeftovers(dir: string): string[] {
  return fs.existsSync(join(dir, ".tmp")) ? fs.readdirSync(join(dir, ".tmp")) : [];
}

/** A process that has ended, as owners name it. */
async function deadOwner(): Promise<string> {
  const { ownerPrefix, identityOf } = await import("../../../src/host/identity.ts");
  const child = spawn("sleep", ["60"]);
  const identity = identityOf(child.pid ?? 0);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGKILL");
  await ended;
  return `${ownerPrefix(identity)}-1`;
}

describe("reading", () => {
  test("gives the text as it is, with its mark and its line ends", async () => {
    const { file } = place("\ufeffnodes: []\r\n");
    expect((await file.read()).text).toBe("\ufeffnodes: []\r\n");
  });

  test("of no file gives an empty plan", async () => {
    expect(await place().file.read()).toEqual({ text: "", stamp: undefined });
  });

  test("waits for who is in the middle of saving", async () => {
    for (let tries = 1; ; tries++) {
      const { file, path } = place("");
      const fd = fs.openSync(path, "w");
      onTestFinished(() => fs.closeSync(fd));
      const reading = file.read();
      let pauseMs = 0;
      for (let n = 0; n < 6; n++) {
        const fromMs = performance.now();
        fs.writeSync(fd, `# ${n}\n`);
        await wait(5);
        pauseMs = Math.max(pauseMs, performance.now() - fromMs);
      }
      // On a busy machine we may have been held up so long that it was right to take us for done.
      if (pauseMs > SETTLED_MS / 2 && tries < 50) continue;
      expect((await reading).text).toBe("# 0\n# 1\n# 2\n# 3\n# 4\n# 5\n");
      return;
    }
  });

  test.each([
    ["a directory", (path: string) => fs.mkdirSync(path), /not a regular file/],
    ["no UTF-8", (path: string) => fs.writeFileSync(path, Buffer.from([0x61, 0xff])), /not UTF-8/],
    ["too large", (path: string) => fs.writeFileSync(path, Buffer.alloc(17 * 2 ** 20)), /limit/],
  ])("refuses %s", async (_what, make, message) => {
    const { file, path } = place();
    make(path);
    await expect(file.read()).rejects.toThrow(
      expect.objectContaining({
        code: "ErrInvalidRoadmap",
        message: expect.stringMatching(message),
      }),
    );
  });
});

describe("replacing", () => {
  test("publishes a whole file with the old one's rights, and leaves nothing behind", async () => {
    const { file, path, leftovers } = place("a: 1\n");
    fs.chmodSync(path, 0o640);
    const first = file.replace(await file.read(), "a: 2\n");
    expect(first.kind).toBe("replaced");
    expect(fs.readFileSync(path, "utf8")).toBe("a: 2\n");
    expect(fs.statSync(path).mode & 0o777).toBe(0o640);
    if (first.kind !== "replaced") return;
    expect(await file.read()).toEqual(first.file);
    expect(file.replace(first.file, "a: 3\n").kind).toBe("replaced");
    expect(await file.replaced.settle()).toEqual({ hasChanged: false, conflicts: [] });
    expect(leftovers()).toEqual([]);
  });

  test("makes a file that is not there, unless somebody else does", async () => {
    const { file, path, open } = place();
    const none = await file.read();
    expect(file.replace(none, "a: 1\n").kind).toBe("replaced");
    expect(open().replace(none, "b: 1\n").kind).toBe("changed");
    expect(fs.readFileSync(path, "utf8")).toBe("a: 1\n");
  });

  test("does not bring back a file that was taken away", async () => {
    const { file, path, leftovers } = place("a: 1\n");
    const base = await file.read();
    fs.rmSync(path);
    expect(file.replace(base, "a: 2\n")).toEqual({ kind: "gone" });
    expect(fs.existsSync(path)).toBe(false);
    expect(leftovers()).toEqual([]);
  });

  test.each([
    ["in place", (path: string) => fs.writeFileSync(path, "b: 1\n")],
    [
      "by a rename",
      (path: string) => {
        fs.writeFileSync(`${path}.x`, "a: 1\n");
        fs.renameSync(`${path}.x`, path);
      },
    ],
  ])("is refused when somebody saved %s", async (_how, save) => {
    const { file, path } = place("a: 1\n");
    const base = await file.read();
    save(path);
    const theirs = fs.readFileSync(path, "utf8");
    expect(file.replace(base, "a: 2\n")).toEqual({ kind: "changed" });
    expect(fs.readFileSync(path, "utf8")).toBe(theirs);
  });

  test("changes the file behind a link, and keeps the link", async () => {
    const { dir, path, file } = place();
    fs.mkdirSync(join(dir, "elsewhere"));
    const target = join(dir, "elsewhere", "plan.yaml");
    fs.writeFileSync(target, "a: 1\n");
    fs.symlinkSync("elsewhere/plan.yaml", path);
    await file.update(() => "a: 2\n");
    expect(fs.lstatSync(path).isSymbolicLink()).toBe(true);
    expect(fs.readFileSync(target, "utf8")).toBe("a: 2\n");
  });

  test("gives way to an editor that had the old file open, as soon as it writes", async () => {
    const { file, path, leftovers } = place("a: 1\n");
    const base = await file.read();
    const fd = fs.openSync(path, "r+");
    expect(file.replace(base, "a: 2\n").kind).toBe("replaced");
    fs.writeSync(fd, "a: 3\n");
    fs.closeSync(fd);
    expect(await file.replaced.settle()).toEqual({ hasChanged: true, conflicts: [] });
    expect((await file.read()).text).toBe("a: 3\n");
    expect(leftovers()).toEqual([]);
  });

  test("keeps both texts when another person saved over ours meanwhile", async () => {
    const { file, path, leftovers } = place("a: 1\n");
    const base = await file.read();
    const fd = fs.openSync(path, "r+");
    file.replace(base, "a: 2\n");
    fs.writeSync(fd, "a: 3\n");
    fs.closeSync(fd);
    fs.writeFileSync(path, "a: 4\n");
    const { hasChanged, conflicts } = await file.replaced.settle();
    expect(hasChanged).toBe(true);
    expect(fs.readFileSync(path, "utf8")).toBe("a: 4\n");
    expect(conflicts.map((one) => fs.readFileSync(one, "utf8"))).toEqual(["a: 3\n"]);
    expect(leftovers()).toEqual([]);
  });
});

describe("what a dead process left", () => {
  const HASHES = "7c28d61f6a17a5f0.0123456789abcdef";

  async function leave(names: Record<string, string>) {
    const owner = await deadOwner();
    const at = place();
    fs.mkdirSync(join(at.dir, ".tmp"));
    const { createHash } = await import("node:crypto");
    const hash = (text: string): string =>
      createHash("sha1").update(text).digest("hex").slice(0, 16);
    const hashes = `${hash("old\n")}.${hash("new\n")}`;
    for (const [kind, text] of Object.entries(names)) {
      if (kind === "roadmap") fs.writeFileSync(at.path, text);
      else fs.writeFileSync(join(at.dir, ".tmp", `roadmap.yaml.${owner}.${hashes}.${kind}`), text);
    }
    const settled = at.file.replaced.recoverLeftovers();
    expect(at.leftovers()).toEqual([]);
    const text = fs.existsSync(at.path) ? fs.readFileSync(at.path, "utf8") : undefined;
    return {
      text,
      settled: {
        ...settled,
        conflicts: settled.conflicts.map((one) => fs.readFileSync(one, "utf8")),
      },
    };
  }

  test.each([
    ["before it took the old file away", { roadmap: "old\n", next: "new\n" }, "old\n", false, []],
    ["between the two steps", { old: "old\n", next: "new\n" }, "old\n", true, []],
    [
      "between the two steps, and a person saved then",
      { roadmap: "person\n", old: "old\n", next: "new\n" },
      "person\n",
      false,
      [],
    ],
    ["after both", { roadmap: "new\n", old: "old\n" }, "new\n", false, []],
    [
      "after both, and a slow editor wrote into the old file",
      { roadmap: "new\n", old: "slow\n" },
      "slow\n",
      true,
      [],
    ],
    [
      "after both, then two persons saved",
      { roadmap: "person\n", old: "slow\n" },
      "person\n",
      true,
      ["slow\n"],
    ],
    [
      "while it put a person's text back",
      { old: "slow\n", "old.aside": "new\n" },
      "slow\n",
      true,
      [],
    ],
    [
      "while it put a person's text back over another's",
      { old: "slow\n", "old.aside": "person\n" },
      "person\n",
      true,
      ["slow\n"],
    ],
    ["long before a person took the plan away", { old: "old\n" }, undefined, false, []],
  ])("%s", async (_when, names, text, hasChanged, conflicts) => {
    expect(await leave(names as Record<string, string>)).toEqual({
      text,
      settled: { hasChanged, conflicts },
    });
  });

  test("in the middle is mended by who reads", async () => {
    const at = place();
    fs.mkdirSync(join(at.dir, ".tmp"));
    const stem = join(at.dir, ".tmp", `roadmap.yaml.${await deadOwner()}.${HASHES}`);
    fs.writeFileSync(`${stem}.old`, "old\n");
    fs.writeFileSync(`${stem}.next`, "new\n");
    expect((await at.file.read()).text).toBe("old\n");
  });
});

test("the lock is for one at a time, and is free again after an error", async () => {
  const { path } = place("");
  let inside = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++inside);
    await wait(2);
    inside--;
  };
  await Promise.all(Array.from({ length: 5 }, () => withRoadmapLock(path, work)));
  expect(most).toBe(1);
  await expect(withRoadmapLock(path, () => Promise.reject(new Error("x")))).rejects.toThrow("x");
  await withRoadmapLock(path, work);
});

test("a person saves every few milliseconds while statuses change: no save is lost, no text is ever torn", async () => {
  const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);
  console.log(`SEED=${seed}`);
  const random = seededRandom(seed);
  const CHANGES = Number(process.env["CHANGES"] ?? 120);
  const SAVES = CHANGES / 2;
  const items = Array.from(
    { length: 40 },
    (_, i) => `  - { id: T-${i}, title: "größer ${i}", status: open } # ${i}\n`,
  );
  const { path, file, open, leftovers } = place(`nodes:\n${items.join("")}# end\n`);
  const person = spawn(process.execPath, [PROGRAM, path, String(SAVES), String(seed)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void person.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => person.on("exit", resolve));
  await new Promise((resolve) => person.stdout.once("data", resolve));
  person.stdin.write("go\n");

  const wanted = new Map<string, NodeStatus>();
  // Like the engine: what it wants is known beside the file, because a person may save a text from before.
  const applyAll = (text: string): string => {
    // Saved halfway by a person who was held up: not ours to judge, but to leave alone.
    if (!text.endsWith("# end\n")) return text;
    const doc = parseRoadmap(text);
    expect(doc.problems).toEqual([]);
    const edits = [...wanted].map(([id, status]): RoadmapEdit => ({ kind: "status", id, status }));
    return applyEdits(doc, edits).text;
  };
  const other = open();
  const change = async (by: RoadmapFile): Promise<void> => {
    await waitFor(async () => (await by.update(applyAll)).text.endsWith("# end\n"), {
      what: "a whole text",
      timeoutMs: 30_000,
    });
  };
  for (let n = 0; n < CHANGES; n++) {
    wanted.set(`T-${random.below(40)}`, random.pick(NODE_STATUSES));
    // Two of our own processes, that do not know of each other.
    await change(n % 5 === 0 ? other : file);
  }
  expect(await ended).toBe(0);
  const conflicts: string[] = [];
  for (const one of [file, other]) conflicts.push(...(await one.replaced.settle()).conflicts);
  await change(file);
  conflicts.push(...(await file.replaced.settle()).conflicts);
  const text = fs.readFileSync(path, "utf8");
  // A save into a file that was being replaced, followed by one into the new file, cannot be had in one text: it lies beside.
  const beside = conflicts.map((one) => fs.readFileSync(one, "utf8"));
  const lost = Array.from({ length: SAVES }, (_, n) => `# person ${n}\n`).filter(
    (line) => text.split(line).length !== 2,
  );
  for (const line of lost) expect(beside.join(), line).toContain(line);
  expect(lost.length).toBeLessThan(SAVES / 20);
  const doc = parseRoadmap(text);
  for (const [id, status] of wanted)
    expect(doc.nodes.find((node) => node.id === id)?.status).toBe(status);
  for (const [i] of items.entries()) expect(text).toContain(`"größer ${i}"`);
  expect(leftovers()).toEqual([]);
});
