/**
 * The documents of one folder, `<name>.json` each. Only mailchute writes them, so what is none of this shape is not there for readers:
 * a pipe, a directory, torn or foreign bytes. Reading waits for nothing, and what cannot be replaced is kept beside the new document.
 */
import fs from "node:fs";
import { join, sep } from "node:path";
import { systemCode } from "../core/errors.ts";
import type { Shape } from "../core/shape.ts";
import { createText, loadDocument, type ReplaceOptions, readDocument } from "./documents.ts";
import { underLock } from "./file-lock.ts";
import { listDir, listDirForSure } from "./list-dir.ts";
import { makeDirs } from "./make-dirs.ts";
import { replaceDocument } from "./replace-document.ts";
import { setAside } from "./set-aside.ts";

type Entry<T> = [name: string, document: T];

const ENDING = ".json";

interface DocumentsOptions extends Pick<ReplaceOptions, "isDurable" | "stagedAs" | "stagingDir"> {
  /** How many folders may be missing, counting the one of the documents. Default: those below the tree. */
  depth?: number;
}

export class Documents<T extends object> {
  readonly dir: string;
  private readonly depth: number;

  /**
   * @param tree is never made: a tree that was moved away or deleted must not be made again at its old place
   * @param folder below the tree, made for the first document; "" for the tree itself
   */
  constructor(
    tree: string,
    folder: string,
    private readonly shape: Shape<T>,
    private readonly options: DocumentsOptions = {},
  ) {
    this.dir = join(tree, folder);
    this.depth = options.depth ?? (folder === "" ? 0 : folder.split(sep).length);
  }

  path(name: string): string {
    return join(this.dir, `${name}${ENDING}`);
  }

  /** Undefined also when it cannot be read. */
  read(name: string): T | undefined {
    return readDocument(this.path(name), this.shape);
  }

  /** @throws a system error when it cannot be read: its content is then unknown */
  load(name: string): T | undefined {
    return loadDocument(this.path(name), this.shape);
  }

  /** Those that can be read now. */
  readAll(): Entry<T>[] {
    return entries(listDir(this.dir), (name) => this.read(name));
  }

  /** @throws a system error: then it is unknown which there are */
  loadAll(): Entry<T>[] {
    return entries(listDirForSure(this.dir), (name) => this.load(name));
  }

  /** @throws a system error */
  replace(name: string, document: T): void {
    const path = this.path(name);
    const options = this.staging();
    try {
      replaceDocument(path, document, options);
    } catch (error) {
      // No file can replace a directory.
      if (systemCode(error) !== "EISDIR") throw error;
      setAside(path);
      replaceDocument(path, document, options);
    }
  }

  /** @returns false when the name is taken. @throws a system error */
  create(name: string, document: T): boolean {
    const text = `${JSON.stringify(document, null, 2)}\n`;
    return createText(this.path(name), text, this.staging());
  }

  /**
   * Changes a document while no other process does.
   * @param change gets undefined when there is none. Nothing is written when it returns what it got; undefined removes the document
   * @returns what `change` returned. @throws a system error
   */
  async update<R extends T | undefined>(
    name: string,
    change: (before: T | undefined) => R,
    lock = `${this.path(name)}.lock`,
  ): Promise<R> {
    if (this.depth > 0) makeDirs(this.dir, this.depth);
    return underLock(lock, () => {
      const before = this.load(name);
      const after = change(before);
      if (after === before) return after;
      if (after === undefined) this.remove(name);
      else {
        if (before === undefined) setAside(this.path(name));
        this.replace(name, after);
      }
      return after;
    });
  }

  /** @throws a system error */
  remove(name: string): void {
    fs.rmSync(this.path(name), { force: true });
  }

  /** Where a document is staged, and what is made for it. */
  private staging(): ReplaceOptions {
    const { depth: _, ...rest } = this.options;
    if (rest.stagingDir === undefined) return { ...rest, missingMax: this.depth + 1 };
    makeDirs(this.dir, this.depth);
    return rest;
  }
}

function entries<T>(files: readonly string[], read: (name: string) => T | undefined): Entry<T>[] {
  return files.flatMap((file): Entry<T>[] => {
    const name = file.slice(0, -ENDING.length);
    const found = file.endsWith(ENDING) ? read(name) : undefined;
    return found === undefined ? [] : [[name, found]];
  });
}
