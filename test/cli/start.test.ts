/** What a command loads of Node before it does anything. The larger modules, such as streams, would take much of the time of a short command. */
import { expect, test } from "vitest";
import { builtinsWith } from "../support/comes-with.ts";

const SMALL = ["node:fs", "node:os", "node:path", "node:timers/promises", "node:util"];

test.each(["cli/main.ts", "cli/commands/status.ts", "cli/commands/ls.ts"])(
  "with %s come only small modules of Node",
  (file) => {
    expect(SMALL).toEqual(expect.arrayContaining(builtinsWith(file)));
    expect(builtinsWith(file)).toContain("node:fs");
  },
);
