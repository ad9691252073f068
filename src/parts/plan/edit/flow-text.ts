/** Writes plain values as YAML on one line, as a person would: `{ id: a, exec: [npm, test] }`. Pure. */

const PLAIN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
/** Words that YAML 1.1 or 1.2 does not read as text. */
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
/** Characters that JSON does not escape: control characters, line separators, byte order marks, single surrogates. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]|\p{Surrogate}/gu;

/** @throws TypeError for values that YAML cannot express, such as functions and symbols */
export function renderFlow(value: unknown): string {
  if (typeof value === "string") return renderText(value);
  if (Array.isArray(value)) return `[${value.map((one) => renderFlow(one ?? null)).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).filter(([, one]) => one !== undefined);
    if (pairs.length === 0) return "{}";
    return `{ ${pairs.map(([key, one]) => `${renderText(key)}: ${renderFlow(one)}`).join(", ")} }`;
  }
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  throw new TypeError(`a ${typeof value} cannot stand in a roadmap`);
}

function renderText(text: string): string {
  if (PLAIN.test(text) && !RESERVED.test(text)) return text;
  return JSON.stringify(text).replace(
    UNPRINTABLE,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
