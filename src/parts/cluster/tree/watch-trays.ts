/** Wakes a bridge when something in its tree has changed. The bridge also looks by itself, so a missing event only costs time. */
import { ChangeSignal } from "../../../host/change-signal.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";

/** The longest time that a timer can wait (ms). */
const NEVER_MS = 2 ** 31 - 1;

/** @returns a function that ends the watch */
export function watchTrays(
  { processing, outbox, failed }: Pick<Trays, "processing" | "outbox" | "failed">,
  wake: () => void,
): () => void {
  const changes = new ChangeSignal([processing, outbox, failed], NEVER_MS);
  let isOver = false;
  const follow = async (): Promise<void> => {
    for (;;) {
      await changes.next();
      if (isOver) return;
      wake();
    }
  };
  void follow();
  return () => {
    isOver = true;
    changes.ring();
    changes.close();
  };
}
