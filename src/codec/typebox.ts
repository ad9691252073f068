/**
 * The schema library, at the one place where it comes in: the build makes one file of its two hundred, which were more
 * than half of what a worker process took to start.
 */
export { type Static, type TSchema, Type } from "@sinclair/typebox";
export { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
export { Value } from "@sinclair/typebox/value";
