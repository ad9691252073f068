/** Finds the present or last task of an agent in the scope of the state tree. Reads only. */
import { dirname } from "node:path";
import { openMailbox } from "../../../cli/shell/options.ts";
import type { RunFinder } from "../../../cli/shell/run-finder.ts";
import { readAgent } from "../agents/agents.ts";
import { runsOfAgent } from "../agents/runs-of-agent.ts";
import { findScope } from "../scope/find-scope.ts";
import { parseAddress } from "../scope/scope.ts";
import { MailFolder, storeOf } from "../store/mail-folder.ts";

export const findRuns: RunFinder = async (ctx, named) => {
  const { loaded, trays, tree } = await openMailbox(ctx, true);
  const { agents } = loaded.settings;
  const scope = await findScope(dirname(tree.dir));
  const name = parseAddress(named.replace(/^@/, ""), scope)?.name;
  if (name === undefined) return undefined;
  const folder = new MailFolder(storeOf(loaded.settings, tree.dir, ctx.env), scope);
  const record = readAgent(folder, name);
  if (record === undefined && !agents.some((one) => one.name.toLowerCase() === name))
    return undefined;
  const last = record?.task_id ?? record?.spawned?.task_id;
  return { running: runsOfAgent(trays, folder, agents, name), last };
};
