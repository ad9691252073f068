/** Reads members of JSON that another program wrote. A member of another type than expected counts as missing. */
import { isObject } from "../../core/json-object.ts";

export type Json = Record<string, unknown>;

export const objectAt = (from: Json, key: string): Json | undefined => {
  const value = from[key];
  return isObject(value) ? value : undefined;
};

export const textAt = (from: Json, key: string): string | undefined => {
  const value = from[key];
  return typeof value === "string" ? value : undefined;
};

export const numberAt = (from: Json, key: string): number | undefined => {
  const value = from[key];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
};

/** The objects of a list. */
export const objectsAt = (from: Json, key: string): Json[] => {
  const value = from[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
};

/** The texts of a list; undefined when there is no list. */
export const textsAt = (from: Json, key: string): string[] | undefined => {
  const value = from[key];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : undefined;
};
