/** For tests of what only /proc tells. On a portable host they are left out, and counted as skipped. */
import { it } from "vitest";
import { hostKind } from "../../src/host/host-kind.ts";

export const onProc = it.skipIf(hostKind() === "portable");
