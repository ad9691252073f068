/** Tells of each group and limit what waits, what is in work, what it has spent, and why no task of it starts. Pure. */
import { type LimitKind, limitKey, TaskLimits } from "../core/task-limits.ts";
import type { Facts, GroupView, WaitingGroup } from "./overview.ts";
import { closedGates, isAttended } from "./supervisor.ts";
import { codeOf } from "./waiting-groups.ts";

/** @param waiting the tasks that wait, by their reason @returns the groups, then the limits */
export function groupsOf(
  { snapshot, limits: source, cost }: Facts,
  waiting: readonly WaitingGroup[],
): GroupView[] {
  const { supervisor, control } = snapshot;
  const limits = new TaskLimits(source, control.limit_changes);
  const counts = isAttended(supervisor) ? supervisor.document?.limits : undefined;
  const gates = closedGates(supervisor);
  const viewOf = (kind: LimitKind, name: string): GroupView => {
    const { slots = null, rate = null, paused } = limits.settingsOf(kind, name) ?? {};
    const told = counts?.[limitKey(kind, name)];
    const shared = kind === "group" ? limits.namesOf(name) : [];
    const own = gates.filter((gate) => gate[kind] === name);
    const gate = own[0] ?? gates.find(({ limit = "" }) => shared.includes(limit));
    const codes = own.map((one) => codeOf(one.gate));
    return {
      kind,
      name,
      waiting: told?.waiting ?? null,
      in_work: told?.in_work ?? null,
      slots,
      rate,
      limits: shared,
      spent_usd_micro: kind === "group" ? (cost.groups.get(name) ?? null) : null,
      why: gate?.why ?? (paused === true ? "paused" : null),
      do: gate?.do ?? null,
      tasks: waiting.flatMap(({ code, tasks }) => (codes.includes(code) ? tasks : [])),
    };
  };
  return [
    ...Object.keys(source.groups).map((name) => viewOf("group", name)),
    ...Object.keys(source.limits).map((name) => viewOf("limit", name)),
  ];
}
