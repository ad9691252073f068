/** Answers from the record of an earlier run, in place of the services: each path has a list of answers, which come in their order. */
import { textOf } from "../../agents/stream/json-values.ts";
import { ErrInvalidConfig, messageOf } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { NAMED, readRegularText } from "../../host/regular-file.ts";

export interface Recorded {
  status: number;
  contentType: string;
  answer: string;
}

/** A record is never larger than this (bytes). */
const BYTES_MAX = 512 * 1024 * 1024;

export class Replay {
  private readonly byPath = new Map<string, Recorded[]>();

  /** @param path of a `requests.jsonl` with bodies. @throws ErrInvalidConfig when it cannot be read, or has no answers */
  constructor(path: string) {
    let text: string;
    try {
      text = readRegularText(path, { ...NAMED, bytesMax: BYTES_MAX });
    } catch (error) {
      throw new ErrInvalidConfig(`meter.replay: cannot read ${path}: ${messageOf(error)}`);
    }
    for (const line of text.split("\n")) this.add(parseObject(line));
    if (this.byPath.size === 0)
      throw new ErrInvalidConfig(
        `meter.replay: ${path} has no answers: record a run with meter: {record: true}`,
      );
  }

  private add(record: Record<string, unknown> | undefined): void {
    const { answer, content_type: contentType, path, status } = record ?? {};
    if (typeof answer !== "string" || typeof path !== "string" || typeof status !== "number")
      return;
    const list = this.byPath.get(path) ?? [];
    list.push({ status, contentType: textOf(contentType), answer });
    this.byPath.set(path, list);
  }

  /** Undefined when the record has no further answer to this path. */
  next(path: string): Recorded | undefined {
    return this.byPath.get(path)?.shift();
  }
}
