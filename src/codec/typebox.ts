/** The schema library, at the one place where it comes in. */
export { type Static, type TSchema, Type } from "@sinclair/typebox";
export { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
export { Value } from "@sinclair/typebox/value";
