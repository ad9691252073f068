/**
 * deliver.js STATE LATER [BROKEN]: looks after the mail of a state tree as a supervisor does, until nothing more is to be done at once.
 * It does not wait for quiet. LATER: how far its clock is ahead (minutes).
 */
import { DEFAULT_SETTINGS, type Settings } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { openWatch } from "../../../src/parts/mail/delivery/mail-watch.ts";
import { openEnvironment } from "../../../src/supervisor/environment/environment.ts";
import { breakMail } from "./broken.ts";

const LOOKS = 4;
const MINUTE_MS = 60_000;

const [state = "", later = "0", broken] = process.argv.slice(2);
if (broken !== undefined) breakMail(broken);
const names = ["ann", "bob", "cid"];
const settings: Settings = {
  ...DEFAULT_SETTINGS,
  durability: "process",
  mail_enabled: true,
  data: ".",
  agents: names.map((name) => ({ name, kind: "claude" }) as Settings["agents"][number]),
};
const onNotice = (notice: string): void => console.log(notice);
const env = openEnvironment({ tree: stateTree(state), settings, onNotice }, () => {});
const { clock } = env.trays;
const aheadMs = Number(later) * MINUTE_MS;
let passedMs = 0;
Object.assign(env.trays, {
  clock: {
    ...clock,
    wallMs: () => clock.wallMs() + aheadMs,
    monotonicMs: () => clock.monotonicMs() + passedMs,
  },
});
const watch = await openWatch(env, new Map());
for (let look = 0; look < LOOKS; look++) {
  await watch.look(look === 0);
  passedMs += MINUTE_MS;
}
process.exit(0);
