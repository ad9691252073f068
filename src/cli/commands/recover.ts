/** `recover`: one recovery round by hand, for a state tree whose supervisor is gone. */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { formatName, parseName } from "../../core/names.ts";
import type { RecoverStep } from "../../mailbox/recover/recoverer.ts";
import { safe } from "../../text/render.ts";
import { defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, openMailbox } from "../shell/options.ts";

const LOOK_AGAIN_MS = 100;

export const command = defineCommand({
  usage: "[--dry-run]",
  details: [
    "Takes back tasks whose worker is dead, and finishes settlements that a dead process began. A running supervisor does this all the time; " +
      "this command beside it does no harm. Exit code 3: nothing to do.",
  ],
  options: { "dry-run": { type: "flag", help: "say what would be done, and do nothing" } },
  async run(ctx) {
    existingTree(ctx);
    const { tree, trays, loaded } = await openMailbox(ctx, ctx.options["dry-run"]);
    const { makeTaskRescue } = await import("../../supervisor/maintenance/record-recovered.ts");
    const { findRecoverable } = await import("../../mailbox/recover/find-recoverable.ts");
    const { recoverStep } = await import("../../mailbox/recover/recover.ts");
    const { Telemetry } = await import("../../journal/telemetry.ts");
    const telemetry = new Telemetry(
      { events: tree.events, leases: tree.leases },
      "recover",
      loaded.settings.lease_ttl_ms,
      trays.clock,
    );
    const scope = { tree, trays, settings: loaded.settings, telemetry };
    const recoverer = makeTaskRescue(scope, {
      onReady: () => {},
      onSettled: () => {},
      onSkipped: () => {},
      onFailed: () => {},
      onConflict: (id, recordAs) =>
        ctx.out.note(
          `another file has the name of the record of ${safe(id)}; the record is kept as ${safe(recordAs)}`,
        ),
      onUnkillable: (lease, count) =>
        ctx.out.note(`${count} processes of lease ${lease} cannot be killed`),
    });
    let steps: RecoverStep[];
    let isPending: boolean;
    do {
      const files = trays.storage.list(trays.processing);
      steps = findRecoverable(recoverer, files, loaded.settings.lease_ttl_ms);
      const dueCount = steps.filter((step) => step.kind === "finish").length;
      // Another process may be in the middle of a refusal or retry. Then its file is soon gone. Otherwise it is due in a second.
      isPending = files.filter(isHalfDone).length > dueCount;
      if (isPending) await pause(LOOK_AGAIN_MS);
    } while (isPending);
    const shown = steps.map((step) => ({ step: step.kind, ...describe(step) }));
    if (!ctx.options["dry-run"]) for (const step of steps) await recoverStep(recoverer, step);
    telemetry.close();
    if (ctx.json) ctx.out.json({ dry_run: ctx.options["dry-run"], recovered: shown });
    else
      for (const { step, id, file } of shown)
        ctx.out.line(`${step.padEnd(8)} ${safe(id)}  ${safe(join("processing", file))}`);
    if (!ctx.json && shown.length === 0) ctx.out.line("nothing to recover");
    return shown.length === 0 ? EXIT.notFound : EXIT.ok;
  },
});

/** Whether this file is an unfinished refusal or retry. Its name does not tell which process began it. */
function isHalfDone(file: string): boolean {
  const stage = parseName(file)?.stage;
  return stage === "bad" || stage === "again";
}

function describe(step: RecoverStep): { id: string; file: string } {
  if (step.kind === "foreign") return { id: step.id, file: `${step.id}.json` };
  if (step.kind === "finish") return { id: step.name.id, file: formatName(step.name) };
  return { id: step.claim.name.id, file: step.claim.file };
}
