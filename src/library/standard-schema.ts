/** The interface that Zod, Valibot, ArkType and others share, version 1 (https://standardschema.dev). Types only. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
    /** What the schema takes and gives; only the compiler reads it. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type Result<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of values that a caller may pass. */
export type InputOf<Schema extends StandardSchemaV1> = NonNullable<
  Schema["~standard"]["types"]
>["input"];

/** The type of values that a check returns. */
export type OutputOf<Schema extends StandardSchemaV1> = NonNullable<
  Schema["~standard"]["types"]
>["output"];

/** How many faults are named. */
const NAMED_MAX = 5;

/** Checks a value. @returns the value that the schema returns, or a text that says what is wrong */
export async function checkBy<Schema extends StandardSchemaV1>(
  schema: Schema,
  value: unknown,
): Promise<{ value: OutputOf<Schema> } | { fault: string }> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { value: result.value as OutputOf<Schema> };
  const named = result.issues.slice(0, NAMED_MAX).map(textOf);
  const more = result.issues.length - named.length;
  return { fault: [...named, ...(more > 0 ? [`and ${more} more`] : [])].join("; ") };
}

function textOf({ message, path = [] }: Issue): string {
  const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
  return keys.length === 0 ? message : `${keys.join(".")}: ${message}`;
}
