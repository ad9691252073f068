/** Reads the text of `git diff-tree --patch --full-index`: the hunks of each file. It reads no name: the order says which file it is. Pure. */
/** `is`: in both, new, old, or `\` for git's words about a missing line end. */
export interface DiffLine {
  is: " " | "+" | "-" | "\\";
  text: string;
}

export interface Hunk {
  /** The first line of the old and of the new file. */
  old: number;
  new: number;
  /** What git names as its surroundings, such as the head of a function. */
  near: string;
  lines: DiffLine[];
}

interface Section {
  /** The ids that git names; left out where the contents are the same. */
  ids?: [old: string, now: string];
  hunks: Hunk[];
}

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;
const MARKS = new Set(["+", "-", "\\"]);

/** @param lineMax longer lines are cut (characters) */
export function parsePatch(patch: string, lineMax: number): Section[] {
  const sections: Section[] = [];
  let hunk: Hunk | undefined;
  // How many lines of the old and the new file the hunk still has: a line of a file can look like anything.
  let [old, now] = [0, 0];
  for (const line of patch.split("\n")) {
    const section = sections.at(-1);
    if (hunk !== undefined && (old > 0 || now > 0 || line.startsWith("\\"))) {
      const first = line.charAt(0);
      // With `diff.suppressBlankEmpty` an empty line has no mark.
      const is = MARKS.has(first) ? (first as DiffLine["is"]) : " ";
      if (is === " " || is === "-") old--;
      if (is === " " || is === "+") now--;
      hunk.lines.push({ is, text: cut(line.slice(1), lineMax) });
    } else if (line.startsWith("diff --git ")) {
      sections.push({ hunks: [] });
      hunk = undefined;
    } else if (section !== undefined) {
      const [, from, fromCount = "1", to, toCount = "1", near = ""] = HEAD.exec(line) ?? [];
      const [, before, after] = /^index ([0-9a-f]+)\.\.([0-9a-f]+)/.exec(line) ?? [];
      if (before !== undefined && after !== undefined) section.ids = [before, after];
      if (from === undefined) continue;
      [old, now] = [Number(fromCount), Number(toCount)];
      hunk = { old: Number(from), new: Number(to), near: cut(near, lineMax), lines: [] };
      section.hunks.push(hunk);
    }
  }
  return sections;
}

function cut(text: string, max: number): string {
  return text.length <= max
    ? text
    : `${text.slice(0, max)}… (${text.length - max} more characters)`;
}
