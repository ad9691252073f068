/** Lists the parts that turn files of other formats into tasks. */
import type { TaskFile } from "../cli/enqueue/task-file.ts";
import { listFile } from "../parts/list/enqueue-list.ts";

export const TASK_FILES: readonly TaskFile[] = [listFile];
