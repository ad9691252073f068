/** Makes text safe to stand in HTML, in an element or in an attribute with quotes. */
import { safe } from "./render.ts";

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function html(text: string): string {
  return safe(text).replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);
}
