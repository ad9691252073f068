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
import { YAML_DEPTH_MAX, YAML_PARTS_MAX } from "../core/limits.ts";

type YamlOptions = Pick<DocumentOptions & ParseOptions & SchemaOptions, "merge"> & {
  /** Learns where lines begin. */
  lineCounter?: LineCounter;
};

/**
 * The first document of a text; `errors` tells all that is wrong, and of a repeated key nothing: see `findRepeatedKeys`.
 * What would end the process is not read at all. Nested deeper than `YAML_DEPTH_MAX`: the library reads by recursion, and does
 * catch that the stack ends; but V8 gives up when it has to compile a regular expression just before. More than
 * `YAML_PARTS_MAX` parts: each costs memory, two bytes of text half a kilobyte and more.
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
  const { stackTraceLimit } = Error;
  // There may be as many errors as parts, and where the library found them is not used.
  Error.stackTraceLimit = 0;
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
    doc = parseDocument("", { ...all, lineCounter: new LineCounter() }) as Document.Parsed;
    doc.errors.push(error);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return doc as Document.Parsed;
}

/** Holds open what it is in, so that its stack is as high as the text is deep. Is not recursive itself. */
class BoundedParser extends Parser {
  private partCount = 0;

  override next(source: string): ReturnType<Parser["next"]> {
    this.partCount++;
    if (this.stack.length > YAML_DEPTH_MAX + UNNESTED)
      throw this.tooMuch(source, `nested deeper than ${YAML_DEPTH_MAX} levels`);
    if (this.partCount > YAML_PARTS_MAX)
      throw this.tooMuch(source, `more than ${YAML_PARTS_MAX} keys, values, marks and spaces`);
    return super.next(source);
  }

  private tooMuch(source: string, message: string): YAMLParseError {
    const where: [number, number] = [this.offset, this.offset + source.length];
    return new YAMLParseError(where, "RESOURCE_EXHAUSTION", message);
  }
}

/** The document, and a scalar that is being read. */
const UNNESTED = 2;
