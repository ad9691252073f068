/** Spawns an agent when a run asks for one. The agent of the run counts as the one who spawns it. */
import { compileCheck, optional, shorten } from "../../../codec/schema.ts";
import { Type } from "../../../codec/typebox.ts";
import { compact } from "../../../core/compact.ts";
import { ErrInvalidConfig, ErrInvalidMessage } from "../../../core/errors.ts";
import { type AgentSettings, isCoding } from "../../../core/settings.ts";
import { suggest } from "../../../core/suggest.ts";
import type { RequestPlace, RunRequest } from "../../../worker/request-taker.ts";
import { spawnAgent } from "../agents/spawn.ts";
import type { RunSender } from "./run-sender.ts";

const Text = Type.String({ minLength: 1, maxLength: 4096 });
const check = compileCheck(
  Type.Object(
    {
      spawn: Text,
      content: Type.String({ minLength: 1, pattern: "\\S" }),
      ...optional({
        from_agent: Text,
        name: Text,
        context: Type.String({ minLength: 1 }),
        files: Type.Array(Text, { maxItems: 100 }),
        cwd: Text,
      }),
    },
    { $id: "spawn", title: "a request to spawn an agent", additionalProperties: true },
  ),
);

/** The body of the run's request. */
interface SpawnBody {
  spawn: string;
  content: string;
  from_agent?: string;
  name?: string;
  context?: string;
  files?: string[];
  cwd?: string;
}

/** @throws ErrInvalidMessage, ErrInvalidConfig, ErrInvalidTransition, a system error */
export async function takeSpawn(
  { settings, trays, tree }: RequestPlace,
  { id, sender: { lease, taskId } }: RunRequest,
  { folder, hops, name: by }: RunSender,
  fields: Record<string, unknown>,
): Promise<object> {
  const fault = check(fields);
  if (fault !== undefined)
    throw new ErrInvalidMessage(fault.message, {
      id,
      phase: "spawn",
      hint: "see docs/messages.md",
      found: fault.found,
    });
  const {
    content: text,
    from_agent: from = by,
    spawn: kind,
    ...more
  } = fields as unknown as SpawnBody;
  if (from.toLowerCase() !== by)
    throw new ErrInvalidMessage(`this run cannot spawn as ${shorten(from)}: it is a run of ${by}`, {
      id,
      phase: "spawn",
      hint: "leave out from_agent",
    });
  const { context, cwd, files, name } = more;
  const { agent, isNew } = await spawnAgent(
    {
      folder,
      settings,
      stateDir: tree.dir,
      trays,
    },
    {
      request: `${taskId}@${lease}/${id}`,
      by,
      agent: agentToSpawn(settings.agents, kind),
      ...compact({ context, cwd, files, name }),
      text,
      hops,
      sender: taskId,
    },
    Date.now(),
  );
  return { name: agent.name, task_id: agent.spawned?.task_id, is_new: isNew };
}

/**
 * The settings for a spawned agent: those of the coding agent with this name, or else of the default or first agent of this kind.
 * @throws ErrInvalidConfig
 */
export function agentToSpawn(agents: readonly AgentSettings[], named: string): AgentSettings {
  const isNamed = ({ name }: AgentSettings): boolean => name.toLowerCase() === named.toLowerCase();
  const coding = agents.filter(isCoding);
  const ofKind = coding.filter(({ kind }) => kind === named);
  const found = coding.find(isNamed) ?? ofKind.find((one) => one.default === true) ?? ofKind[0];
  if (found !== undefined) return found;
  const other = agents.find(isNamed);
  if (other !== undefined)
    throw new ErrInvalidConfig(`${other.name} is of kind ${other.kind}, and no coding agent`, {
      phase: "spawn",
      hint: `give it a task: mailchute enqueue --agent ${other.name}`,
    });
  const names = coding.map(({ name }) => name);
  const near = suggest(named, names);
  const known = names.length === 0 ? "config.yaml has none" : `there is ${names.join(", ")}`;
  throw new ErrInvalidConfig(`no coding agent ${JSON.stringify(named)} is configured: ${known}`, {
    phase: "spawn",
    hint: near === undefined ? "add it to agents of config.yaml" : `did you mean ${near}?`,
  });
}
