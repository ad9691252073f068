/** Scopes of one name: each root has its own agents and mail, whatever is copied, moved or made anew. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createAgent, listAgents, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { openAt } from "../../../src/parts/mail/roots/open-own.ts";
import { findScope } from "../../../src/parts/mail/scope/find-scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { readClaim } from "../../../src/parts/mail/store/claims.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder, type MailStore } from "../../../src/parts/mail/store/mail-folder.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { WALKS_SEED } from "../../support/walks.ts";
import { type Open, play } from "./many-roots.ts";

/** `many-roots.test.ts` plays more of them. */
const SAMPLE = 2;
const NOW = 1_795_500_000_000;
describe("roots of colliding names and branches, with random moves and copies", () => {
  it("never see an agent or a message of another root, and never lose their own", async () => {
    for (let n = 0; n < SAMPLE; n++) expect(await play(WALKS_SEED + n, openAt)).toBe("");
  });

  const byName: Open = async (store, dir) => {
    const folder = new MailFolder(store, await findScope(dir));
    const { project } = folder.scope;
    return { store: { ...store, own: { project, key: project, dir: "" } }, folder };
  };
  /** The id is not bound to the directory: a copy has that of the original. */
  const unbound: Open = async (store, dir, stateDir) => {
    for (const file of [
      join(dir, ".git/mailchute-id"),
      join(dir, "mailchute-id"),
      join(stateDir, "mailchute-id"),
    ])
      if (fs.existsSync(file)) {
        const { id } = JSON.parse(fs.readFileSync(file, "utf8"));
        fs.writeFileSync(file, JSON.stringify({ v: 1, id }));
      }
    return await openAt(store, dir, stateDir);
  };
  /** The id is that of the place: what is moved loses its mail, and who comes there gets it. */
  const byPath: Open = async (store, dir, stateDir) => {
    for (const file of [join(dir, ".git"), dir, stateDir])
      if (fs.existsSync(join(file, "HEAD")) || file === stateDir)
        fs.mkdirSync(join(file, "mailchute-id"), { recursive: true });
    return await openAt(store, dir, stateDir);
  };

  it.each([
    ["scopes are known by their names", byName, /sees an agent|sees a message|already|there is/],
    ["a copy keeps the id", unbound, /sees an agent|sees a message|there is/],
    [
      "a root is known by its path",
      byPath,
      /has lost its agent|sees an agent|sees a message|there is/,
    ],
  ])("is shown to be wrong when %s", async (_what, open, fault) => {
    for (let seed = 1; ; seed++) {
      const found = await play(seed, open);
      if (found === "" && seed < 20) continue;
      expect(found).toMatch(fault);
      return;
    }
  });
});

/** A repository by its files alone, with a state tree in it. */
function newRoot(dir: string, kind: "repository" | "outside" = "repository"): string {
  fs.mkdirSync(join(dir, "state", "mailbox", "inbox"), { recursive: true });
  if (kind === "outside") return dir;
  for (const name of ["objects", "refs"])
    fs.mkdirSync(join(dir, ".git", name), { recursive: true });
  fs.writeFileSync(join(dir, ".git", "HEAD"), "ref: refs/heads/main\n");
  return dir;
}

const openIn = async (store: MailStore, dir: string) => {
  const own = await openAt(store, dir, join(dir, "state"));
  own.folder.make();
  return own;
};
const keysIn = ({ dataDir }: MailStore): string[] => fs.readdirSync(join(dataDir, "scopes")).sort();
const textsFor = (folder: MailFolder, name: string): string[] =>
  unreadOf(folder, name).messages.map(({ content }) => content);

describe("a second root of one name", () => {
  const newPlace = () => {
    const dir = tempDir();
    const store: MailStore = {
      dataDir: join(dir, "data"),
      isDurable: false,
      accepts: ["app", "shop"],
    };
    return { dir, store };
  };
  const say = (store: MailStore, folder: MailFolder, to: string, text: string) =>
    send(store, { scope: folder.scope, from: "bob", via: "run", to: [to], text }, NOW);

  it("has the folder <project>~<8 hex> and keeps its name and its addresses", async () => {
    const { dir, store } = newPlace();
    const one = await openIn(store, newRoot(join(dir, "1/app")));
    const two = await openIn(store, newRoot(join(dir, "2/app")));
    expect([one, two].map(({ folder }) => folder.scope)).toEqual([
      { project: "app", branch: "main" },
      { project: "app", branch: "main" },
    ]);
    expect(keysIn(store)).toEqual(["app", expect.stringMatching(/^app~[0-9a-f]{8}$/)]);
    for (const [n, { store: own, folder }] of [one, two].entries()) {
      await createAgent(folder, { name: "ann", type: "claude" }, NOW);
      for (const to of ["ann", "main:ann", "app:main:ann"]) say(own, folder, to, `${n}`);
    }
    expect(textsFor(one.folder, "ann")).toEqual(["0", "0", "0"]);
    expect(textsFor(two.folder, "ann")).toEqual(["1", "1", "1"]);
  });

  it("is named with both paths when another project writes to the name, and reached by its whole name", async () => {
    const { dir, store } = newPlace();
    const paths = [newRoot(join(dir, "1/app")), newRoot(join(dir, "2/app"))];
    const [one, two] = [await openIn(store, paths[0] ?? ""), await openIn(store, paths[1] ?? "")];
    const shop = await openIn(store, newRoot(join(dir, "shop")));
    let refused: Error & { code?: string; hint?: string } = new Error("it was not refused");
    try {
      say(shop.store, shop.folder, "app:main:ann", "which one?");
    } catch (error) {
      refused = error as Error;
    }
    expect(refused.code).toBe("ErrInvalidMessage");
    for (const path of paths) expect(refused.message).toContain(path);
    expect(textsFor(shop.folder, "ann")).toEqual([]);
    const [, first = "", second = ""] =
      /(app~[0-9a-f]{8}) .*(app~[0-9a-f]{8}) /.exec(refused.message) ?? [];
    expect(refused.hint).toContain(`${first}:main`);
    say(shop.store, shop.folder, `${first}:main:ann`, "to the first");
    send(
      shop.store,
      { scope: shop.folder.scope, from: "bob", via: "run", to: [], text: `@${second}:main:ann` },
      NOW,
    );
    expect(textsFor(one.folder, "ann")).toEqual(["to the first"]);
    expect(unreadOf(two.folder, "ann").messages).toMatchObject([
      { project: "shop", mentions: ["app:main:ann"] },
    ]);
  });

  it("of another project is found again by the address that was recorded", async () => {
    const { dir, store } = newPlace();
    const one = await openIn(store, newRoot(join(dir, "1/app")));
    await openIn(store, newRoot(join(dir, "2/app")));
    const shop = await openIn(store, newRoot(join(dir, "shop")));
    const { id = "" } = readClaim(store.dataDir, "app") ?? {};
    const sent = say(shop.store, shop.folder, `app~${id.slice(0, 8)}:main:ann`, "hello");
    expect(sent.to).toEqual(["app:main:ann"]);
    const again = new MailFolder(shop.store, { project: "app", branch: "main" }, true);
    expect(again.dir).toBe(one.folder.dir);
  });

  it("counts as another project for what its agents may write", async () => {
    const { dir, store } = newPlace();
    const one = await openIn(store, newRoot(join(dir, "1/app")));
    const two = await openIn(store, newRoot(join(dir, "2/app")));
    const shop = await openIn(store, newRoot(join(dir, "shop")));
    // The shop takes mail of app, which is the first root of that name.
    say(one.store, one.folder, "shop:main:ann", "from the first");
    say(two.store, two.folder, "shop:main:ann", "from the second");
    expect(textsFor(shop.folder, "ann")).toEqual(["from the first"]);
    expect(textsFor(shop.folder, "human")).toEqual(["from the second"]);
    const { project: name } = two.folder.reference;
    say(one.store, one.folder, `${name}:main:ann`, "between two of one name");
    const [held] = unreadOf(two.folder, "human").messages;
    expect(held).toMatchObject({
      project: expect.stringMatching(/^app~[0-9a-f]{8}$/),
      to: ["app:main:ann"],
    });
    expect(textsFor(two.folder, "ann")).toEqual([]);
  });

  it("in the old place of one that was moved leaves that one its agents", async () => {
    const { dir, store } = newPlace();
    const old = newRoot(join(dir, "1/app"));
    const before = await openIn(store, old);
    const home = join(old, "state");
    await createAgent(before.folder, { name: "ann", type: "claude", home }, NOW);
    fs.mkdirSync(join(dir, "2"));
    fs.renameSync(old, join(dir, "2/app"));
    newRoot(old);
    const moved = await openIn(store, join(dir, "2/app"));
    expect(moved.folder.dir).toBe(before.folder.dir);
    expect(listAgents(moved.folder)).toMatchObject([{ name: "ann", home }]);
    expect(listAgents((await openIn(store, old)).folder)).toEqual([]);
  });
});

it("a process that only reads leaves nothing, neither in the repository nor in the data directory", async () => {
  const dir = tempDir();
  const store: MailStore = { dataDir: join(dir, "data"), isDurable: false };
  const root = newRoot(join(dir, "app"));
  const before = fs.readdirSync(dir, { recursive: true });
  const { folder } = await openAt(store, root, join(root, "state"));
  expect([listAgents(folder), textsFor(folder, "human")]).toEqual([[], []]);
  expect(fs.readdirSync(dir, { recursive: true })).toEqual(before);
});

it("two roots of one name that begin at once get a folder each, whichever writes first", async () => {
  const dir = tempDir();
  const store: MailStore = { dataDir: join(dir, "data"), isDurable: false };
  const opened = [];
  for (const name of ["1/app", "2/app"]) {
    const root = newRoot(join(dir, name));
    opened.push(await openAt(store, root, join(root, "state")));
  }
  for (const { store: own, folder } of opened.reverse())
    send(
      own,
      { scope: folder.scope, from: "human", via: "cli", to: ["ann"], text: folder.scope.project },
      NOW,
    );
  expect(new Set(opened.map(({ folder }) => folder.dir)).size).toBe(2);
  for (const { folder } of opened) expect(textsFor(folder, "ann")).toHaveLength(1);
});

describe("trees outside of repositories", () => {
  it("are scopes of their own, also before they are made, with all directories below", async () => {
    const dir = tempDir();
    const store: MailStore = { dataDir: join(dir, "data"), isDurable: false };
    const at = (name: string) => openAt(store, dir, join(dir, name));
    const early = await at("a");
    send(
      early.store,
      { scope: early.folder.scope, from: "human", via: "cli", to: ["ann"], text: "a" },
      NOW,
    );
    newRoot(join(dir, "b"), "outside");
    fs.renameSync(join(dir, "b/state"), join(dir, "a"));
    const made = await at("a");
    made.folder.make();
    expect(made.folder.dir).toBe(early.folder.dir);
    fs.renameSync(join(dir, "a"), join(dir, "c"));
    const moved = await at("c");
    expect(textsFor(moved.folder, "ann")).toEqual(["a"]);
    execFileSync("cp", ["-a", join(dir, "c"), join(dir, "a")]);
    expect(textsFor((await at("a")).folder, "ann")).toEqual([]);
    expect(moved.folder.scope).toEqual({ project: "unknown", branch: "main" });
    expect(readAgent(moved.folder, "ann")).toBeUndefined();
  });
});
