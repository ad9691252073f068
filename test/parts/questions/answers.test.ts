/** Answers in files: one that cannot be taken holds up no other. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Apart } from "../../../src/core/apart.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { questions } from "../../../src/parts/questions/part.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** One look at three answered files, where the first one cannot be taken. @returns what was told, and the answers */
function lookOnce(apart?: Pick<Apart, "eachNow">): {
  told: string[];
  answers: (string | undefined)[];
} {
  const dir = tempDir();
  const store = new QuestionStore(dir);
  const ids = ["a", "b", "c"];
  for (const id of ids) {
    const agents: string[] = [];
    const times = { asked_at_ms: 1, ends_at_ms: null };
    store.ask({ id, question: "Go on?", context: "", who: "x", agents, expects: "text", ...times });
    const file = join(store.openDir, `${id}.md`);
    fs.appendFileSync(file, "yes\n");
    // The clock of the file system may be a part of a millisecond ahead.
    fs.utimesSync(file, 1, 1);
  }
  // In the place where its answer is staged.
  fs.mkdirSync(join(dir, "questions", ".tmp", `a.md.${process.pid}`, "x"), { recursive: true });
  const told: string[] = [];
  const tell = (key: string): number => told.push(key);
  const env = {
    tree: { dir },
    trays: { clock: systemClock },
    settings: { ...DEFAULT_SETTINGS, settle_ms: 0 },
    alerts: { report: tell, notice: () => {}, alert: () => {} },
    facts: { on: () => {} },
  };
  const part = questions({ env } as never) as Required<Part>;
  if (apart !== undefined) Object.assign(part, { apart });
  part.work({ nowMs: 1 } as never);
  return { told, answers: ids.map((id) => store.answerOf(id)) };
}

/** Broken: the first error ends it. */
const PLAIN_LOOP: Pick<Apart, "eachNow"> = {
  eachNow: (orders, _, work) => {
    for (const order of orders) work(order);
  },
};

it("an answer that cannot be taken is told, and the others are taken", () => {
  expect(lookOnce()).toEqual({
    told: ["the answer of the question:a"],
    answers: [undefined, "yes", "yes"],
  });
  expect(lookOnce(PLAIN_LOOP).answers).toEqual([undefined, undefined, undefined]);
});
