/** `prove`: shows the proof of a landing, and tries it again on this clone. Needs no state tree. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { ErrTaskNotFound } from "../../../core/errors.ts";
import { failed, headlineOf } from "../../../core/outcome.ts";
import { makeCleanCheckout, removeCleanCheckout } from "../../../git/clean-checkout.ts";
import { atCommonDir, commitOf, openRepository, type Repository } from "../../../git/repository.ts";
import { safe } from "../../../text/render.ts";
import { cleanEnvironment } from "../clean-environment.ts";
import { commitOfProof, diffHash, listProofs, type Proof, readProof } from "../proof.ts";
import { runChecks } from "../protect-check.ts";

export const command = defineCommand({
  usage: "COMMIT|ID [--again]",
  args: { min: 1, max: 1 },
  details: [
    "Reads refs/mailchute-proof/ of the repository of the current directory, and prints what is said there of the landing of a task, or of each task whose landing made a commit. On another clone: git fetch origin 'refs/mailchute-proof/*:refs/mailchute-proof/*'.",
    "--again runs the programs of the proof: setup, verify and prove, in a clean checkout of that commit, as at the landing. Exit code 1: what the proof says is not so here. Exit code 3: there is no proof.",
  ],
  examples: ["prove fix-login", "prove HEAD --again"],
  options: {
    again: { type: "flag", help: "try it once more on this clone" },
  },
  async run(ctx) {
    const [named = ""] = ctx.positionals;
    const repository = await openRepository(ctx.cwd);
    const proofs = await findProofs(repository, named);
    if (proofs.length === 0)
      throw new ErrTaskNotFound(`no proof of ${JSON.stringify(named)} in ${repository.commonDir}`, {
        id: named,
        phase: "prove",
        hint: "fetch them: git fetch origin 'refs/mailchute-proof/*:refs/mailchute-proof/*'",
      });
    const shown: Shown[] = [];
    for (const proof of proofs) {
      const differences = ctx.options.again ? await tryAgain(ctx, repository, proof) : undefined;
      shown.push({ proof, ...(differences === undefined ? {} : { again: { differences } }) });
    }
    const [first, ...others] = shown;
    if (ctx.json) ctx.out.json({ ...first, ...(others.length === 0 ? {} : { others }) });
    else
      for (const [n, one] of shown.entries()) {
        if (n > 0) ctx.out.line("");
        print(ctx, one);
      }
    return shown.every(({ again }) => (again?.differences.length ?? 0) === 0)
      ? EXIT.ok
      : EXIT.failed;
  },
});

interface Shown {
  proof: Proof;
  again?: { differences: string[] };
}

/** The proof of a task, or those of all tasks whose landings made this commit together. */
async function findProofs(repository: Repository, named: string): Promise<Proof[]> {
  const proofs = await Promise.all(
    (await listProofs(repository)).map((ref) => readProof(repository, ref)),
  );
  const found = proofs.flatMap((proof) => proof ?? []);
  const ofTask = found.find(({ predicate }) => predicate.task?.id === named);
  if (ofTask !== undefined) return [ofTask];
  const commit = await commitOf(atCommonDir(repository), `${named}^{commit}`);
  return found.filter((proof) => commitOfProof(proof) === commit);
}

/** @returns what differs from what the proof says */
async function tryAgain(
  ctx: Pick<Context, "env">,
  repository: Repository,
  proof: Proof,
): Promise<string[]> {
  const { onto, diff_sha256: said, check, directory } = proof.predicate;
  const commit = commitOfProof(proof);
  for (const one of [commit, onto])
    if ((await commitOf(atCommonDir(repository), one)) === undefined)
      return [`the commit ${one} is not here`];
  const hash = await diffHash(repository, onto, commit);
  if (hash !== said) return [`the change is another one: its hash is ${hash}, not ${said}`];
  if (check === null) return [];
  const dir = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "mailchute-prove-"));
  try {
    const worktree = await makeCleanCheckout(repository, join(dir, "work"), commit);
    const env = cleanEnvironment(ctx.env, dir, [repository.commonDir]);
    const cwd = join(worktree.path, directory);
    const run = async (programs: readonly string[][]) => {
      for (const [program = "", ...args] of programs) {
        const more = check.from === "target" ? env : {};
        const stdio = ["ignore", 2, 2] as ("ignore" | number)[];
        const end = spawnSync(program, args, { cwd, env: { ...ctx.env, ...more }, stdio });
        const why = end.error?.message ?? `exit code ${end.status ?? end.signal}`;
        if (end.status !== 0) return failed("verify", "ErrVerify", `${program}: ${why}`);
      }
      return undefined;
    };
    const { verify, setup, protect, prove, added } = check;
    const red =
      (await run(setup)) ??
      (await runChecks(
        {
          checks: { verify, setup },
          prefix: directory,
          protect,
          ...(check.from === "target" ? { verify_from: check.from } : {}),
          ...(prove === undefined ? {} : { prove }),
        },
        repository,
        worktree,
        { from: onto, commit, guarded: { changed: [], added } },
        run,
      ));
    return red?.kind === "failed" ? [`the check fails here: ${red.message}`] : [];
  } finally {
    await removeCleanCheckout(repository, join(dir, "work"));
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

function print(ctx: Pick<Context, "out">, { proof, again }: Shown): void {
  const { predicate, subject } = proof;
  const { task, onto, check, review, accepted_by: person, denied, cost } = predicate;
  const row = (name: string, text: string): void => ctx.out.line(`${name.padEnd(11)}${safe(text)}`);
  const commands = (programs: readonly string[][]): string =>
    programs.map((argv) => argv.join(" ")).join("; ");
  row("task", `${task.id}: ${headlineOf(task.title)} (${task.agent})`);
  row(
    "landed",
    `${commitOfProof(proof).slice(0, 12)} on ${subject[0].name}, after ${onto.slice(0, 12)}`,
  );
  const { together_with: mates = [] } = predicate;
  if (mates.length > 0) row("with", mates.join(", "));
  if (check === null) row("check", "none: it landed unchecked");
  else {
    const where = check.from === "target" ? ", in a clean place" : "";
    row("check", `${commands(check.verify)} passed${where}`);
    if (check.red_before === true) row("before", "it failed without the work");
    if (check.protected_changed.length > 0)
      row("changes", `protected files: ${check.protected_changed.join(", ")}`);
  }
  if (review !== null) row("review", `${review.by}: ${review.verdict}`);
  if (person !== null) row("accepted", "by a person");
  if (denied.length > 0) row("denied", denied.join(", "));
  for (const { key, runs, cost_usd_micro: micro } of cost)
    row("cost", `${key}: ${runs} runs, $${(micro / 1e6).toFixed(2)}`);
  row("by", `mailchute ${predicate.mailchute}, ${predicate.at}; not signed`);
  if (again === undefined) return;
  for (const one of again.differences) row("again", `not the same: ${one}`);
  if (again.differences.length === 0) row("again", "the same");
}
