/** The examples of docs/library.md: each compiles against the types of the build, and those that are programs run. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { tempDir } from "../support/temp-dir.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const text = fs.readFileSync(`${ROOT}docs/library.md`, "utf8");
const examples = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);

test("the examples compile as they stand, and do what they say", () => {
  const dir = tempDir();
  fs.writeFileSync(join(dir, "package.json"), '{"type": "module"}');
  fs.mkdirSync(join(dir, "node_modules", "@types"), { recursive: true });
  fs.symlinkSync(ROOT, join(dir, "node_modules", "mailchute"));
  for (const name of ["zod", "@types/node"])
    fs.symlinkSync(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
  const names = examples.map((code, at) => {
    fs.writeFileSync(join(dir, `example${at}.ts`), code);
    return `example${at}.ts`;
  });
  expect(names.length).toBeGreaterThan(4);
  const flags = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false"];
  const target = ["--module", "nodenext", "--target", "es2023", "--types", "node"];
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  execFileSync(compiler, [...flags, ...target, ...names], { cwd: dir, stdio: "pipe" });
  const said = names.map((name) =>
    execFileSync(process.execPath, [name.replace(/ts$/, "js")], { cwd: dir, encoding: "utf8" }),
  );
  expect(said[0]).toMatch(/^submitted t-/);
  expect(said[1]).toBe("no pool runs yet\n");
  const inbox = fs.readdirSync(join(dir, "state", "mailbox", "inbox"));
  // The task of `resize`, which no pool knew; the pool of an example ran the others.
  expect(inbox).toHaveLength(1);
  expect(said.join("")).toContain("drained 3\ncompleted\n");
});
