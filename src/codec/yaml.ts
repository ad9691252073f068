/** Parses YAML with limits. All YAML is parsed here, so that no text can overflow the library's stack or fill the memory. */
import {
  Composer,
  type Document,
  type DocumentOptions,
  isPair,
  LineCounter,
  type ParseOptions,
  Parser,
  parseDocument,
  type SchemaOptions,
  visit,
  YAMLParseError,
} from "yaml";
import { YAML_DEPTH_MAX, YAML_PARTS_MAX } from "../core/limits.ts";
import { HALF_CHARACTER, hasHalfCharacter } from "./well-formed.ts";

type YamlOptions = Pick<DocumentOptions & ParseOptions & SchemaOptions, "merge"> & {
  /** The parser fills it with the start of each line. */
  lineCounter?: LineCounter;
};

/**
 * Parses the first document of a text. `errors` holds all faults except repeated keys: see `findRepeatedKeys`.
 * Two kinds of text could end the process and are refused. The first is nested deeper than `YAML_DEPTH_MAX`: the library is
 * recursive and catches a stack overflow, but V8 aborts when it has to compile a regular expression shortly before one. The
 * second has more than `YAML_PARTS_MAX` parts: two bytes of text can need half a kilobyte of memory or more.
 */
export function parseYaml(text: string, options: YamlOptions = {}): Document.Parsed {
  const lines = options.lineCounter ?? new LineCounter();
  // `uniqueKeys` is off because the library compares each key with each other key.
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
  // There may be as many errors as parts, and their stack traces are not used.
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
  const parsed = doc as Document.Parsed;
  if (parsed.errors.length === 0) refuseHalfCharacters(parsed, text);
  return parsed;
}

/** Only an escape in double quotes can make one. */
function refuseHalfCharacters(doc: Document.Parsed, text: string): void {
  if (!/\\[uU]0{0,4}[dD][89a-fA-F]/.test(text)) return;
  visit(doc, {
    Scalar(_, { range, value }, path) {
      if (typeof value !== "string" || !hasHalfCharacter(value)) return undefined;
      const where: [number, number] = [range?.[0] ?? 0, range?.[1] ?? 0];
      const keys = path.flatMap((node) => (isPair(node) ? [String(node.key)] : []));
      const message = `${keys.join(".") || "a text"}: ${HALF_CHARACTER}`;
      doc.errors.push(new YAMLParseError(where, "BAD_SCALAR_START", message));
      return visit.BREAK;
    },
  });
}

/** A parser with limits. It is not recursive, and the size of its stack says how deep the text is nested at that place. */
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

/** Two entries of the parser's stack do not count as nesting: the document, and a scalar that is being read. */
const UNNESTED = 2;
