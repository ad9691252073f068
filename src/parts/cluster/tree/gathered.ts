/** Carries out all requests of one turn of the event loop together, so that one listing, one write and one sync serve all. */

export class Gathered<Item, Answer> {
  private next: { items: Item[]; answer: Promise<Answer> } | undefined;

  constructor(private readonly act: (items: readonly Item[]) => Promise<Answer>) {}

  /** @returns the answer to all requests of this turn */
  add(item: Item): Promise<Answer> {
    this.next ??= this.begin();
    this.next.items.push(item);
    return this.next.answer;
  }

  private begin(): { items: Item[]; answer: Promise<Answer> } {
    const items: Item[] = [];
    const turn = new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    const answer = turn.then(() => {
      this.next = undefined;
      return this.act(items);
    });
    return { items, answer };
  }
}
