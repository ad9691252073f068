/** Finds the tasks of agents. It lists `processing/` once for each look, because there may be many tasks and many agents. */
import { decodeTask } from "../../../codec/task-codec.ts";
import { systemCode } from "../../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../../core/limits.ts";
import { foldId, isUnclaimed, prefixOf } from "../../../core/names.ts";
import {
  findInProcessing,
  findWaiting,
  listLive,
  type Place,
} from "../../../mailbox/find/locate.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { agentOfTask } from "../agents/name-of-run.ts";
import type { MailFolder } from "../store/mail-folder.ts";

export class AgentTasks {
  private listed: readonly Place[] | undefined;
  /** Agents of claimed tasks, by the beginning of the name in `processing/`. */
  private agentOf = new Map<string, string>();

  constructor(
    private readonly env: Pick<Environment, "settings" | "trays">,
    private readonly folder: MailFolder,
  ) {}

  /** Must be called before each look. */
  lookAgain(): void {
    this.listed = undefined;
  }

  isLive(id: string): boolean {
    return this.find(id) !== undefined;
  }

  /** True if the task runs, or will run without help from outside. */
  isActive(id: string): boolean {
    const place = this.find(id);
    return place !== undefined && place.name?.stage !== "hold";
  }

  isStillToRun(id: string): boolean {
    const place = this.find(id);
    return place !== undefined && (place.tray === "inbox" || isUnclaimed(place.name));
  }

  /** A task that this agent runs now. @param name in lower case */
  runOf(name: string): string | undefined {
    const known = new Map<string, string>();
    let found: string | undefined;
    for (const { id, name: place, path } of this.live()) {
      if (place?.stage !== "w" || place.isBatch === true) continue;
      const key = prefixOf(place);
      const agent = this.agentOf.get(key) ?? this.agentOfFile(path, id);
      if (agent === undefined) continue;
      known.set(key, agent);
      if (agent === name) found ??= id;
    }
    this.agentOf = known;
    return found;
  }

  /** An accepted task that no worker has claimed and whose id begins with `prefix`. */
  findUnclaimed(prefix: string): string | undefined {
    return this.live().find(({ id, name }) => id.startsWith(prefix) && isUnclaimed(name))?.id;
  }

  private live(): readonly Place[] {
    this.listed ??= listLive(this.env.trays);
    return this.listed;
  }

  /** Where the task is; undefined when it has ended. */
  private find(id: string): Place | undefined {
    const { trays } = this.env;
    const key = foldId(id);
    const listed = this.live().find((one) => foldId(one.id) === key && one.name?.stage !== "bad");
    // The task may have moved since the listing. It has ended only if it is nowhere now.
    return listed ?? findWaiting(trays, id) ?? findInProcessing(trays, id);
  }

  /** In lower case; undefined when the task is gone. */
  private agentOfFile(path: string, id: string): string | undefined {
    const { trays, settings } = this.env;
    try {
      const { bytes } = trays.storage.read(path, TASK_BYTES_MAX);
      const { task } = decodeTask(bytes ?? Buffer.alloc(0), id, path);
      return agentOfTask(this.folder, task, settings.agents);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return undefined;
      return "";
    }
  }
}
