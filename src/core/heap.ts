/** A binary heap with the smallest item on top. */
export class Heap<T> {
  private items: T[] = [];

  constructor(private readonly compare: (a: T, b: T) => number) {}

  get size(): number {
    return this.items.length;
  }

  peek(): T | undefined {
    return this.items[0];
  }

  push(item: T): void {
    const { items, compare } = this;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent] as T;
      if (compare(item, above) >= 0) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const { items } = this;
    const top = items[0];
    const last = items.pop();
    if (items.length > 0 && last !== undefined) this.sink(last);
    return top;
  }

  /** Drops the items that `keep` refuses, but only when the heap is at least twice as large as expected. */
  compact(keep: (item: T) => boolean, expectedSize: number): void {
    if (this.items.length < 1024 || this.items.length < 2 * expectedSize) return;
    const kept = this.items.filter(keep);
    this.items = [];
    for (const item of kept) this.push(item);
  }

  private sink(item: T): void {
    const { items, compare } = this;
    const { length } = items;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && compare(items[child + 1] as T, items[child] as T) < 0) child++;
      const below = items[child] as T;
      if (compare(item, below) <= 0) break;
      items[at] = below;
      at = child;
    }
    items[at] = item;
  }
}
