/** The port of the part that stands between the program of a run and the services of its models, and counts what they answer. */
import type { MeterSettings } from "../core/settings.ts";
import type { TurnFault, Usage } from "./stream/facts.ts";

/** What a request has shown. */
export type MeterNote =
  /** Tokens to add. */
  | { note: "used"; model: string; usage: Usage }
  /** A model has answered. `isCounted`: the answer said how many tokens it took. */
  | { note: "answered"; isCounted: boolean }
  /** A service has refused a request to a model, or could not be reached. */
  | ({ note: "refused" } & Refusal)
  /** A window of the account's quota. */
  | { note: "window"; window: string; usedPct: number; resetsAtMs: number };

export interface Refusal {
  fault: Extract<TurnFault, "limit" | "overload" | "auth" | "config">;
  /** Null: there was no answer. */
  status: number | null;
  /** When the service takes requests again, if it said so (epoch ms). */
  resetsAtMs: number | null;
  text: string;
}

/** One program that is about to run. */
export interface MeteredRun {
  settings: MeterSettings;
  runDir: string;
  /** Asked before each request to a model. False: the request gets no answer, because the run is being stopped. */
  mayAsk(): boolean;
  /** Called before the program gets the piece of the answer that shows this. */
  onNote(note: MeterNote): void;
}

export interface RunMeter {
  /** The address in the place of that of a service. */
  readonly through: (address: string) => string;
  /** Does the same in the variables from which programs commonly read such an address, and adds those that are missing. */
  readonly enter: (env: NodeJS.ProcessEnv) => void;
  /** Ends all requests. */
  readonly close: () => void;
}

/** @throws ErrInvalidConfig, or a system error */
export type MakeMeter = (run: MeteredRun) => Promise<RunMeter>;
