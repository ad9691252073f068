/** A task's function. */
import { setTimeout as wait } from "node:timers/promises";

export default async () => {
  await wait(5);
  return "done";
};
