/** Good bytes made worse, as crashes, editors and other programs make them worse. */
import fc from "fast-check";

/** What is put in, whole: each has broken some reader of files before. */
const TOKENS = [
  "\0",
  "\0\0\0\0",
  "\ufeff",
  "\n",
  "\r\n",
  "{",
  "}",
  "[",
  "]",
  '"',
  ",",
  ":",
  "\\",
  "\\u0000",
  "\\ud800",
  "\u202e",
  "\u001b[2J",
  "null",
  "true",
  "-1",
  "1e999",
  "12345678901234567890",
  "1.5",
  '""',
  "{}",
  "[]",
  '{"__proto__":1}',
  '"__proto__":',
  '"constructor":{},',
  "../",
  "&a ",
  "*a",
  "<<: ",
  "- ",
  "  ",
  "\t",
  "#",
  "!!binary ",
  "---\n",
  "<result>",
  "</result>",
  "[".repeat(70),
  "]".repeat(70),
  "[".repeat(3000),
  '{"a":'.repeat(100),
  "x".repeat(300),
].map((token) => Buffer.from(token));

type Change = (bytes: Buffer) => Buffer;

const place = fc.nat({ max: 1_000_000 });
const short = fc.nat({ max: 40 });

/** [from, to) of `bytes`, for any two numbers. */
function span(bytes: Buffer, at: number, length: number): [number, number] {
  const from = at % (bytes.length + 1);
  return [from, Math.min(bytes.length, from + length)];
}

function spliced(bytes: Buffer, from: number, to: number, put: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(to)]);
}

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(place, short).map(
    ([at, length]): Change =>
      (b) => {
        const [from, to] = span(b, at, length);
        return spliced(b, from, to, Buffer.alloc(0));
      },
  ),
  fc.tuple(place, fc.nat({ max: 3 }), fc.constantFrom(...TOKENS)).map(
    ([at, length, token]): Change =>
      (b) => {
        const [from, to] = span(b, at, length);
        return spliced(b, from, to, token);
      },
  ),
  fc.tuple(place, fc.uint8Array({ maxLength: 4 })).map(
    ([at, put]): Change =>
      (b) => {
        const [from] = span(b, at, 0);
        return spliced(b, from, from + put.length, Buffer.from(put));
      },
  ),
  // A piece of it once more, somewhere else: keys there twice, lines glued together.
  fc.tuple(place, short, place).map(
    ([at, length, to]): Change =>
      (b) => {
        const [from, end] = span(b, at, length);
        const [into] = span(b, to, 0);
        return spliced(b, into, into, b.subarray(from, end));
      },
  ),
  // Torn; and torn with the NUL bytes that a power cut leaves.
  place.map(
    (at): Change =>
      (b) =>
        b.subarray(0, span(b, at, 0)[0]),
  ),
  fc.tuple(place, short).map(
    ([at, length]): Change =>
      (b) =>
        Buffer.concat([b.subarray(0, span(b, at, 0)[0]), Buffer.alloc(length)]),
  ),
);

/** One of the good ones with up to four changes. */
export function mutated(goods: readonly string[]): fc.Arbitrary<Buffer> {
  return fc
    .tuple(fc.constantFrom(...goods), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([good, changes]) =>
      changes.reduce<Buffer>((bytes, one) => one(bytes), Buffer.from(good)),
    );
}
