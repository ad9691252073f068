/**
 * The corpus: inputs of every kind that end up in an inbox, each with the answer it must get. Functions, not files: many of
 * these names and kinds survive no version control.
 */
import { ARRIVALS } from "./arrivals.ts";
import { BATCHES } from "./batches.ts";
import { FIELDS } from "./fields.ts";
import type { InputCase } from "./input-case.ts";
import { KINDS } from "./kinds.ts";
import { NAMES } from "./names.ts";
import { TEXTS } from "./texts.ts";

export const CORPUS: readonly InputCase[] = [
  ...TEXTS,
  ...FIELDS,
  ...NAMES,
  ...KINDS,
  ...BATCHES,
  ...ARRIVALS,
];
