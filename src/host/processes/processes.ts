/** Chooses how the processes of this machine are looked at. */
import { procSource } from "./proc-source.ts";
import type { ProcessSource } from "./process-source.ts";

export function processes(): ProcessSource {
  return procSource;
}
