/** `schema`: the JSON Schema of a file format, for editors and other programs. */
import { SCHEMAS, type SchemaName, schemaDocument } from "../../config/schemas.ts";
import { suggest } from "../../core/suggest.ts";
import { defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";

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
    if (!isName(name)) {
      const near = suggest(name, Object.keys(SCHEMAS));
      throw new ErrUsage(
        `there is no schema ${JSON.stringify(name)}`,
        near === undefined
          ? `known are: ${Object.keys(SCHEMAS).join(", ")}`
          : `did you mean "${near}"?`,
      );
    }
    const schema = await schemaDocument(name);
    if (ctx.json) ctx.out.json(schema);
    else ctx.out.line(JSON.stringify(schema, null, 2));
    return EXIT.ok;
  },
});

function isName(name: string): name is SchemaName {
  return Object.hasOwn(SCHEMAS, name);
}
