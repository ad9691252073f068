/** The port that tries out a kind of coding agent against the mock API. Types only. */
import type { AgentKind } from "../../core/settings.ts";
import type { Scenario } from "../mock-api/script.ts";
import type { AgentProgram } from "../stream/agent-program.ts";
import type { Bench } from "./bench.ts";

/** One thing that a version can do, or cannot. */
export interface Ability {
  name: string;
  can: boolean;
  /** What its runs must do without when it cannot. */
  without: string;
}

export interface ProgramProbe {
  readonly kind: AgentKind;
  readonly program: AgentProgram;
  /** The answers of the mock API for `tryAll` and `trySandbox`. */
  readonly scenario: Scenario;
  /** @returns undefined: it gave no good answer to the simplest question, and `bench.fault` says why */
  tryAll(bench: Bench): Promise<Ability[] | undefined>;
  /** For a program with a sandbox. @returns why the sandbox does not hold on this machine; undefined: it does */
  readonly trySandbox?: (bench: Bench) => Promise<string | undefined>;
}
