/** A YAML text in, its nodes out. The one place where YAML is parsed: what nests without end must not come to the library. */
import {
  Composer,
  type Document,
  type DocumentOptions,
  LineCounter,
  type ParseOptions,
  Parser,
  parseDocument,
  type SchemaOptions,
  YAMLParseError,
} from "yaml";
import { YAML_DEPTH_MAX } from "../core/limits.ts";

type YamlOptions = Pick<DocumentOptions & ParseOptions & SchemaOptions, "merge"> & {
  /** Learns where lines begin. */
  lineCounter?: LineCounter;
};

/**
 * The first document of a text; `errors` tells all that is wrong, and of a repeated key nothing: see `findRepeatedKeys`.
 * What is nested deeper than `YAML_DEPTH_MAX` is not read at all. The library reads nested values by recursion, and does
 * catch that the stack ends; but V8 ends the whole process when it has to compile a regular expression just before.
 */
export function parseYaml(text: string, options: YamlOptions = {}): Document.Parsed {
  const lines = options.lineCounter ?? new LineCounter();
  // The library looks for repeated keys by comparing each key with each.
  const all = {
    ...options,
    uniqueKeys: false,
    strict: true,
    prettyErrors: false,
    logLevel: "error",
  } as const;
  const parser = new BoundedParser(lines.addNewLine);
  let doc: Document.Parsed | undefined;
  try {
    for (const one of new Composer(all).compose(parser.parse(text), true, text.length)) {
      if (doc !== undefined) {
        const where: [number, number] = [one.range[0], one.range[1]];
        doc.errors.push(
          new YAMLParseError(where, "MULTIPLE_DOCS", "a second document begins in this file"),
        );
        break;
      }
      doc = one as Document.Parsed;
    }
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    doc = parseDocument("", all) as Document.Parsed;
    doc.errors.push(error);
  }
  return doc as Document.Parsed;
}

/** Holds open what it is in, so that its stack is as high as the text is deep. Is not recursive itself. */
class BoundedParser extends Parser {
  override next(source: string): ReturnType<Parser["next"]> {
    if (this.stack.length > YAML_DEPTH_MAX + UNNESTED)
      throw new YAMLParseError(
        [this.offset, this.offset + source.length],
        "RESOURCE_EXHAUSTION",
        `nested deeper than ${YAML_DEPTH_MAX} levels`,
      );
    return super.next(source);
  }
}

/** The document, and a scalar that is being read. */
const UNNESTED = 2;
