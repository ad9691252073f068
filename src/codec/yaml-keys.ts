/**
 * Keys that a YAML map has twice. The library can look for them too, by comparing each key with each: ten thousand keys in
 * one map take it seconds, and a hundred thousand minutes.
 */
import { isMap, isPair, isScalar, isSeq, type Node, type Pair } from "yaml";

/** Offsets of keys that their map had before, in the order of the text. Aliases are not followed. */
export function findRepeatedKeys(root: Node | null): number[] {
  const found: number[] = [];
  const waiting: unknown[] = [root];
  // Not recursive: however deep it nests.
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (isPair(node)) waiting.push(node.key, node.value);
    else if (isSeq(node)) for (const item of node.items) waiting.push(item);
    else if (isMap(node)) {
      const seen = new Set<unknown>();
      for (const pair of node.items) {
        waiting.push(pair);
        const key = keyValueOf(pair);
        if (key === undefined) continue;
        if (seen.has(key.value)) found.push(key.at);
        seen.add(key.value);
      }
    }
  }
  return found.sort((a, b) => a - b);
}

function keyValueOf({ key }: Pair): { value: unknown; at: number } | undefined {
  return isScalar(key) ? { value: key.value, at: key.range?.[0] ?? 0 } : undefined;
}
