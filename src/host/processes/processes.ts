/** Chooses how mailchute looks at the processes of this machine. */
import { hostKind } from "../host-kind.ts";
import { procSource } from "./proc-source.ts";
import type { ProcessSource } from "./process-source.ts";
import { psSource } from "./ps-source.ts";

/** @throws ErrInvalidConfig when the environment names no such kind */
export function processes(): ProcessSource {
  return hostKind() === "proc" ? procSource : psSource;
}
