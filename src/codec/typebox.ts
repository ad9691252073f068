/** The only file that imports the schema library. */
export {
  type SchemaOptions,
  type Static,
  type TLiteral,
  type TNull,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnion,
  Type,
} from "@sinclair/typebox";
export { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
export { Value } from "@sinclair/typebox/value";
