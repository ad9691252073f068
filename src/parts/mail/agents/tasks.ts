/** The to-do list of a scope, `tasks.json`. The agents plan with it. It does not hold tasks of the mailbox. */
import { ErrInvalidTransition } from "../../../core/errors.ts";
import { goodOf, having, type Is, isText, oneOf, optional, shape } from "../../../core/shape.ts";
import type { Scope } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";

export interface ScopeTask extends Scope {
  id: string;
  parent_id: string | null;
  name: string;
  sort_index: number;
  assigned_agent: string | null;
  result: string | null;
  /** Unix seconds. */
  created_at: number;
  updated_at: number;
}

export type TaskDraft = Pick<ScopeTask, "id" | "name"> &
  Partial<Omit<ScopeTask, "project" | "branch" | "created_at" | "updated_at">>;

const isTask = having({ id: isText }) as Is<Partial<ScopeTask>>;
const list = shape({ v: optional(oneOf(1)), tasks: goodOf(isTask) });
const NAME = "tasks";

/** @throws ErrInvalidTransition when there is a task with this id, a system error */
export async function createTask(
  folder: MailFolder,
  draft: TaskDraft,
  wallMs: number,
): Promise<void> {
  folder.make();
  const now = Math.floor(wallMs / 1000);
  const add = ({ tasks = [] }: { tasks?: Partial<ScopeTask>[] } = {}) => {
    if (tasks.some(({ id }) => id === draft.id))
      throw new ErrInvalidTransition(`there is a task ${JSON.stringify(draft.id)} in this scope`, {
        id: draft.id,
        phase: "create task",
        hint: "choose another id",
      });
    const task = withDefaults({ ...draft, created_at: now, updated_at: now }, folder.scope);
    return { v: 1 as const, tasks: [...tasks, task] };
  };
  await folder.documents(list).update(NAME, add, folder.path("tasks.lock"));
}

/** Sorted by `sort_index`, then in the order in which they were added. */
export function listTasks(folder: MailFolder): ScopeTask[] {
  const { tasks = [] } = folder.documents(list).read(NAME) ?? {};
  return tasks
    .map((task) => withDefaults(task, folder.scope))
    .sort((a, b) => a.sort_index - b.sort_index);
}

/** Adds the fields that records of earlier versions lack. */
function withDefaults(task: Partial<ScopeTask>, scope: Scope): ScopeTask {
  const { id = "", created_at: createdAt = 0 } = task;
  const defaults = { parent_id: null, name: id, sort_index: 0, assigned_agent: null, result: null };
  return { ...defaults, updated_at: createdAt, ...task, id, created_at: createdAt, ...scope };
}
