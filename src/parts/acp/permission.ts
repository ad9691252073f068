/** Answers what an agent asks a person before it uses a tool: at once, by the permissions of the agent, because an open question would hang the run. Pure. */
import { resolve, sep } from "node:path";
import {
  isObject,
  type JsonMembers,
  listOf,
  membersAt,
  textOf,
} from "../../agents/stream/json-values.ts";
import type { Permissions } from "../../core/settings.ts";

/** The kinds of tools of the protocol that each mode allows. */
const KINDS: Readonly<Record<Permissions["mode"], readonly string[] | "all">> = {
  read: ["read", "search", "think"],
  edit: ["read", "search", "think", "edit", "delete", "move", "execute"],
  full: "all",
};

export interface PermissionAnswer {
  outcome: { outcome: "selected"; optionId: string } | { outcome: "cancelled" };
  /** The tool that is not allowed. */
  denied?: string;
}

/** @param params of `session/request_permission` @param cwd where the agent may change files */
export function answerPermission(
  params: JsonMembers,
  { mode, allow = [] }: Permissions = { mode: "edit" },
  cwd: string,
): PermissionAnswer {
  const call = membersAt(params, "toolCall");
  const name = nameOf(call);
  const isAllowed = mayUse(call, { mode, allow }) && (mode === "full" || isInside(call, cwd));
  const option = optionOf(params, isAllowed ? "allow" : "reject");
  // Without a fitting option the turn is cancelled, which also is no permission.
  const outcome =
    option === undefined
      ? { outcome: "cancelled" as const }
      : { outcome: "selected" as const, optionId: option };
  return isAllowed && option !== undefined ? { outcome } : { outcome, denied: name };
}

const nameOf = (call: JsonMembers): string =>
  textOf(call["name"]) || textOf(call["kind"]) || textOf(call["title"]) || "a tool";

function mayUse(call: JsonMembers, { mode, allow = [] }: Permissions): boolean {
  const kinds = KINDS[mode];
  const kind = textOf(call["kind"]);
  const named = [kind, textOf(call["name"]), textOf(call["title"])];
  return kinds === "all" || kinds.includes(kind) || allow.some((one) => named.includes(one));
}

/** Why a program that has used a tool without asking is not as the permissions want it; undefined: it may. */
export function explainUnasked(
  call: JsonMembers,
  permissions: Permissions = { mode: "edit" },
): string | undefined {
  const isChange = KINDS.edit.includes(textOf(call["kind"]));
  if (!isChange || mayUse(call, permissions)) return undefined;
  return `it has used ${nameOf(call)} without asking, and its permissions are ${permissions.mode}: make it ask in its own settings, see docs/agents.md`;
}

/** The option for this one time, else the one for good. */
function optionOf(params: JsonMembers, is: "allow" | "reject"): string | undefined {
  const options = listOf(params["options"]).filter(isObject);
  const found = [`${is}_once`, `${is}_always`]
    .map((kind) => options.find((one) => one["kind"] === kind))
    .find((one) => one !== undefined);
  return found === undefined ? undefined : textOf(found["optionId"]);
}

/** Whether all files that a call names are in the folder of the run. */
function isInside(call: JsonMembers, cwd: string): boolean {
  const root = cwd.endsWith(sep) ? cwd : cwd + sep;
  return listOf(call["locations"])
    .filter(isObject)
    .map((one) => resolve(cwd, textOf(one["path"])))
    .every((path) => path === cwd || path.startsWith(root));
}
