/** Deliberately broken variants of the delivery of mail. A search for faults must catch every one, or it proves nothing. */
import { TaskMessages } from "../../../src/agents/stream/task-messages.ts";
import { Documents } from "../../../src/host/document-store.ts";
import { Delivery } from "../../../src/parts/mail/delivery/delivery.ts";
import type { MailOffer } from "../../../src/parts/mail/delivery/offers.ts";
import { Exits } from "../../../src/parts/mail/exits/exits.ts";
import { type RunNote, runNotes } from "../../../src/parts/mail/exits/run-notes.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import type { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import type { Environment } from "../../../src/supervisor/environment/environment.ts";

interface Self {
  folder: MailFolder;
  env: Environment;
}

/** What a method does instead. @param own what it did before */
type Instead = (own: (...args: unknown[]) => unknown, args: unknown[], self: Self) => unknown;

interface Broken {
  of: object;
  method: string;
  instead: Instead;
  /** It shows in runs, and not in what a supervisor does. */
  isOfRun?: true;
}

const nOf = ({ folder }: Self, name: unknown): number => readCursor(folder, String(name)).n;

export const BROKEN: Readonly<Record<string, Broken>> = {
  "the cursor moves as soon as an offer is made": {
    of: TaskMessages.prototype,
    method: "stateOf",
    instead: () => "read",
  },
  "an offer is made before it is written": {
    of: Delivery.prototype,
    method: "write",
    instead: (own, args) => ((args[1] as MailOffer).say === null ? undefined : own(...args)),
  },
  "a wake-up is named by how far its agent has read": {
    of: Delivery.prototype,
    method: "offer",
    instead: (own, [name, bundle, to], self) => {
      const { upto } = readCursor(self.folder, String(name));
      const { isWake, task, n } = to as MailOffer;
      return own(name, bundle, {
        isWake,
        n,
        task: isWake ? task.replace(/\d+$/, `${upto}`) : task,
      });
    },
  },
  "a failed wake-up is not recorded": {
    of: Documents.prototype,
    method: "create",
    instead: (own, args) => JSON.stringify(args[1]).includes('"failed wake-up"') || own(...args),
  },
  "a failure counts against the record that is there": {
    of: Delivery.prototype,
    method: "offerOf",
    instead: (own, args, self) => {
      const offer = own(...args);
      return offer === undefined ? undefined : { ...offer, n: nOf(self, args[0]) };
    },
  },
  "a wake-up starts its agent without a look at its mail": {
    of: TaskMessages.prototype,
    method: "isUntouched",
    isOfRun: true,
    instead: () => false,
  },
  "the note of a task goes before its exit is told": {
    of: Exits.prototype,
    method: "tell",
    instead: (own, args, self) => {
      runNotes(self.env.tree.dir).remove((args[0] as RunNote).task);
      return own(...args);
    },
  },
};

/** Breaks it in this process. @returns what mends it again */
export function breakMail(name: string): () => void {
  const broken = BROKEN[name];
  if (broken === undefined) throw new Error(`no broken variant ${name}`);
  const methods = broken.of as Record<string, (...args: unknown[]) => unknown>;
  const before = methods[broken.method];
  if (before === undefined) throw new Error(`no method ${broken.method}`);
  methods[broken.method] = function (this: Self, ...args: unknown[]) {
    return broken.instead((...own) => Reflect.apply(before, this, own), args, this);
  };
  return () => {
    methods[broken.method] = before;
  };
}
