/** The JSON Schemas of all files that people and programs write or read, by name. Each is loaded at its first use. */
import { type TSchema, Type } from "../codec/typebox.ts";

interface Entry {
  what: string;
  load: () => Promise<TSchema>;
}

export const SCHEMAS = {
  task: {
    what: "a file dropped into mailbox/inbox",
    load: async () => (await import("../codec/task-codec.ts")).TaskSchema,
  },
  result: {
    what: "outbox/<id>_result.json",
    load: async () => (await import("../codec/record-schemas.ts")).ResultSchema,
  },
  error: {
    what: "failed/<id>_error.json",
    load: async () => (await import("../codec/record-schemas.ts")).ErrorSchema,
  },
  results: {
    what: "a line of outbox/<id>_results.ndjson",
    load: async () => (await import("../codec/batch-codec.ts")).LineResultSchema,
  },
  command: {
    what: "a file dropped into control/inbox",
    load: async () => (await import("../codec/command-codec.ts")).CommandSchema,
  },
  config: {
    what: "config.yaml",
    load: async () => (await import("./config-schema.ts")).ConfigSchema,
  },
  roadmap: {
    what: "roadmap.yaml",
    load: async () => (await import("./roadmap-schema.ts")).RoadmapSchema,
  },
  schedule: {
    what: "schedules/<name>.yaml",
    load: async () => (await import("./schedule-schema.ts")).ScheduleSchema,
  },
} satisfies Record<string, Entry>;

export type SchemaName = keyof typeof SCHEMAS;

/** The schema as other programs read it. It adds `$schema`, because every file may name its schema for editors. */
export async function schemaDocument(name: SchemaName): Promise<Record<string, unknown>> {
  const schema = await SCHEMAS[name].load();
  const properties = { $schema: Type.Optional(Type.String()), ...(schema["properties"] as object) };
  return { $schema: "https://json-schema.org/draft/2020-12/schema", ...schema, properties };
}
