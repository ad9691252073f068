/** The port of the part that stands between the program of a run and the services of its models, and counts what they answer. */
import type { MeterSettings } from "../core/settings.ts";
import type { TurnFault, Usage } from "./stream/facts.ts";

/** What a request has shown. `of`: the service and the model that it asks, because one may refuse and another one not. */
export type MeterNote =
  /** A request to a model goes out, with a body of this size (bytes). */
  | { note: "asked"; of: string; size: number }
  /** Tokens to add. */
  | { note: "used"; of: string; model: string; usage: Usage }
  /** A model has answered. `isCounted`: the answer said how many tokens it took. */
  | { note: "answered"; of: string; isCounted: boolean }
  /** A service has refused a request to a model, or could not be reached. */
  | ({ note: "refused"; of: string } & Refusal)
  /** The program did not wait for the answer. */
  | { note: "left"; of: string }
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
  /** Asked before each request that may use tokens. False: the request gets no answer, because the run is being stopped. */
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
