/** The meter of one program, if its agent has one: opens it, and turns what it sees into facts of the run. */
import { messageOf, systemCode } from "../core/errors.ts";
import { atAddresses, withoutMeter } from "../core/meter-address.ts";
import { type AttemptOutcome, deferred, failed } from "../core/outcome.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Assignment } from "./agent.ts";
import type { CostWatch } from "./budget/cost-watch.ts";
import type { MeterNote, RunMeter } from "./meter.ts";
import { MeterReading } from "./meter-reading.ts";
import type { AccountGate } from "./stream/account-gate.ts";
import type { Fact } from "./stream/facts.ts";

/** Who is told what a meter sees. */
export interface MeterSight {
  costs: Pick<CostWatch, "mayAsk" | "noteUsed">;
  gate: Pick<AccountGate, "noteQuota" | "pass">;
  onFacts: (facts: readonly Fact[]) => void;
}

/** What a program is started with, with or without a meter. */
export interface Metered {
  /** Undefined without a meter. */
  readonly reading?: MeterReading;
  /** The settings of its agent, with the addresses that it is to use. */
  readonly settings: AgentSettings;
  /** See `RunMeter`. */
  readonly through?: RunMeter["through"];
  readonly enter?: RunMeter["enter"];
  readonly close: () => void;
}

/**
 * @param sight asked when the meter sees something; undefined before the program starts
 * @returns why the program cannot be started, or its meter. Never rejects
 */
export async function openMeter(
  assignment: Pick<Assignment, "makeMeter" | "runDir">,
  agent: AgentSettings,
  sight: () => MeterSight | undefined,
): Promise<Metered | { refusal: AttemptOutcome }> {
  const { meter, name } = agent;
  if (meter === undefined || meter === false)
    return { settings: meter === false ? withoutMeter(agent) : agent, close() {} };
  const { makeMeter, runDir } = assignment;
  const reading = new MeterReading();
  let isClosed = false;
  try {
    if (makeMeter === undefined)
      return { refusal: invalid(`agents: ${name}: nothing here meters runs: remove meter`) };
    const opened = await makeMeter({
      settings: meter === true ? {} : meter,
      runDir,
      mayAsk: () => sight()?.costs.mayAsk() === true,
      onNote(note) {
        // What comes after the end of the run belongs to nothing.
        if (isClosed) return;
        reading.take(note, Date.now());
        const to = sight();
        if (to !== undefined) tell(note, reading, to);
      },
    });
    const close = (): void => {
      isClosed = true;
      opened.close();
    };
    const { enter, through } = opened;
    return { settings: atAddresses(agent, through), reading, through, enter, close };
  } catch (error) {
    // It has no descriptor left, say. That is not the fault of the task.
    const isMachine = systemCode(error) !== "";
    const why = messageOf(error);
    return { refusal: isMachine ? deferred(`cannot open its meter: ${why}`) : invalid(why) };
  }
}

function invalid(message: string): AttemptOutcome {
  return failed("config", "ErrInvalidConfig", message, { canRetry: false });
}

function tell(note: MeterNote, reading: MeterReading, { costs, gate, onFacts }: MeterSight): void {
  switch (note.note) {
    case "used":
      costs.noteUsed(false);
      return;
    case "answered":
      costs.noteUsed(true);
      // The account is not at its limit.
      if (reading.refused === undefined) gate.pass();
      return;
    case "refused": {
      if (!reading.isMain(note.of)) return;
      const { resetsAtMs, status, text } = note;
      const delayMs = resetsAtMs === null ? null : Math.max(0, resetsAtMs - Date.now());
      onFacts([{ fact: "api_retry", status, delayMs, text: `meter: ${text}` }]);
      return;
    }
    case "window": {
      const { resetsAtMs, usedPct, window } = note;
      gate.noteQuota({ fact: "quota", isRejected: false, resetsAtMs, usedPct, window });
      return;
    }
    default:
  }
}
