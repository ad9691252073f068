/** Journals as crashes, other writers and people leave them: which records must be read, and how many lines are none. */
export interface JournalCase {
  group: string;
  title: string;
  content: Buffer;
  /** The member `n` of each record, in order. */
  records: unknown[];
  bad: number;
}

const LINE = (n: unknown): string => `{"n":${JSON.stringify(n)}}\n`;
const nul = (count: number): string => "\0".repeat(count);
const KIB = 1024;
const MIB = KIB * KIB;

type Row = readonly [title: string, content: string | Buffer, records: unknown[], bad: number];

function texts(group: string, rows: readonly Row[]): JournalCase[] {
  return rows.map(([title, content, records, bad]) => ({
    group,
    title,
    content: typeof content === "string" ? Buffer.from(content) : content,
    records,
    bad,
  }));
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export const JOURNAL_CASES: readonly JournalCase[] = [
  ...texts("torn", [
    ["at the first byte", `${LINE(1)}{\n${LINE(2)}`, [1, 2], 1],
    ["in a key", `${LINE(1)}{"ev\n${LINE(2)}`, [1, 2], 1],
    ["in a number", `${LINE(1)}{"n":\n${LINE(2)}`, [1, 2], 1],
    ["before the end", `${LINE(1)}{"n":9\n${LINE(2)}`, [1, 2], 1],
    [
      "each second line",
      upTo(50)
        .map((n) => `${LINE(n)}{"n":1`)
        .join("\n")
        .concat("\n"),
      upTo(50),
      50,
    ],
    ["and glued to the next", `${LINE(1)}{"n":9{"n":8}\n${LINE(2)}`, [1, 2], 1],
    ["its beginning lost", `:1}\n${LINE(2)}`, [2], 1],
    [
      "in a character",
      Buffer.concat([
        Buffer.from(`${LINE(1)}{"n":"`),
        Buffer.from([0xf0, 0x9f]),
        Buffer.from(`\n${LINE(2)}`),
      ]),
      [1, 2],
      1,
    ],
    ["a whole line cut off at the front by a rotation", `${LINE("x").slice(3)}${LINE(1)}`, [1], 1],
    ["two records in one line", `{"n":1}{"n":2}\n${LINE(3)}`, [3], 1],
  ]),
  ...texts("NUL bytes", [
    ["a tail of them", `${LINE(1)}${nul(4096)}`, [1], 0],
    ["in front of a record", `${LINE(1)}${nul(512)}${LINE(2)}`, [1, 2], 0],
    ["in the middle of a record", `${LINE(1)}{"n":${nul(3)}2}\n`, [1, 2], 0],
    ["a line of them", `${LINE(1)}${nul(100)}\n${LINE(2)}`, [1, 2], 0],
    ["in place of half a record", `${LINE(1)}{"n":${nul(50)}\n${LINE(2)}`, [1, 2], 1],
    ["nothing else", nul(64 * KIB), [], 0],
    ["a megabyte, and a record", `${nul(MIB - 1)}\n${LINE(1)}`, [1], 0],
  ]),
  ...texts("rubbish", [
    ["words", `${LINE(1)}starting up...\nOK\n${LINE(2)}`, [1, 2], 2],
    ["values that are no objects", `null\ntrue\n1\n"x"\n[]\n[{"n":1}]\n${LINE(1)}`, [1], 6],
    ["other dialects", `{n:1}\n{'n':1}\n{"n":1,}\n{"n":NaN}\n// x\n${LINE(1)}`, [1], 5],
    ["the mark of a merge", `<<<<<<< a\n${LINE(1)}=======\n${LINE(2)}>>>>>>> b\n`, [1, 2], 3],
    ["bytes", Buffer.concat([Buffer.from([0xff, 0xfe, 0x80, 0x0a]), Buffer.from(LINE(1))]), [1], 1],
    ["commas between records", `{"n":1},\n{"n":2},\n${LINE(3)}`, [3], 2],
    ["a pretty printed record", `${JSON.stringify({ n: 1 }, undefined, 2)}\n${LINE(2)}`, [2], 3],
    ["control characters", `\u001b[2J\n\u0007\n${LINE(1)}`, [1], 2],
  ]),
  ...texts("bytes", [
    ["line ends of Windows", '{"n":1}\r\n{"n":2}\r\n', [1, 2], 0],
    ["line ends of an old Mac", '{"n":1}\r{"n":2}\r\n', [], 1],
    ["a byte order mark", `\ufeff${LINE(1)}${LINE(2)}`, [2], 1],
    ["UTF-16", Buffer.from(LINE(1), "utf16le"), [1], 0],
    ["a separator that is no line end", '{"n":"a\u2028b"}\n', ["a\u2028b"], 0],
    ["an escaped NUL", '{"n":"a\\u0000b"}\n', ["a\u0000b"], 0],
    ["a lone surrogate", '{"n":"\\ud800"}\n', ["\ud800"], 0],
    ["spaces around", `  {"n":1}\t\n${LINE(2)}`, [1, 2], 0],
    [
      "emoji across the pieces it is read in",
      upTo(9000)
        .map((n) => `{"n":${n},"x":"${"😀".repeat(n % 7)}"}\n`)
        .join(""),
      upTo(9000),
      0,
    ],
  ]),
  ...texts("keys and nesting", [
    ["a key twice", '{"n":1,"n":2}\n', [2], 0],
    ["__proto__", '{"__proto__":{"n":5},"n":1}\n', [1], 0],
    ["__proto__ alone", '{"__proto__":{"n":5}}\n', [undefined], 0],
    ["1,000 deep", `{"n":1,"x":${"[".repeat(1000)}${"]".repeat(1000)}}\n${LINE(2)}`, [1, 2], 0],
    [
      "10,000 deep, which nobody could write again",
      `{"n":1,"x":${"[".repeat(10_000)}${"]".repeat(10_000)}}\n${LINE(2)}`,
      [2],
      1,
    ],
    ["100,000 deep, never closed", `${"[".repeat(100_000)}\n${LINE(2)}`, [2], 1],
    ["an empty object", `{}\n${LINE(2)}`, [undefined, 2], 0],
  ]),
  ...texts("long lines", [
    ["of 900 KiB", `{"n":1,"x":"${"x".repeat(900 * KIB)}"}\n${LINE(2)}`, [1, 2], 0],
    ["of 9 MiB that are no record", `${LINE(1)}${"x".repeat(9 * MIB)}\n${LINE(2)}`, [1, 2], 1],
    [
      "of 9 MiB whose end looks like one",
      `${LINE(1)}${"x".repeat(9 * MIB)}{"n":9}\n${LINE(2)}`,
      [1, 2],
      1,
    ],
    ["two of them", `${"x".repeat(5 * MIB)}\n${"y".repeat(5 * MIB)}\n${LINE(2)}`, [2], 2],
    ["of 9 MiB and no end", `${LINE(1)}${"x".repeat(9 * MIB)}`, [1], 1],
  ]),
];
