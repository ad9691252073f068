/** Plans read in a thread are the same as plans read in place. */
import { afterEach, expect, test } from "vitest";
import { parseRoadmap } from "../../../src/parts/plan/read/document.ts";
import { RoadmapLoader } from "../../../src/parts/plan/read/loader.ts";

const loader = new RoadmapLoader();
afterEach(() => loader.close());

const large = `epics:\n  - id: E\n    tasks:\n${Array.from(
  { length: 200 },
  (_, i) =>
    `      - { id: TASK-${i}, title: "${"größer 🚀 ".repeat(20)}${i}", status: pending } # ${i}\n`,
).join("")}`;

test("a small plan and a large one, several at once", async () => {
  const broken = `${large}  - { id: TASK-1 }\n`;
  const texts = ["nodes: [{ id: a }]\n", large, broken, "", large.replaceAll("E\n", "E2\n")];
  const docs = await Promise.all(texts.map((text) => loader.load(text)));
  for (const [i, doc] of docs.entries()) expect(doc).toEqual(parseRoadmap(texts[i] as string));
});

test("after it was closed it starts anew, and who waited is told", async () => {
  const lost = loader.load(large);
  const told = expect(lost).rejects.toThrow("closed");
  await loader.close();
  await told;
  expect((await loader.load(large)).nodes.length).toBe(201);
});
