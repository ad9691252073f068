/** Tells a bridge that something in its tree has changed. It looks by itself, too: what is told late or never costs time only. */
import { ChangeSignal } from "../../../host/change-signal.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";

/** A timer cannot wait longer (ms). */
const NEVER_MS = 2 ** 31 - 1;

/** @returns ends it */
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
