/** The port that tries out a kind of coding agent against the mock API. Types only. */
import type { AgentKind } from "../../core/settings.ts";
import type { Scenario } from "../mock-api/script.ts";
import type { AgentProgram } from "../stream/agent-program.ts";
import type { Bench } from "./bench.ts";

/** One thing that a version of the program can or cannot do. */
export interface Ability {
  name: string;
  can: boolean;
  /** What its runs lack when it cannot do this. */
  without: string;
}

export interface ProgramProbe {
  readonly kind: AgentKind;
  readonly program: AgentProgram;
  /** The answers of the mock API for `tryAll` and `trySandbox`. */
  readonly scenario: Scenario;
  /** @returns undefined when the program gave no good answer to the simplest question; `bench.fault` says why */
  tryAll(bench: Bench): Promise<Ability[] | undefined>;
  /** For a program with a sandbox. @returns why the sandbox does not work on this machine; undefined when it works */
  readonly trySandbox?: (bench: Bench) => Promise<string | undefined>;
}
