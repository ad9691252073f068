/** Lists the parts that read logs of runs at other machines, for the command `logs`. The first one is used. */
import type { OpenRemoteLog } from "../cli/shell/remote-log.ts";
import { openRemoteLog } from "../parts/cluster/verbs/remote-log.ts";

export const REMOTE_LOGS: readonly OpenRemoteLog[] = [openRemoteLog];
