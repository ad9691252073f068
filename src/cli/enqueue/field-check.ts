/** Refuses tasks with fields that have no effect, such as misspelt ones, before they are submitted. */
import { ErrInvalidTask } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { type FieldPlace, fieldJudge } from "../../core/task-fields.ts";
import { safe } from "../../text/render.ts";
import type { EnqueueContext } from "./task-options.ts";

const NEWLINE = 0x0a;

export class FieldCheck {
  /** How many lines of a batch hold no object, and the number of the first. */
  noObjects = { count: 0, first: 0 };
  /** What was told already. */
  private readonly told = new Set<string>();

  constructor(private readonly ctx: Pick<EnqueueContext, "out" | "options">) {}

  /** Tells of allowed names once. @throws ErrInvalidTask for names without effect, unless they are allowed */
  check(fields: Readonly<Record<string, unknown>>, place: FieldPlace, where = ""): void {
    for (const { why } of fieldJudge().judge(fields, place)) {
      if (!this.ctx.options["allow-unknown"])
        throw new ErrInvalidTask(`${where}${why} (--allow-unknown passes it)`, {
          phase: "enqueue",
          hint: "it would have no effect; see the fields in docs/tasks.md",
        });
      if (this.told.has(why)) continue;
      this.told.add(why);
      this.ctx.out.note(`warning: ${safe(where + why)}`);
    }
  }

  /** Passes on the pieces of a batch, and checks its lines on the way. Lines without an object are left to the run. */
  async *lines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let rest: Buffer = Buffer.alloc(0);
    let number = 0;
    for await (const piece of source) {
      const data: Buffer = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      let from = 0;
      for (let at = data.indexOf(NEWLINE); at !== -1; at = data.indexOf(NEWLINE, from)) {
        this.checkLine(data.toString("utf8", from, at), ++number);
        from = at + 1;
      }
      rest = data.subarray(from);
      if (rest.length > TASK_BYTES_MAX) rest = Buffer.alloc(0);
      yield piece;
    }
    this.checkLine(rest.toString("utf8"), number + 1);
  }

  private checkLine(text: string, number: number): void {
    const fields = parseObject(text);
    if (fields !== undefined) this.check(fields, "line", `line ${number}: `);
    else if (text.trim() !== "" && this.noObjects.count++ === 0) this.noObjects.first = number;
  }
}
