/** kv: values of many writers at once, refused zombies, broken files, a history that knows all of it. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Envelope, newEnvelope } from "../../src/core/envelope.ts";
import { ErrInvalidKv, ErrLeaseLost } from "../../src/core/errors.ts";
import type { KvHistoryRecord, KvSource } from "../../src/core/kv.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { KvStore } from "../../src/kv/store.ts";
import { writeRunOutputs } from "../../src/parts/plan/run/run-outputs.ts";
import { startProgram } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** Processes that read the sources as they are take their time on a busy machine. */
const START_MS = 60_000;
const PERSON: KvSource = { run: null, lease: null, attempt: 0, by: "cli" };

function run(submission: string, attempt: number, token = "owner-1"): KvSource {
  const lease = `${submission}.${attempt}.${token}`;
  return { run: `a@${lease}`, lease, attempt, by: "coder" };
}

function newStore(): KvStore {
  return new KvStore(join(tempDir(), "kv"), systemClock, "process");
}

async function historyOf(kv: KvStore, node?: string): Promise<KvHistoryRecord[]> {
  const records: KvHistoryRecord[] = [];
  for await (const record of kv.history(node)) records.push(record);
  return records;
}

describe("kv", () => {
  it("keeps any JSON, the latest in the node's file and every put in the history", async () => {
    const kv = newStore();
    expect(kv.get("a", "ctx.x")).toBeUndefined();
    for (const value of ["text", 7, null, [1, { deep: "é\n" }], { b: true }, ""]) {
      expect(await kv.put("a", "ctx.x", value, PERSON)).toBe(true);
      expect(kv.get("a", "ctx.x")).toMatchObject({ value, by: "cli", run: null });
    }
    await kv.put("__run__", "ctx.foo", "bar", PERSON);
    expect(await kv.remove("a", "ctx.x", PERSON)).toBe(true);
    expect(await kv.remove("a", "ctx.x", PERSON)).toBe(false);
    expect([...kv.list("a")]).toEqual([]);
    const file = JSON.parse(fs.readFileSync(join(kv.dir, "__run__.json"), "utf8"));
    expect(file["ctx.foo"]).toMatchObject({ value: "bar", lease: null, attempt: 0 });
    expect(new Date(file["ctx.foo"].at).getTime()).toBe(file["ctx.foo"].t);
    expect((await historyOf(kv, "a")).map(({ op }) => op)).toEqual([
      ...Array(6).fill("put"),
      "remove",
    ]);
    expect((await historyOf(kv)).length).toBe(8);
  });

  it("writes no second line for the same value of the same run", async () => {
    const kv = newStore();
    expect(await kv.put("a", "k", { n: 1 }, run("s1", 1))).toBe(true);
    expect(await kv.put("a", "k", { n: 1 }, run("s1", 1))).toBe(false);
    expect(await kv.put("a", "k", { n: 1 }, run("s1", 2))).toBe(true);
    expect((await historyOf(kv)).map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  it("takes no bad node, no bad key and no value that is too large", async () => {
    const kv = newStore();
    for (const node of ["../a", "", "a/b", "__other__", "con"])
      await expect(async () => kv.put(node, "k", 1, PERSON)).rejects.toThrow(ErrInvalidKv);
    for (const key of ["", "a b", "__proto__", "constructor", "a\nb", "k".repeat(129)])
      await expect(async () => kv.put("a", key, 1, PERSON)).rejects.toThrow(ErrInvalidKv);
    await expect(async () => kv.put("a", "k", "x".repeat(1024 * 1024), PERSON)).rejects.toThrow(
      /more than the limit of 1048576/,
    );
    await expect(async () => kv.put("a", "k", undefined, PERSON)).rejects.toThrow(ErrInvalidKv);
    expect([...kv.list("a")]).toEqual([]);
  });

  it("shortens a large value in the history only, with a mark", async () => {
    const kv = newStore();
    const value = `"é`.repeat(200_000);
    await kv.put("a", "big", value, PERSON);
    expect(kv.get("a", "big")?.value).toBe(value);
    const lines = fs.readFileSync(join(kv.dir, "history.jsonl"), "utf8").split("\n");
    expect(lines.every((line) => Buffer.byteLength(line) < 16 * 1024)).toBe(true);
    const [record] = await historyOf(kv);
    expect(record).toMatchObject({
      cut: true,
      bytes: Buffer.byteLength(JSON.stringify(value)),
    });
    expect(String(record?.value).endsWith("…")).toBe(true);
    expect(String(record?.value)).not.toContain("\ufffd");
  });

  it("sets a broken file aside and goes on with what the history knows", async () => {
    for (const rubbish of ["{ half", "[]", '{"k": 1}', "", "\u0000\u0000"]) {
      const kv = newStore();
      await kv.put("a", "k", "v1", PERSON);
      await kv.put("a", "gone", 1, PERSON);
      await kv.remove("a", "gone", PERSON);
      await kv.put("a", "k", "v2", PERSON);
      await kv.put("b", "k", "other", PERSON);
      const path = join(kv.dir, "a.json");
      fs.writeFileSync(path, rubbish);
      fs.writeFileSync(`${path}.bad-1`, "an older one");
      expect(kv.get("a", "k")?.value).toBe("v2");
      expect(fs.readFileSync(path, "utf8")).toBe(rubbish);
      await kv.put("a", "new", true, PERSON);
      expect(fs.readFileSync(`${path}.bad-2`, "utf8")).toBe(rubbish);
      expect(fs.readFileSync(`${path}.bad-1`, "utf8")).toBe("an older one");
      expect([...kv.list("a")].map(([key, { value }]) => [key, value])).toEqual([
        ["k", "v2"],
        ["new", true],
      ]);
    }
  });

  it("refuses a run that a newer attempt or a newer submission has overtaken", async () => {
    const kv = newStore();
    await kv.put("a", "k", "one", run("s1", 1));
    await kv.put("a", "other", "two", run("s1", 2));
    // Whatever key it is: the newer run may have removed it on purpose.
    for (const key of ["k", "other", "third"])
      await expect(kv.put("a", key, "zombie", run("s1", 1))).rejects.toThrow(ErrLeaseLost);
    await kv.put("a", "k", "anew", run("zz", 1));
    await expect(kv.put("a", "k", "zombie", run("s1", 3))).rejects.toThrow(ErrLeaseLost);
    await kv.put("a", "k", "later", run("zz", 2));
    expect(await kv.put("a", "k", "by hand", PERSON)).toBe(true);
    expect(await kv.put("a", "k", "and on", run("zz", 2))).toBe(true);
    expect(kv.get("a", "k")?.value).toBe("and on");
    // The run's scope is shared by nodes whose submissions do not follow each other.
    await kv.put("__run__", "x", 1, run("n1", 1));
    await kv.put("__run__", "x", 2, run("n2", 1));
    expect(await kv.put("__run__", "x", 3, run("n1", 1))).toBe(true);
  });

  const putAtOnce = async (dir: string, count: number): Promise<void> => {
    const programs = ["w1", "w2", "w3"].map((writer) =>
      startProgram("put-values.mjs", [dir, writer, String(count)]),
    );
    for (const program of programs)
      await waitFor(
        () => {
          if (program.child.exitCode !== null) throw new Error(program.stderr());
          return program.stdout().includes("ready");
        },
        { what: "a writer", timeoutMs: START_MS },
      );
    for (const program of programs) program.child.stdin?.end("go\n");
    for (const program of programs)
      expect((await program.ended).exitCode, program.stderr()).toBe(0);
    const kv = new KvStore(dir, systemClock, "process");
    const expected = ["w1", "w2", "w3"].flatMap((writer) =>
      Array.from({ length: count }, (_, n) => `${writer}.${n}`),
    );
    expect([...kv.list("shared").keys()].sort()).toEqual(expected.sort());
    const counted = [...kv.list("counted")].map(([key, { value }]) => `${key} ${String(value)}`);
    expect(counted.sort()).toEqual(["w1", "w2", "w3"].map((writer) => `${writer} ${count - 1}`));
    expect((await historyOf(kv)).length).toBe(count * 6);
    expect(fs.readdirSync(join(dir, ".tmp"))).toEqual([]);
  };

  it(
    "loses nothing when several processes put at once and a dead one holds the lock",
    async () => {
      const dir = join(tempDir(), "kv");
      fs.mkdirSync(join(dir, ".tmp", "shared.lock"), { recursive: true });
      await putAtOnce(dir, 40);
    },
    2 * START_MS,
  );

  it("takes up what a writer without the lock put between its reading and its writing", async () => {
    const dir = join(tempDir(), "kv");
    let intrude: (() => void) | undefined;
    // The clock is asked after the file was read, and before it is replaced.
    const clock = {
      ...systemClock,
      wallMs: () => {
        intrude?.();
        return systemClock.wallMs();
      },
    };
    const kv = new KvStore(dir, clock, "process");
    await kv.put("a", "before", 1, PERSON);
    intrude = () => {
      intrude = undefined;
      const path = join(dir, "a.json");
      const at = new Date().toISOString();
      const entry = { value: "theirs", at, t: Date.parse(at), ...PERSON };
      const document = { ...JSON.parse(fs.readFileSync(path, "utf8")), theirs: entry };
      fs.writeFileSync(`${path}.new`, JSON.stringify(document));
      fs.renameSync(`${path}.new`, path);
    };
    await kv.put("a", "ours", 2, PERSON);
    expect([...kv.list("a")].map(([key, { value }]) => [key, value])).toEqual([
      ["before", 1],
      ["ours", 2],
      ["theirs", "theirs"],
    ]);
    expect((await historyOf(kv)).map(({ key }) => key)).toEqual(["before", "ours"]);
  });
});

describe("the outputs of a run", () => {
  const failure = (attempt: number) => ({
    task_id: "a",
    status: "failed" as const,
    lease: `s1.${attempt}.owner-${attempt}`,
    attempts: attempt,
    agent_id: "coder",
  });
  const write = (kv: KvStore, attempt: number, envelope: Envelope): Promise<boolean> => {
    const { status } = envelope;
    const record = {
      ...failure(attempt),
      ...(status === "success" && { status: "completed" as const }),
    };
    return writeRunOutputs(kv, record, envelope, "exit code 1", "/state/runs");
  };
  const values = (kv: KvStore): Record<string, unknown> =>
    Object.fromEntries([...kv.list("a")].map(([key, { value }]) => [key, value]));

  it("are there after every run; err.summary until a success", async () => {
    const kv = newStore();
    expect(await write(kv, 1, newEnvelope("fail", "boom"))).toBe(true);
    expect(values(kv)).toEqual({
      "out.summary": "boom",
      "out.last_stdout_path": "/state/runs/a@s1.1.1/stdout.log",
      "out.last_result_path": "/state/runs/a@s1.1.1/result.json",
      "err.summary": "boom",
    });
    await write(kv, 2, newEnvelope("fail", ""));
    expect(values(kv)).toMatchObject({ "out.summary": "", "err.summary": "exit code 1" });
    const done = { ...newEnvelope("success", ""), outputs: { "ctx.port": 8080 } };
    expect(await write(kv, 3, done)).toBe(true);
    expect(values(kv)).not.toHaveProperty("err.summary");
    expect(values(kv)).toMatchObject({ "ctx.port": 8080 });
    expect(await write(kv, 3, done)).toBe(false);
    await expect(write(kv, 1, newEnvelope("fail", "boom"))).rejects.toThrow(ErrLeaseLost);
    expect(values(kv)).not.toHaveProperty("err.summary");
  });
});
