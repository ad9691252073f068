/** What the pool was told: in memory for the supervisor, in `control.json` for workers, people and the next supervisor. */
import type { LastWord, Subject } from "../../core/command.ts";
import type { ControlDocument } from "../../core/documents.ts";
import { controlOf } from "../../core/saved-documents.ts";
import { loadDocument, replaceDocument } from "../../host/documents.ts";

export class ControlFile {
  private readonly path: string;
  private readonly isDurable: boolean;
  private document: ControlDocument;
  private isSaved = false;

  /**
   * @param isDurable what was changed survives a power cut
   * @throws a system error when what was told cannot be read: it would be replaced by what was not
   */
  constructor(path: string, isDurable: boolean) {
    this.path = path;
    this.isDurable = isDurable;
    this.document = { ...controlOf(loadDocument(path)), slots: {} };
  }

  get current(): Readonly<ControlDocument> {
    return this.document;
  }

  /** Changes and saves. In force in memory even if the disk is full; `save` tries again. */
  change(change: Partial<ControlDocument>): void {
    this.document = { ...this.document, ...change };
    this.isSaved = false;
    this.save();
  }

  /** The change that a command makes, and in the same step that it has made it. @param nonce of the command */
  apply(nonce: string, change: Partial<ControlDocument>): void {
    this.change({ ...change, applied: [...this.document.applied, nonce] });
  }

  isApplied(nonce: string): boolean {
    return this.document.applied.includes(nonce);
  }

  /** Only these commands can still be asked for again; saved with the next change. */
  keepApplied(isKept: (nonce: string) => boolean): void {
    this.document = { ...this.document, applied: this.document.applied.filter(isKept) };
  }

  lastWord(subject: Subject): LastWord | undefined {
    return this.document.last_words[subject];
  }

  /** Saved in one step with the effect of that command, or with the next change. */
  noteLastWord(subject: Subject, word: LastWord): void {
    this.document = {
      ...this.document,
      last_words: { ...this.document.last_words, [subject]: word },
    };
    this.isSaved = false;
  }

  forgetLastWords(): void {
    if (Object.keys(this.document.last_words).length > 0) this.change({ last_words: {} });
  }

  /** False when nothing changed. */
  setSlots(slots: Record<string, number>): boolean {
    if (this.isSaved && JSON.stringify(slots) === JSON.stringify(this.document.slots)) return false;
    this.change({ slots });
    return true;
  }

  /** False when the disk refused. */
  save(): boolean {
    if (this.isSaved) return true;
    try {
      replaceDocument(this.path, this.document, { isDurable: this.isDurable });
      this.isSaved = true;
    } catch {
      this.isSaved = false;
    }
    return this.isSaved;
  }
}
