/** `metrics`: prints the numbers of a pool in the text format of Prometheus, or writes them into a file for node_exporter. */
import fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Context, defineCommand, ErrUsage, textOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { ErrIo, messageOf } from "../../core/errors.ts";
import { DEFAULT_SETTINGS } from "../../core/settings.ts";
import { writeAnew } from "../../host/regular-file.ts";
import type { Labels } from "../../view/metrics/exposition.ts";
import { MetricsReader } from "../../view/metrics/metrics-reader.ts";

/** How much of a journal that no supervisor has counted is read (bytes). This takes less than a second. */
const BYTES_MAX = 64 * 1024 * 1024;
const LABELS_MAX = 10;
/** Names that begin with two underscores are reserved for Prometheus. */
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Labels that mailchute's own numbers use. */
const OWN: ReadonlySet<string> = new Set(
  "account event gate journal kind le reason result state version window".split(" "),
);

export const command = defineCommand({
  usage: "[--textfile PATH] [--label NAME=VALUE …]",
  details: [
    "Prints the numbers of the pool as Prometheus reads them: tasks by state, counts of results, failures and retries, histograms of waits and run times, slots, questions, gates, disk, journals, quotas and costs. It works without a supervisor, too, and changes nothing in the state tree.",
    "With --textfile it replaces a file for the textfile collector of node_exporter, at once and readable for all: call it from a timer. Two trees on one machine need a --label to tell them apart. Without node_exporter: web --metrics-token-file.",
  ],
  examples: [
    "metrics",
    "metrics --textfile /var/lib/node_exporter/mailchute.prom --label tree=night",
  ],
  options: {
    textfile: textOption("PATH", "replace this file, whose name ends in .prom"),
    label: {
      type: "text",
      value: "NAME=VALUE",
      many: true,
      help: "a label for each number",
    },
  },
  async run(ctx) {
    const labels = readLabels(ctx.options.label);
    const { textfile } = ctx.options;
    if (textfile !== undefined && !textfile.endsWith(".prom"))
      throw new ErrUsage(
        `--textfile wants a name that ends in .prom, found ${JSON.stringify(textfile)}`,
        "node_exporter reads no other files",
      );
    const tree = existingTree(ctx);
    const settings = await openSettings(ctx).then(
      (loaded) => loaded.settings,
      () => DEFAULT_SETTINGS,
    );
    const reader = new MetricsReader(tree, {
      settings,
      env: ctx.env,
      bytesMax: BYTES_MAX,
      labels,
    });
    const text = reader.next(Date.now());
    reader.close();
    return await deliver(ctx as Context, text, textfile);
  },
});

async function deliver(ctx: Context, text: string, textfile: string | undefined): Promise<number> {
  if (textfile !== undefined) publish(resolve(ctx.cwd, textfile), text);
  const path = textfile ?? null;
  if (ctx.json) ctx.out.json(textfile === undefined ? { text } : { path });
  else if (textfile === undefined) await ctx.out.raw(text);
  return EXIT.ok;
}

/**
 * Replaces the file by a rename, so that a reader never sees a part of it. A crash leaves a file with another ending, which
 * node_exporter does not read and the next call of the same process id replaces.
 */
function publish(path: string, text: string): void {
  const staged = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    writeAnew(staged, text);
    // The umask does not apply to chmod. All may read the file, because node_exporter runs as another user.
    fs.chmodSync(staged, 0o644);
    fs.renameSync(staged, path);
  } catch (error) {
    fs.rmSync(staged, { force: true });
    throw new ErrIo(`cannot write ${path}: ${messageOf(error)}`, {
      path,
      phase: "publish",
      cause: error,
    });
  }
}

/** @throws ErrUsage */
function readLabels(texts: readonly string[]): Labels {
  if (texts.length > LABELS_MAX)
    throw new ErrUsage(`at most ${LABELS_MAX} labels`, "leave some --label out");
  const labels: Record<string, string> = {};
  for (const text of texts) {
    const at = text.indexOf("=");
    const name = text.slice(0, Math.max(0, at));
    if (!LABEL_NAME.test(name) || OWN.has(name) || Object.hasOwn(labels, name))
      throw new ErrUsage(
        `--label wants NAME=VALUE with a name that is free, found ${JSON.stringify(text)}`,
        "for example --label tree=night",
      );
    labels[name] = text.slice(at + 1);
  }
  return labels;
}
