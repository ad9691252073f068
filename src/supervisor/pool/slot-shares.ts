/** How the slots of a pool are shared among its worker processes. Pure. */

/**
 * While more tasks run than there are slots, each worker gets 0, so that nothing starts. Otherwise all get the same share; a worker that runs more than
 * that keeps what it has.
 * @param max slots over all workers
 * @param running what each worker runs now
 * @returns slots of each worker
 */
export function shareSlots(max: number, running: readonly number[]): number[] {
  const count = running.length;
  const total = running.reduce((sum, n) => sum + n, 0);
  if (total > max) return running.map(() => 0);
  const even = running.map((_, index) => Math.floor(max / count) + (index < max % count ? 1 : 0));
  if (running.every((n, index) => n <= (even[index] ?? 0))) return even;
  const shares = [...running];
  for (let left = max - total; left > 0; left--) {
    const least = shares.indexOf(Math.min(...shares));
    shares[least] = (shares[least] ?? 0) + 1;
  }
  return shares;
}
