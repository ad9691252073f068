/** Stands between the program of a run and the services of its models. The code is loaded for the first run with a meter. */
import type { MakeMeter } from "../../agents/meter.ts";

export const meter: MakeMeter = async (run) => (await import("./server.ts")).openMeter(run);
