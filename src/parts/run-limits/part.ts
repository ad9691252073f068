/** Before a worker starts, moves the pool to a place where its runs can have control groups. Does nothing if there is none. */
import { enterPoolGroup, findGroupPlace, groupSystem } from "../../host/run-groups.ts";
import type { Part, PartPorts } from "../../supervisor/environment/part.ts";
import { NEVER } from "../../supervisor/environment/service.ts";
import type { MakePart } from "../../supervisor/part.ts";

class RunLimitsPart implements Part {
  readonly ports: PartPorts = {};

  constructor() {
    try {
      const place = findGroupPlace(groupSystem());
      if (typeof place !== "string" && !place.isEntered) enterPoolGroup(place);
    } catch {
      // Then runs are watched. `doctor` says so.
    }
  }

  async start(): Promise<void> {}
  work(): void {}
  nextMs(): number {
    return NEVER;
  }
  async finish(): Promise<void> {}
  close(): void {}
}

export const poolGroup: MakePart = () => new RunLimitsPart();
