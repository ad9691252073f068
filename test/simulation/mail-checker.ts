/** The promises of the delivery of mail, looked at in every state, and in the end when all goes well. */
import { readOffer } from "../../src/parts/mail/delivery/offers.ts";
import { readCursor } from "../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../src/parts/mail/store/inbox.ts";
import { recipientsOf } from "../../src/parts/mail/store/message.ts";
import { MessageReader, type Numbered } from "../../src/parts/mail/store/read-messages.ts";
import { idsOf, liveNames, textsOf, waitingIds } from "./mail-actions.ts";
import { ANN, folder, STATE, type World } from "./mail-world.ts";

const ADDRESS = "unknown:main:ann";

/** What is broken now, as sentences. */
export function faultsOf(world: World): string[] {
  const { truth, disk } = world;
  const faults: string[] = [];
  const cursor = readCursor(folder, ANN);
  for (const { id, n } of mailOfAnn())
    if (n <= cursor.upto && n > truth.acked && !truth.seen.has(id))
      faults.push(`${id} counts as read, and nothing proves it`);
  for (const [id, count] of truth.wakes)
    if (count > 1) faults.push(`${id} was submitted ${count} times`);
  const live = [...liveNames(world).map(({ id }) => id), ...waitingIds(world)];
  const wakes = live.filter((id) => id.startsWith("wake."));
  if (wakes.length > 1) faults.push(`two wake-ups at once: ${wakes.join(", ")}`);
  const cursors = `${STATE}/scopes/unknown/main/cursors/${ANN}`;
  for (const file of disk.look(cursors) === undefined ? [] : disk.list(cursors)) {
    const { n, by } = JSON.parse(String(disk.read(`${cursors}/${file}`, 1e9).bytes));
    const before = [...truth.failed].some((id) => id.endsWith(`.${n - 1}`));
    if (by === "failed wake-up" && !before)
      faults.push(`record ${n} says that a wake-up failed, and there was none for record ${n - 1}`);
  }
  const say = `${STATE}/say`;
  for (const id of disk.look(say) === undefined ? [] : disk.list(say)) {
    const ids = textsOf(id).flatMap(idsOf);
    const twice = ids.find((one, at) => ids.indexOf(one) !== at);
    if (twice !== undefined) faults.push(`${twice} was said twice to ${id}`);
  }
  for (const [id, count] of exitCounts())
    if (count > 1) faults.push(`the exit of ${id} was told ${count} times`);
  return faults;
}

/** When all has gone well for long enough. */
export function faultsOfEnd(world: World): string[] {
  const { truth } = world;
  const faults = unreadOf(folder, ANN).messages.map(({ id }) => `${id} is never read`);
  for (const { id, n } of mailOfAnn())
    if (n > truth.acked && !truth.seen.has(id)) faults.push(`${id} was never seen`);
  if (readOffer(folder, ANN) !== undefined) faults.push("an offer is left");
  const told = exitCounts();
  for (const id of truth.ran) if (!told.has(id)) faults.push(`the exit of ${id} was never told`);
  return faults;
}

/** Whether nothing is left to do. */
export function isAtRest(world: World): boolean {
  if (liveNames(world).length > 0 || waitingIds(world).length > 0) return false;
  return faultsOfEnd(world).length === 0;
}

function mailOfAnn(): Numbered[] {
  return [...new MessageReader(folder).next()].filter((message) =>
    recipientsOf(message).includes(ADDRESS),
  );
}

function exitCounts(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of new MessageReader(folder).next()) {
    const [, task] = /^exit-(.+)@/.exec(id) ?? [];
    if (task !== undefined) counts.set(task, (counts.get(task) ?? 0) + 1);
  }
  return counts;
}
