/** The command `set-workers`: sets the number of slots over all worker processes. */
import type { CommandHandler } from "./command-context.ts";
import { steer, tellOnce } from "./steer.ts";

export const setWorkers: CommandHandler = (context, inHand) => {
  const { control, env, queue, run } = context;
  const { id, args } = inHand.command;
  const workers = args.workers ?? 0;
  const { workers: given } = env.settings;
  const change = { max_workers: workers, max_workers_by: id, max_workers_over: given };
  const slots = `${workers} ${workers === 1 ? "slot" : "slots"}`;
  tellOnce(context, inHand, run.isFixed ? `${slots} from the next run on` : `${slots} now`);
  steer(context, inHand, "workers_changed", () => change, { workers });
  // The number is remembered for the next run.
  if (run.isFixed) return { workers: given, next_run: workers };
  queue.pool.setMaxSlots(control.current.max_workers ?? given);
  run.shareSlots();
  return { workers };
};
