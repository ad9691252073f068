/** Plain values as YAML on one line, as a person would write them: `{ id: a, exec: [npm, test] }`. Pure. */

const PLAIN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
/** Words that YAML, or YAML of old, takes for something else than text. */
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
/** Beyond what JSON escapes: control characters, line separators, byte order marks, halves of pairs. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]|\p{Surrogate}/gu;

/** @throws TypeError for what has no YAML: functions, symbols, circles */
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
