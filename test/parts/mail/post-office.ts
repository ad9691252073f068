/** The delivery of a supervisor on a state tree, in the process of the test: without workers, programs or ticks. */
import { EventEmitter } from "node:events";
import { type AgentSettings, DEFAULT_SETTINGS, type Settings } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { type OpenOptions, openTrays } from "../../../src/mailbox/files/trays.ts";
import { WokenAgents } from "../../../src/parts/mail/agents/woken-agents.ts";
import { Delivery } from "../../../src/parts/mail/delivery/delivery.ts";
import { PendingMail } from "../../../src/parts/mail/delivery/pending-mail.ts";
import { Exits } from "../../../src/parts/mail/exits/exits.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder, type MailStore } from "../../../src/parts/mail/store/mail-folder.ts";
import type { Environment } from "../../../src/supervisor/environment/environment.ts";

export interface PostOffice {
  env: Environment;
  store: MailStore;
  folder: MailFolder;
  /** What was alerted: kind and text. */
  alerts: string[];
  /** A look of the supervisor: what came, then the delivery. */
  look: () => Promise<void>;
  exits: Exits;
  delivery: Delivery;
}

/** The mail of these agents is in the tree, in the scope unknown:main. @param clock of the trays */
export async function openPostOffice(
  dir: string,
  names: readonly string[],
  options: Partial<OpenOptions> & { orchestrator?: string } = {},
): Promise<PostOffice> {
  const { orchestrator = "june", ...more } = options;
  const tree = stateTree(dir);
  const agents = names.map((name): AgentSettings => ({ name, kind: "claude" }) as AgentSettings);
  const settings: Settings = { ...DEFAULT_SETTINGS, durability: "process", agents };
  const trays = openTrays(tree.mailbox, { durability: "process", ...more });
  const alerts: string[] = [];
  const note = (kind: string, text: string): number => alerts.push(`${kind}: ${text}`);
  const env = {
    wake: () => {},
    tree,
    settings,
    trays,
    alerts: { alert: note, report: note, raise: note },
    facts: new EventEmitter(),
  } as unknown as Environment;
  const store = { dataDir: dir, isDurable: false, orchestrator };
  const folder = new MailFolder(store, OUTSIDE);
  const { clock } = trays;
  const woken = new WokenAgents(folder, dir, agents);
  folder.make();
  await woken.open(clock.wallMs());
  const pending = new PendingMail(folder);
  const delivery = new Delivery(env, folder, pending, woken);
  const look = async (): Promise<void> => {
    woken.look();
    await pending.look([...woken.names.keys()], clock.monotonicMs());
    await delivery.work();
  };
  return {
    env,
    store,
    folder,
    alerts,
    look,
    delivery,
    exits: new Exits(env, store, folder, new Map()),
  };
}
