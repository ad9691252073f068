/** Inside a worker of a peer: counts what it has done and tells whoever started it. */

/** How often it tells (ms). */
const REPORT_MS = 10;

export const settings = JSON.parse(process.argv[2] ?? "{}");

/** The machine's one monotonic clock, so that the times of several processes compare (ms). */
export const clockMs = () => Number(process.hrtime.bigint()) / 1e6;

const tally = { count: 0, firstMs: 0, lastMs: 0, startsMs: [] };
let isReported = true;

export function started() {
  const nowMs = clockMs();
  if (tally.firstMs === 0) tally.firstMs = nowMs;
  if (settings.keepsStarts === true) tally.startsMs.push(nowMs);
}

export function completed() {
  tally.count++;
  tally.lastMs = clockMs();
  isReported = false;
}

/** Says that it could begin, and resolves when it is told to. */
export async function waitForGo() {
  setInterval(() => {
    if (isReported) return;
    isReported = true;
    process.send(tally);
  }, REPORT_MS);
  process.once("disconnect", () => process.exit());
  const go = new Promise((resolve) => process.once("message", resolve));
  process.send("ready");
  await go;
}
