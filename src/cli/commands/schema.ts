/** `schema`: the JSON Schema of a file format, for editors and other programs. */
import type { TSchema } from "../../codec/typebox.ts";
import { suggest } from "../../core/suggest.ts";
import { defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";

const SCHEMAS: Readonly<Record<string, { what: string; load: () => Promise<TSchema> }>> = {
  task: {
    what: "a file dropped into mailbox/inbox",
    load: async () => (await import("../../codec/task-codec.ts")).TaskSchema,
  },
  result: {
    what: "outbox/<id>_result.json",
    load: async () => (await import("../../codec/record-schemas.ts")).ResultSchema,
  },
  error: {
    what: "failed/<id>_error.json",
    load: async () => (await import("../../codec/record-schemas.ts")).ErrorSchema,
  },
  results: {
    what: "a line of outbox/<id>_results.ndjson",
    load: async () => (await import("../../codec/batch-codec.ts")).LineResultSchema,
  },
  command: {
    what: "a file dropped into control/inbox",
    load: async () => (await import("../../codec/command-codec.ts")).CommandSchema,
  },
  config: {
    what: "config.yaml",
    load: async () => (await import("../../config/config-schema.ts")).ConfigSchema,
  },
};

export const command = defineCommand({
  usage: "[NAME]",
  args: { min: 0, max: 1 },
  details: [
    `Names: ${Object.entries(SCHEMAS)
      .map(([name, { what }]) => `${name} (${what})`)
      .join(", ")}. Without a name they are listed.`,
  ],
  options: {},
  async run(ctx) {
    const name = ctx.positionals[0];
    if (name === undefined) {
      if (ctx.json) ctx.out.json(Object.keys(SCHEMAS));
      else
        for (const [one, { what }] of Object.entries(SCHEMAS))
          ctx.out.line(`${one.padEnd(10)}${what}`);
      return EXIT.ok;
    }
    const entry = Object.hasOwn(SCHEMAS, name) ? SCHEMAS[name] : undefined;
    if (entry === undefined) {
      const near = suggest(name, Object.keys(SCHEMAS));
      throw new ErrUsage(
        `there is no schema ${JSON.stringify(name)}`,
        near === undefined
          ? `known are: ${Object.keys(SCHEMAS).join(", ")}`
          : `did you mean "${near}"?`,
      );
    }
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      ...(await entry.load()),
    };
    if (ctx.json) ctx.out.json(schema);
    else ctx.out.line(JSON.stringify(schema, null, 2));
    return EXIT.ok;
  },
});
