/** Writes changed lines for a terminal: each file with its hunks. Pure. */
import { type FileDiff, FOLDED, notesOn } from "../../../git/diff.ts";
import { type Paint, paint, safe } from "../../../text/render.ts";

const PAINTS: Readonly<Record<string, Paint>> = { "+": "green", "-": "red", "\\": "dim" };

/** @param command shows what is left out */
export function diffText(files: readonly FileDiff[], colour: boolean, command: string): string[] {
  return files.flatMap((file) => {
    const { path, insertions, deletions, folded, hunks } = file;
    const count = insertions === null ? "" : `  +${insertions} -${deletions}`;
    const notes = notesOn(file).map((note) => `, ${note}`);
    const head = paint(colour, "bold", safe(`${path}${notes.join("")}`)) + count;
    const why = folded === null ? [] : [`  ${FOLDED[folded]}: ${command} -- ${safe(path)}`];
    const lines = hunks.flatMap(({ old, new: now, near, lines: all }) => [
      paint(colour, "cyan", safe(`@@ ${old} → ${now} @@ ${near}`)),
      ...all.map(({ is, text }) => {
        // A tab stays one.
        const shown = `${is}${text.split("\t").map(safe).join("\t")}`;
        const how = PAINTS[is];
        return how === undefined ? shown : paint(colour, how, shown);
      }),
    ]);
    return ["", head, ...why, ...lines];
  });
}
