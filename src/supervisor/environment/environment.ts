/** The environment of every service of a supervisor. It is made once, before any service. */
import { EventEmitter } from "node:events";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { Alerts, SpokenAlerts } from "../../journal/alerts.ts";
import { SilentTelemetry, Telemetry } from "../../journal/telemetry.ts";
import type { MakeFollow } from "../../mailbox/files/trays.ts";
import {
  checkStateDir,
  makeStateDir,
  openTrays,
  type Trays,
  traysAt,
  viewTrays,
} from "../../mailbox/files/trays.ts";
import { checkFormat } from "../../mailbox/files/tree-format.ts";
import type { FactMap, Facts } from "./facts.ts";
import type { SupervisorOptions } from "./options.ts";

/** The eight objects that no service makes for itself. A service that needs only a few of them names those (`Pick`). */
export interface Environment {
  readonly tree: StateTree;
  /** With `mailbox_enabled` false the task mailbox is not touched, and only commands are taken. */
  readonly settings: Settings;
  /** Uses the storage and the clock of all services. */
  readonly trays: Trays;
  readonly controlTrays: Trays;
  readonly telemetry: Telemetry;
  readonly alerts: Alerts;
  readonly facts: Facts;
  /** Makes a tick due. */
  readonly wake: () => void;
}

/**
 * Opens the state tree. A dry run makes no file, and reports to people only. With `once` there is one exception for old trees: a
 * missing `control/` is made.
 * @throws ErrMailboxDir when the state tree cannot be used
 */
export function openEnvironment(
  options: SupervisorOptions,
  wake: () => void,
  makeFollow?: MakeFollow,
): Environment {
  const { tree, settings } = options;
  const { durability, uids, mailbox_enabled: isOn } = settings;
  const { dryRun: isDryRun = false, once: isOnePass = false } = options;
  if (!isDryRun) makeStateDir(tree.dir);
  checkStateDir(tree.dir, uids);
  checkFormat(tree.dir);
  const open = isDryRun ? viewTrays : openTrays;
  const trays = (isOn ? open : traysAt)(tree.mailbox, { durability, uids });
  const { clock, storage } = trays;
  const isMended = isOnePass && storage.look(trays.inbox) !== undefined;
  const controlTrays = (isMended ? openTrays : open)(tree.control, { durability, uids });
  const journals = { events: tree.events, leases: tree.leases };
  const onNotice = (notice: string): void => options.onNotice?.(notice);
  const OpenTelemetry = isDryRun ? SilentTelemetry : Telemetry;
  const OpenAlerts = isDryRun ? SpokenAlerts : Alerts;
  const alerts = new OpenAlerts(tree.alerts, clock, onNotice);
  const tell = (message: string): void => alerts.alert("callback", message);
  if (makeFollow !== undefined)
    trays.follow = makeFollow({ trays, runs: tree.runs, settings, tell });
  return {
    tree,
    settings,
    trays,
    controlTrays,
    telemetry: new OpenTelemetry(journals, "supervisor", settings.lease_ttl_ms, clock),
    alerts,
    facts: new EventEmitter<FactMap>(),
    wake,
  };
}
