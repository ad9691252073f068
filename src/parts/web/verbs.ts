/** What a page may change: the verbs of the command line, and the arguments that each may get from a page. Pure. */
import { compileCheck, optional } from "../../codec/schema.ts";
import { type TProperties, Type } from "../../codec/typebox.ts";
import { LISTED_STATES, type ListedState } from "../../view/page-of-tasks.ts";
import type { Line } from "./run-verb.ts";

/** The names of verbs in a request. `requeue` stops a run and puts its task back; the two others with a hyphen land what waits for a person. */
export type Verb =
  | "retry"
  | "cancel"
  | "requeue"
  | "pause"
  | "resume"
  | "workers"
  | "answer"
  | "land"
  | "land-unreviewed"
  | "land-protected"
  | "reject";

/** Asks for all tasks of a list, some in each request. */
export interface All {
  state: ListedState;
  q: string;
  /** The `next` of the answer before; left out in the first request. */
  after?: string;
}

/** What a request asks for. Its schema has checked it. */
export interface Wish {
  verb: Verb;
  ids?: string[];
  number?: number;
  text?: string;
  all?: All;
}

/** Most ids in one request. */
export const IDS_MAX = 100;
const TEXT_MAX = 16_384;
/** How long a command waits for its effect (ms). */
const EFFECT_MS = 5000;
const WAIT = { wait: true, timeout: EFFECT_MS };

const Id = Type.String({ pattern: "^[^\\u0000-\\u001f]+$", maxLength: 256 });
const One = Type.Array(Id, { minItems: 1, maxItems: 1 });
const Ids = Type.Array(Id, { minItems: 1, maxItems: IDS_MAX });
const Text = Type.String({ pattern: "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$", maxLength: TEXT_MAX });
const AllOf = Type.Object(
  {
    state: Type.Union(LISTED_STATES.map((state) => Type.Literal(state))),
    q: Type.String({ maxLength: 256 }),
    ...optional({ after: Type.String({ maxLength: 1024 }) }),
  },
  { additionalProperties: false },
);

interface Entry {
  /** The verb on the command line. */
  verb: string;
  needs: TProperties;
  /** True if a request may ask for all tasks of a list. */
  isForAll?: boolean;
  options?: Readonly<Record<string, unknown>>;
  /** The options for all tasks of a list, if they differ. */
  optionsForAll?: Readonly<Record<string, unknown>>;
}

const VERBS: Readonly<Record<Verb, Entry>> = {
  retry: { verb: "retry", needs: { ids: Ids }, isForAll: true },
  cancel: { verb: "cancel", needs: { ids: Ids }, isForAll: true, options: WAIT, optionsForAll: {} },
  requeue: {
    verb: "cancel",
    needs: { ids: Ids },
    isForAll: true,
    options: { ...WAIT, requeue: true },
    optionsForAll: { requeue: true },
  },
  pause: { verb: "pause", needs: {}, options: WAIT },
  resume: { verb: "resume", needs: {}, options: WAIT },
  workers: {
    verb: "set-workers",
    needs: { number: Type.Integer({ minimum: 0, maximum: 9999 }) },
    options: WAIT,
  },
  answer: { verb: "answer", needs: { ids: One, text: Text } },
  land: { verb: "land", needs: { ids: One } },
  "land-unreviewed": { verb: "land", needs: { ids: One }, options: { "no-review": true } },
  "land-protected": { verb: "land", needs: { ids: One }, options: { "accept-protected": true } },
  reject: { verb: "reject", needs: { ids: One, text: Text } },
};

const checks = new Map(
  Object.entries(VERBS).flatMap(([name, { needs, isForAll }]) => {
    const check = (fields: TProperties) =>
      compileCheck(
        Type.Object({ verb: Type.Literal(name), ...fields }, { additionalProperties: false }),
      );
    const all = isForAll === true ? [[`${name} all`, check({ all: AllOf })] as const] : [];
    return [[name, check(needs)] as const, ...all];
  }),
);

/** @returns the wish, or a text that says what is wrong with the body */
export function readWish(body: string): Wish | string {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return "the body is not JSON";
  }
  const { verb, all } = (value ?? {}) as { verb?: unknown; all?: unknown };
  const check = checks.get(all === undefined ? String(verb) : `${String(verb)} all`);
  if (check === undefined) return "there is no such action";
  const fault = check(value);
  return fault === undefined ? (value as Wish) : fault.message;
}

/** @param some ids of a list, in place of those of the wish */
export function lineOf({ verb: name, ids = [], number, text }: Wish, some?: string[]): Line {
  const { verb, options = {}, optionsForAll = options } = VERBS[name];
  const words = [
    ...(number === undefined ? [] : [String(number)]),
    ...(text === undefined ? [] : [text]),
  ];
  return {
    verb,
    positionals: [...(some ?? ids), ...words],
    options: some === undefined ? options : optionsForAll,
  };
}
