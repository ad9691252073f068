/** Scopes: which one a directory is in, and how scopes and agents are written. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findScope, readScope } from "../../../src/parts/mail/scope/find-scope.ts";
import {
  explainBadScope,
  folderOf,
  formatAddress,
  parseAddress,
  parseScope,
  scopeOf,
} from "../../../src/parts/mail/scope/scope.ts";
import { newRepository } from "../../support/git-repository.ts";
import { tempDir } from "../../support/temp-dir.ts";

describe("seed task 1: a scope is a project and a branch", () => {
  it("takes the base name of the repository's root as the project", () => {
    expect(scopeOf("/Users/alice/code/my-app", "feature-login")).toEqual({
      project: "my-app",
      branch: "feature-login",
    });
  });

  it("takes main when no branch is named", () => {
    expect(scopeOf("/code/my-app", "")).toEqual({ project: "my-app", branch: "main" });
  });
});

describe("the scope of a directory", () => {
  it("is unknown/main outside of a repository, and where there is no directory", async () => {
    const dir = tempDir();
    expect(await findScope(dir)).toEqual({ project: "unknown", branch: "main" });
    expect(await findScope(join(dir, "gone"))).toEqual({ project: "unknown", branch: "main" });
  });

  it("is that of the repository around it, also through a symbolic link", async () => {
    const dir = tempDir();
    const app = newRepository(join(dir, "app"));
    app.git("checkout", "--quiet", "-b", "feature/login");
    fs.mkdirSync(join(app.dir, "src", "deep"), { recursive: true });
    fs.symlinkSync(join(app.dir, "src"), join(dir, "link"));
    const scope = { project: "app", branch: "feature/login" };
    expect(await findScope(join(app.dir, "src", "deep"))).toEqual(scope);
    expect(await findScope(join(dir, "link"))).toEqual(scope);
  });

  it("is the short name of the commit when no branch is checked out", async () => {
    const app = newRepository(join(tempDir(), "app"));
    app.git("checkout", "--quiet", "--detach");
    const commit = app.git("rev-parse", "HEAD").slice(0, 7);
    expect(await findScope(app.dir)).toEqual({ project: "app", branch: commit });
  });

  it("is the branch of a repository that has no commit yet", async () => {
    const dir = join(tempDir(), "fresh");
    newRepository(dir).git("checkout", "--quiet", "--orphan", "begin");
    expect(await findScope(dir)).toEqual({ project: "fresh", branch: "begin" });
  });

  it.each([
    ["app", "app"],
    ["app.git", "app"],
    ["app/.bare", "app"],
  ])("belongs to the main repository in a worktree of %s", async (place, project) => {
    const dir = tempDir();
    const source = newRepository(join(dir, "source"));
    const main = join(dir, place);
    source.git("clone", "--quiet", ...(place === "app" ? [] : ["--bare"]), source.dir, main);
    source.git("-C", main, "worktree", "add", "--quiet", "-b", "side", join(dir, "elsewhere"));
    expect(await findScope(join(dir, "elsewhere"))).toEqual({ project, branch: "side" });
  });

  it("is its own in a submodule", async () => {
    const dir = tempDir();
    const lib = newRepository(join(dir, "lib"));
    const app = newRepository(join(dir, "app"));
    app.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "vendor");
    expect(await findScope(join(app.dir, "vendor"))).toEqual({ project: "vendor", branch: "main" });
  });

  it("is asked of git when its files do not name the branch", async () => {
    const app = newRepository(join(tempDir(), "app"));
    // As with reftable, which needs a newer git than many machines have. Git then finds no branch either.
    fs.writeFileSync(join(app.dir, ".git", "HEAD"), "ref: refs/heads/.invalid\n");
    expect(await findScope(app.dir)).toEqual({ project: "app", branch: "main" });
  });

  it("is not that of a directory or file .git which is no repository", async () => {
    const dir = tempDir();
    fs.mkdirSync(join(dir, "a", ".git"), { recursive: true });
    fs.mkdirSync(join(dir, "b"));
    fs.writeFileSync(join(dir, "b", ".git"), "nothing\n");
    expect(await findScope(join(dir, "a"))).toMatchObject({ project: "unknown" });
    expect(await findScope(join(dir, "b"))).toMatchObject({ project: "unknown" });
  });

  it("is that of the bare repository, also inside its git directory", async () => {
    const dir = tempDir();
    const source = newRepository(join(dir, "source"));
    source.git("clone", "--quiet", "--bare", source.dir, join(dir, "app.git"));
    expect(await findScope(join(dir, "app.git"))).toEqual({ project: "app", branch: "main" });
    expect(await findScope(join(source.dir, ".git", "refs"))).toMatchObject({ project: "source" });
  });

  it("is read from a text, which must name a project and a branch", () => {
    expect(readScope("shop:release/2", "--scope")).toEqual({
      project: "shop",
      branch: "release/2",
    });
    for (const text of ["shop", ""])
      expect(() => readScope(text, "MAILCHUTE_SCOPE")).toThrow(
        expect.objectContaining({
          code: "ErrInvalidMessage",
          hint: "write MAILCHUTE_SCOPE as PROJECT:BRANCH",
        }),
      );
  });
});

describe("how scopes and agents are written", () => {
  const scope = { project: "app", branch: "feature/login" };

  it.each([
    ["Impl-1", "app:feature/login:impl-1"],
    ["main:June", "app:main:june"],
    ["Backend:Main:June", "Backend:Main:june"],
    ["c:d:main:june", "c:d:main:june"],
  ])("reads the address %s", (text, whole) => {
    const address = parseAddress(text, scope);
    expect(address && formatAddress(address)).toBe(whole);
  });

  it.each(["", "a b", "june.", ".june", "main:", ":june", "a\nb:main:june", "x".repeat(97)])(
    "finds no address in %j",
    (text) => {
      expect(parseAddress(text, scope)).toBeUndefined();
    },
  );

  it("reads a scope, and says why something is none", () => {
    expect(parseScope("app:feature/login")).toEqual(scope);
    expect(parseScope("app")).toBeUndefined();
    expect(explainBadScope({ project: "", branch: "main" })).toBe("the project is empty");
    expect(explainBadScope({ project: "a", branch: "a:b" })).toBe("a branch has no ':'");
  });

  it("makes one folder of each name", () => {
    expect(folderOf("feature/login")).toBe("feature%2Flogin");
    expect(folderOf("..")).toBe("%2E.");
    expect(folderOf("Größe")).toBe("Gr%C3%B6%C3%9Fe");
  });

  it("makes names of folders that are short, safe, and different for different names", () => {
    const name = fc.oneof(
      fc.string({ minLength: 1, maxLength: 300, unit: "binary" }),
      fc.stringMatching(/^[%~a-f0-9./-]{1,130}$/),
    );
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(folderOf(a)).toMatch(/^[A-Za-z0-9_%-][A-Za-z0-9._%~-]{0,99}$/);
        expect(folderOf(a) === folderOf(b)).toBe(a === b);
      }),
    );
  });
});
