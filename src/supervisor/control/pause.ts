/** The commands `pause` and `resume`: they decide whether new tasks start. */
import type { CommandHandler } from "./command-context.ts";
import { steer, tellOnce } from "./steer.ts";

export const pause: CommandHandler = (context, inHand) => {
  const goesOn = context.parts.statuses.flatMap((status) => status.goesOn?.() ?? []).join("; ");
  const but = goesOn === "" ? "" : `; ${goesOn}`;
  tellOnce(context, inHand, `paused: nothing starts before \`mailchute resume\`${but}`);
  steer(context, inHand, "paused", () => {
    if (context.control.current.paused) return undefined;
    const now = new Date(context.env.trays.clock.wallMs()).toISOString();
    const launched = context.parts.unbegun();
    return { paused: true, paused_at: now, paused_by: inHand.command.id, launched };
  });
  return { paused: true, ...(goesOn === "" ? {} : { goes_on: goesOn }) };
};

export const resume: CommandHandler = (context, inHand) => {
  tellOnce(context, inHand, "resumed");
  steer(context, inHand, "resumed", () =>
    context.control.current.paused
      ? { paused: false, paused_at: null, paused_by: null, launched: [] }
      : undefined,
  );
  return { paused: false };
};
