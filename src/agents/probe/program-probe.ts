/** The port by which a kind of coding agent is tried out against the mock API. Shapes only. */
import type { AgentKind } from "../../core/settings.ts";
import type { Scenario } from "../mock-api/script.ts";
import type { AgentProgram } from "../stream/agent-program.ts";
import type { Bench } from "./bench.ts";

/** One thing that a version can do, or cannot. */
export interface Ability {
  name: string;
  can: boolean;
  /** What follows for its runs when it cannot. */
  without: string;
}

export interface ProgramProbe {
  readonly kind: AgentKind;
  readonly program: AgentProgram;
  /** What the mock API says to `tryAll` and `trySandbox`. */
  readonly scenario: Scenario;
  /** @returns undefined: it gave no good answer to the simplest question, and `bench.fault` says why */
  tryAll(bench: Bench): Promise<Ability[] | undefined>;
  /** For a program with a sandbox. @returns why the sandbox does not hold on this machine; undefined: it does */
  readonly trySandbox?: (bench: Bench) => Promise<string | undefined>;
}
