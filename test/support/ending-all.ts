/** What a long search has started ends with it, also when a signal ends the search. */

export type End = () => void | Promise<void>;

/** @param work gets the list to which it adds how to end what it starts: last come, first gone */
export async function endingAll<T>(work: (ends: End[]) => Promise<T>): Promise<T> {
  const ends: End[] = [];
  const endAll = async (): Promise<void> => {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
  };
  const onSignal = (): void => {
    void endAll().then(() => process.exit(130));
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await work(ends);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    await endAll();
  }
}
