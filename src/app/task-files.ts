/** Lists the parts that make tasks of files in forms of their own. */
import type { TaskFile } from "../cli/enqueue/task-file.ts";
import { listFile } from "../parts/list/enqueue-list.ts";

export const TASK_FILES: readonly TaskFile[] = [listFile];
