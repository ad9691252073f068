/** Ten branches of which three conflict: seven land in order, three stay with a person, nothing is lost; `every-kill.test.ts` has all kills. */
import { expect, test } from "vitest";
import { IS_WHOLE, WALKS_SEED } from "../../support/walks.ts";
import {
  expectSevenAndThree,
  LANDED,
  landTenWithKills,
  newTen,
  ORDER,
  TARGET,
} from "./ten-walk.ts";

/** So many kinds of steps pass for each at which the worker is killed. */
const EVERY = IS_WHOLE ? 8 : 16;

test("they land in the order in which they ended", async () => {
  const ten = newTen();
  await (await ten.pool.start(["--drain", "--workers", "10"])).ended;
  await expectSevenAndThree(ten);
  const subjects = ten.repo.git("log", "--format=%s", "--reverse", TARGET).split("\n");
  expect(subjects.filter((one) => ORDER.includes(one))).toEqual(LANDED);
});

test.runIf(IS_WHOLE || WALKS_SEED % 2 === 0)(
  "a SIGKILL at some kinds of steps changes nothing of that",
  async () => {
    const first = Math.floor(WALKS_SEED / 2) % EVERY;
    await landTenWithKills(EVERY, first);
  },
);
