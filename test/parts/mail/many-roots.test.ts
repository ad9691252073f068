/** The long form of `roots.test.ts`: many games of roots that are copied, moved and made anew. Wrong variants are caught there. */
import { expect, it } from "vitest";
import { openAt } from "../../../src/parts/mail/roots/open-own.ts";
import { IS_WHOLE, WALKS_SEED } from "../../support/walks.ts";
import { play } from "./many-roots.ts";

it.each(Array.from({ length: IS_WHOLE ? 300 : 12 }, (_, n) => WALKS_SEED + n))(
  "roots of one name never see an agent or a message of another, and never lose their own: seed %i",
  async (seed) => {
    expect(await play(seed, openAt)).toBe("");
  },
);
