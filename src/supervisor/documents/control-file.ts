/** The state that commands set: in memory for the supervisor, in `control.json` for workers, people and the next supervisor. */
import fs from "node:fs";
import type { LastWord, Subject } from "../../core/command.ts";
import { type ControlDocument, controlOf } from "../../core/saved-documents.ts";
import { loadDocument } from "../../host/documents.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import { setAside } from "../../host/set-aside.ts";

export class ControlFile {
  private document: ControlDocument;
  private isSaved = false;
  /** What was there at the start is no document, and was not set aside yet. */
  private isDamaged: boolean;

  /**
   * Only reads: another supervisor may own the tree.
   * @param isDurable changes survive a power cut
   * @param tell tells people what stood in the place of the file, and where it is kept
   * @throws a system error when the state cannot be read: an unknown state must not be overwritten
   */
  constructor(
    private readonly path: string,
    private readonly isDurable: boolean,
    private readonly tell: (message: string) => void,
  ) {
    const saved = loadDocument<Record<string, unknown>>(path);
    this.isDamaged =
      saved === undefined && fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    this.document = { ...controlOf(saved), slots: {} };
  }

  get current(): Readonly<ControlDocument> {
    return this.document;
  }

  /** Changes the state and saves it. The change holds in memory even if the disk is full; `save` tries again. */
  change(change: Partial<ControlDocument>): void {
    this.document = { ...this.document, ...change };
    this.isSaved = false;
    this.save();
  }

  /** Applies a command's change and notes in the same step that the command was applied. @param nonce of the command */
  apply(nonce: string, change: Partial<ControlDocument>): void {
    this.change({ ...change, applied: [...this.document.applied, nonce] });
  }

  isApplied(nonce: string): boolean {
    return this.document.applied.includes(nonce);
  }

  /** Forgets applied commands that cannot come again; saved with the next change. */
  keepApplied(isKept: (nonce: string) => boolean): void {
    this.document = { ...this.document, applied: this.document.applied.filter(isKept) };
  }

  lastWord(subject: Subject): LastWord | undefined {
    return this.document.last_words[subject];
  }

  /** Notes the last command of a subject. It is saved in one step with that command's effect, or with the next change. */
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

  /** @returns false when nothing changed */
  setSlots(slots: Record<string, number>): boolean {
    if (this.isSaved && JSON.stringify(slots) === JSON.stringify(this.document.slots)) return false;
    this.change({ slots });
    return true;
  }

  /**
   * Keeps a file that was damaged at the start beside the new one, and tells it. Only the owner of the tree may call this.
   * @throws a system error when it cannot be renamed
   */
  keepDamaged(): void {
    if (!this.isDamaged) return;
    const aside = setAside(this.path);
    this.isDamaged = false;
    if (aside === undefined) return;
    this.tell(
      `control.json was damaged and is kept as ${aside}: pause, workers and limits are those of config.yaml again; set them anew`,
    );
  }

  /** No file can replace a directory: what another program put there is kept beside the file. */
  private clearPlace(): void {
    if (fs.lstatSync(this.path, { throwIfNoEntry: false })?.isDirectory() !== true) return;
    const aside = setAside(this.path);
    if (aside === undefined) return;
    this.tell(
      `a directory was in the place of ${this.path}: it is kept as ${aside}, and pause, workers and limits are saved; remove it when you do not need it`,
    );
  }

  /** @returns false when the disk refused */
  save(): boolean {
    if (this.isSaved) return true;
    try {
      this.keepDamaged();
      replaceDocument(this.path, this.document, {
        isDurable: this.isDurable,
        beforePublish: () => this.clearPlace(),
      });
      this.isSaved = true;
    } catch {
      this.isSaved = false;
    }
    return this.isSaved;
  }
}
