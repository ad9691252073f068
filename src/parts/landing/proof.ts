/**
 * The proof of a landing: a statement in the form of in-toto that travels with the repository, under a ref of its own. It says what
 * landed, how it was checked and who accepted it. It is not signed: what it says can be tried again (`mailchute prove --again`).
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { readCostRecord } from "../../agents/cost-records.ts";
import { type CostSum, CostSums } from "../../agents/cost-sums.ts";
import { compact } from "../../core/compact.ts";
import { parseObject } from "../../core/json-object.ts";
import { runOfLease } from "../../core/names.ts";
import { costsOf, type StateTree } from "../../core/state-tree.ts";
import { deleteRefs, listRefs, unreachable } from "../../git/refs.ts";
import { atCommonDir, commitOf, type Repository } from "../../git/repository.ts";
import { askGit, gitText } from "../../git/run-git.ts";
import { readVersion } from "../../host/package.ts";
import { tryReadText } from "../../host/regular-file.ts";
import { filesOfDays } from "../../journal/daily.ts";
import { readJournal } from "../../journal/read.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { readSettled } from "../../mailbox/find/settled-record.ts";
import { type LandingOrder, stateOf } from "../../worker/landing-files.ts";
import { verdictOn } from "./ask-reviewer.ts";
import type { Checked } from "./landed-ref.ts";
import { lookAtChange } from "./protect-check.ts";
import { isRunOf } from "./why-not.ts";

const PREFIX = "refs/mailchute-proof/";
const TYPE = "https://in-toto.io/Statement/v1";
const PREDICATE = "urn:mailchute:landing:1";

export interface Proof {
  _type: typeof TYPE;
  subject: [{ name: string; digest: { gitCommit: string } }];
  predicateType: typeof PREDICATE;
  predicate: {
    mailchute: string;
    at: string;
    task: { id: string; title: string; prompt: string | null; agent: string };
    branch: { base: string; tip: string };
    /** The commit of the target on which the work was brought. */
    onto: string;
    /** The tasks whose work is part of the same change, because it was checked together. Left out for none. */
    together_with?: readonly string[];
    /** SHA-256 of what `git diff-tree -r --raw -z --no-renames --no-abbrev ONTO COMMIT` prints. */
    diff_sha256: string;
    /** Where in the repository the check runs; "" at the top. */
    directory: string;
    /** Null for work that landed unchecked. */
    check: {
      verify: string[][];
      setup: string[][];
      from: "target" | "work";
      protect: string[];
      /** The protected files that the work changes. */
      protected_changed: string[];
      /** The new files that the patterns name. */
      added: string[];
      prove?: true | string[];
      /** Whether the check was seen to fail without the work; null when that was not tried. */
      red_before: true | null;
      green_after: true;
    } | null;
    accepted_by: "person" | null;
    review: { by: string; verdict: string; text: string } | null;
    denied: string[];
    /** What the runs of the task and its repairs used, by model; empty for a program. */
    cost: Pick<CostSum, "key" | "runs" | "input_tokens" | "output_tokens" | "cost_usd_micro">[];
    /** SHA-256 of the logs of the run that did the work, by name. */
    logs: Record<string, string>;
  };
}

export function proofRefOf({ refs }: Pick<LandingOrder, "refs">): string {
  return refs.replace("refs/mailchute/", PREFIX).replace(/\/$/, "");
}

/** Writes the proof of a landing, once for each commit. @throws ErrGit, system errors */
export async function writeProof(
  repository: Repository,
  order: LandingOrder,
  facts: { tree: StateTree; trays: Trays; checked: Checked; nowMs: number },
): Promise<void> {
  const name = proofRefOf(order);
  const [before] = await listRefs(repository, name);
  const earlier = before === undefined ? undefined : await readProof(repository, name);
  if (earlier !== undefined && commitOfProof(earlier) === facts.checked.commit) return;
  const proof = await makeProof(repository, order, facts);
  const call = { ...atCommonDir(repository), input: `${JSON.stringify(proof, null, 2)}\n` };
  const blob = (await gitText(call, "hash-object", "-w", "--stdin")).trim();
  await askGit(atCommonDir(repository), "update-ref", name, blob, before?.commit ?? "");
}

async function makeProof(
  repository: Repository,
  order: LandingOrder,
  {
    tree,
    trays,
    checked,
    nowMs,
  }: { tree: StateTree; trays: Trays; checked: Checked; nowMs: number },
): Promise<Proof> {
  const { task_id, title, prompt, agent, base, target, prefix, lease, checks } = order;
  const { commit, tip, onto = base, mates } = checked;
  const { verify, setup = [] } = checks;
  const { protect = [], verify_from: from = "work", prove } = order;
  const guarded = await lookAtChange(repository, order, onto, commit);
  const state = stateOf(tree.dir, order);
  const verdict = verdictOn(tree.dir, order, tip);
  const record = readSettled(trays, task_id)?.record as { denied?: string[] } | undefined;
  return {
    _type: TYPE,
    subject: [{ name: target, digest: { gitCommit: commit } }],
    predicateType: PREDICATE,
    predicate: {
      mailchute: readVersion(),
      at: new Date(nowMs).toISOString(),
      task: { id: task_id, title, prompt, agent },
      branch: { base, tip },
      onto,
      ...(mates === undefined || mates.length === 0 ? {} : { together_with: mates }),
      diff_sha256: await diffHash(repository, onto, commit),
      directory: prefix,
      check:
        verify === undefined
          ? null
          : {
              verify,
              setup,
              from,
              protect,
              protected_changed: guarded.changed,
              added: guarded.added,
              ...compact({ prove }),
              red_before: prove === undefined ? null : true,
              green_after: true,
            },
      accepted_by: [state.accepted, state.accepted_files].includes(tip) ? "person" : null,
      review:
        verdict === undefined
          ? null
          : { by: verdict.by, verdict: verdict.verdict, text: verdict.text },
      denied: record?.denied ?? [],
      cost: await costOf(tree, task_id),
      logs: hashesOf(join(tree.runs, runOfLease(task_id, lease))),
    },
  };
}

/** Of what changes between two commits: the same on each machine and with each git. @throws ErrGit */
export async function diffHash(repository: Repository, from: string, to: string): Promise<string> {
  const args = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", from, to];
  const { out } = await askGit(atCommonDir(repository), ...args);
  return createHash("sha256").update(out).digest("hex");
}

async function costOf(tree: StateTree, id: string): Promise<Proof["predicate"]["cost"]> {
  const sums = new CostSums("model", {});
  const counts = { records: 0, bad: 0 };
  for (const file of filesOfDays(costsOf(tree)))
    for await (const line of readJournal(file, counts)) {
      const record = readCostRecord(line);
      if (record !== undefined && isRunOf(id, record.task_id)) sums.add(record);
    }
  return sums.rows().map(({ key, runs, input_tokens, output_tokens, cost_usd_micro }) => ({
    key,
    runs,
    input_tokens,
    output_tokens,
    cost_usd_micro,
  }));
}

function hashesOf(run: string): Record<string, string> {
  return Object.fromEntries(
    ["stdout.log", "stderr.log", "verify.log"].flatMap((name) => {
      const text = tryReadText(join(run, name));
      return text === undefined ? [] : [[name, createHash("sha256").update(text).digest("hex")]];
    }),
  );
}

/** Undefined when there is no such ref, or it holds no proof. */
export async function readProof(repository: Repository, ref: string): Promise<Proof | undefined> {
  const { code, out } = await askGit(
    { ...atCommonDir(repository), answers: [128] },
    "cat-file",
    "blob",
    ref,
  );
  const found = code === 0 ? parseObject(out.toString()) : undefined;
  return found?.["predicateType"] === PREDICATE ? (found as unknown as Proof) : undefined;
}

export function commitOfProof({ subject }: Proof): string {
  return String(subject?.[0]?.digest?.gitCommit ?? "");
}

/** The refs of all proofs. */
export async function listProofs(repository: Repository): Promise<string[]> {
  return (await listRefs(repository, PREFIX)).map(({ name }) => name);
}

/** Removes the proofs of commits that no branch, tag or remote has any more. @throws ErrGit */
export async function cleanProofs(repository: Repository): Promise<void> {
  for (const ref of await listRefs(repository, PREFIX)) {
    const proof = await readProof(repository, ref.name);
    if (proof === undefined) continue;
    const commit = commitOfProof(proof);
    const isGone = (await commitOf(atCommonDir(repository), commit)) === undefined;
    if (isGone || (await unreachable(repository, [commit])).length > 0)
      await deleteRefs(repository, [ref]);
  }
}
