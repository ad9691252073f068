/** Records of earlier versions, in which roots of one name shared a folder: each agent goes to the root that its `home` names. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createAgent, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { moveCursor, readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { noteWake, readWakes } from "../../../src/parts/mail/store/wake-log.ts";
import { NOW, namesIn, newOld, OUTSIDE, openTree, textsFor } from "./older-records.ts";

describe.each([
  ["a repository", { project: "app", branch: "feature/x" }],
  ["no repository", OUTSIDE],
])("records of two roots of one name in %s", (_what, scope) => {
  it("go to their roots, with unread mail and the number of the last wake-up; the folder to the last changed", async () => {
    const { store, folder, add, say } = newOld(scope);
    const [first, second] = [await add("1", "ann"), await add("2", "bob", NOW + 60_000)];
    say("ann", "read before");
    moveCursor(folder, "ann", 1, { by: "run", atMs: NOW });
    say("ann", "for ann");
    send(store, { scope, from: "human", via: "cli", to: ["ann"], text: "x".repeat(20_000) }, NOW);
    say("bob", "for bob");
    const { n } = readCursor(folder, "ann");
    const wake = { v: 1, at: 1, task: "wake.1", is_wake: true, hops: 2, is_self: false } as const;
    noteWake(folder, "ann", { ...wake, ids: ["m"], from: ["human"] });

    const one = await openTree(store, first);
    const two = await openTree(store, second);
    expect(two.dir).toBe(folder.dir);
    expect(one.dir).toMatch(/~[0-9a-f]{8}\/[^/]+$/);
    expect([namesIn(one), namesIn(two)]).toEqual([["ann"], ["bob"]]);
    expect(textsFor(one, "ann")).toEqual(["for ann", ""]);
    expect(textsFor(two, "bob")).toEqual(["for bob"]);
    expect(readCursor(one, "ann").n).toBe(n + 1);
    expect(readWakes(one, "ann")).toMatchObject([{ task: "wake.1", hops: 2 }]);
    expect(readAgent(one, "ann")).toMatchObject({ ...scope, home: first, inc: 1 });
    // An agent that takes the name in the other folder gets none of the mail.
    await createAgent(two, { name: "ann", type: "claude", home: second }, NOW);
    expect(textsFor(two, "ann")).toEqual([]);
    expect(await openTree(store, first)).toMatchObject({ dir: one.dir });
    expect(namesIn(one)).toEqual(["ann"]);
  });

  it("stay when a third root comes first, which sees none of them", async () => {
    const { store, folder, add } = newOld(scope);
    const homes = [await add("1", "ann"), await add("2", "bob")];
    const third = newOld(scope);
    const other = await third.add("3", "carl");
    const mine = await openTree(store, other);
    expect(mine.dir).not.toBe(folder.dir);
    expect(namesIn(mine)).toEqual([]);
    expect([...new MessageReader(mine).next()]).toEqual([]);
    const found = [];
    for (const home of homes) found.push(namesIn(await openTree(store, home)));
    expect(found).toEqual([["ann"], ["bob"]]);
  });
});

describe("records without a root that is there", () => {
  it("go to the first repository of the name, which was perhaps moved", async () => {
    const { store, folder, add, dir } = newOld({ project: "app", branch: "main" });
    await add("1", "ann");
    fs.renameSync(join(dir, "1"), join(dir, "moved"));
    const found = await openTree(store, join(dir, "moved", "app", "state"));
    expect(found.dir).toBe(folder.dir);
    expect(namesIn(found)).toEqual(["ann"]);
  });

  it("outside of repositories go to nobody: there all trees have one name", async () => {
    const { store, folder, add, dir } = newOld();
    await add("demo", "ann");
    fs.rmSync(join(dir, "demo"), { recursive: true });
    fs.mkdirSync(join(dir, "mine", "state", "mailbox", "inbox"), { recursive: true });
    const found = await openTree(store, join(dir, "mine", "state"));
    expect(found.dir).not.toBe(folder.dir);
    expect(namesIn(found)).toEqual([]);
    expect(namesIn(folder)).toEqual(["ann"]);
  });

  it("that are only messages go to the first root of the name", async () => {
    const { store, folder, say, dir } = newOld();
    say("ann", "early");
    fs.mkdirSync(join(dir, "mine", "state", "mailbox", "inbox"), { recursive: true });
    const found = await openTree(store, join(dir, "mine", "state"));
    expect(found.dir).toBe(folder.dir);
    expect(textsFor(found, "ann")).toEqual(["early"]);
  });
});
