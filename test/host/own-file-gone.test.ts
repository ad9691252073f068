/** Which errors say that a file of this package is gone. */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { isOwnFileGone } from "../../src/host/own-file-gone.ts";

const ours = new URL("../../src/worker/", import.meta.url);

/** What Node throws when a file asks for another one. */
function errorOf(importer: string, asked: string): unknown {
  try {
    createRequire(importer)(asked);
  } catch (error) {
    return error;
  }
  return undefined;
}

/** As Node makes it: Vitest would make another one. */
const ofModule = (url?: string): Error =>
  Object.assign(new Error("Cannot find module"), { code: "ERR_MODULE_NOT_FOUND", url });

test("a missing file that one of ours asks for is ours", () => {
  const importer = fileURLToPath(new URL("entry.cjs", ours));
  expect(isOwnFileGone(errorOf(importer, "./gone.cjs"))).toBe(true);
  expect(isOwnFileGone(errorOf(importer, "../chunks/gone.cjs"))).toBe(true);
  expect(isOwnFileGone(ofModule(new URL("gone.mjs", ours).href))).toBe(true);
});

test("a missing package, a file that a handler asks for, and whatever a handler throws are not", () => {
  const importer = fileURLToPath(new URL("entry.cjs", ours));
  const odd = { code: "MODULE_NOT_FOUND", requireStack: 7 };
  for (const error of [
    errorOf(importer, "no-such-package"),
    errorOf("/handlers/mine.cjs", "./gone.cjs"),
    ofModule(),
    ofModule("file:///handlers/gone.mjs"),
    Object.assign(new Error("odd"), odd),
    odd,
    null,
    undefined,
    "a text",
  ])
    expect(isOwnFileGone(error)).toBe(false);
});
