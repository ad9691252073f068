/** The only file that imports the schema library. */
export {
  type SchemaOptions,
  type Static,
  type TOptional,
  type TProperties,
  type TSchema,
  Type,
} from "@sinclair/typebox";
export { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
export { Value } from "@sinclair/typebox/value";
