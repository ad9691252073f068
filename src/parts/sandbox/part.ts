/** Before any task runs: refuses to start agents that want walls where this machine can build none. */
import { ErrInvalidConfig } from "../../core/errors.ts";
import { wallsOf } from "../../core/sandbox.ts";
import { explainNoWalls } from "../../host/bubblewrap.ts";
import type { MakePart } from "../../supervisor/part.ts";

export const sandboxGuard: MakePart = ({ env: { alerts, settings } }) => {
  const walls = [{}, ...settings.agents].flatMap((agent) => wallsOf(agent, settings) ?? []);
  const fault = walls.length === 0 ? undefined : explainNoWalls();
  if (fault === undefined) return {};
  if (walls.some(({ missing }) => missing !== "open"))
    throw new ErrInvalidConfig(`sandbox: this machine has no walls for it: ${fault}`, {
      phase: "sandbox",
      hint: "mend that, or let them work without walls: sandbox: {missing: open}, or sandbox: open",
    });
  alerts.alert("sandbox", `programs work without walls, as \`missing: open\` allows: ${fault}`);
  return {};
};
