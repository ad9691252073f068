/**
 * Finds keys that a YAML map has twice. The library can do this too, but it compares each key with each other key: that takes
 * seconds for ten thousand keys in one map, and minutes for a hundred thousand.
 */
import { isMap, isPair, isScalar, isSeq, type Node, type Pair } from "yaml";

/** The offsets of repeated keys, in the order of the text. Aliases are not followed. */
export function findRepeatedKeys(root: Node | null): number[] {
  const found: number[] = [];
  const waiting: unknown[] = [root];
  // A loop instead of recursion, so that deep nesting cannot overflow the stack.
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
