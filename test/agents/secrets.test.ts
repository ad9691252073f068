/** `env_from`: read at each start, refused when others can read it, and never in what a record says. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readSecrets, withoutSecrets } from "../../src/agents/secrets.ts";
import { failed } from "../../src/core/outcome.ts";
import { tempDir } from "../support/temp-dir.ts";

const CLOSED = { allow_open_secrets: false };

it("values come from files and variables, without the line end of a file", () => {
  const file = join(tempDir(), "token");
  fs.writeFileSync(file, "s3cret value\n", { mode: 0o600 });
  const env_from = { TOKEN: `file:${file}`, B: "env:OF_WORKER" };
  const read = readSecrets({ env_from }, CLOSED, { OF_WORKER: "b" });
  expect(read).toEqual({ variables: { TOKEN: "s3cret value", B: "b" } });
  expect(readSecrets({}, CLOSED, {})).toEqual({ variables: {} });
});

it("what cannot be read, or all users can read, fails the run without its value", () => {
  const dir = tempDir();
  const file = join(dir, "open");
  fs.writeFileSync(file, "s3cret", { mode: 0o644 });
  fs.writeFileSync(join(dir, "zero"), "a\0b", { mode: 0o600 });
  fs.writeFileSync(join(dir, "long"), "x".repeat(200_000), { mode: 0o600 });
  const faultOf = (reference: string): string => {
    const read = readSecrets({ env_from: { A: reference } }, CLOSED, {});
    if (!("outcome" in read)) throw new Error("it was read");
    expect(read.outcome).toMatchObject({ failure: "environment", canRetry: true });
    return read.outcome.message;
  };
  expect(faultOf(`file:${file}`)).toContain("others can read that file");
  expect(faultOf(`file:${dir}/none`)).toContain("ENOENT");
  expect(faultOf(`file:${dir}`)).toContain(`env_from.A: file:${dir}`);
  expect(faultOf(`file:${dir}/zero`)).toContain("zero byte");
  expect(faultOf(`file:${dir}/long`)).toContain("too long");
  expect(faultOf("env:NONE")).toContain("no such variable");
  const open = readSecrets({ env_from: { A: `file:${file}` } }, { allow_open_secrets: true });
  expect(open).toEqual({ variables: { A: "s3cret" } });
});

it("values are taken out of a failure, short ones are not", () => {
  const outcome = failed("exit", "ErrExit", "ab with s3cret", { lastWords: "s3cret s3cret ab" });
  expect(withoutSecrets(outcome, ["s3cret", "ab"])).toMatchObject({
    message: "ab with ***",
    lastWords: "*** *** ab",
  });
  expect(withoutSecrets(outcome, ["ab"])).toEqual(outcome);
});
