/**
 * The storage port: the few file-system operations that the mailbox protocol needs. They are synchronous, because a synchronous
 * call costs a fifth of an asynchronous one, which matters on the hot path. Only the durability barriers are asynchronous. Tests
 * replace it by a simulated file system to explore crashes. Errors are Node's system errors (`code` = "ENOENT", "EEXIST", …).
 */
export interface FileFacts {
  dev: number;
  ino: number;
  size: number;
  mtimeMs: number;
  ctimeMs: number;
  nlink: number;
  uid: number;
  mode: number;
  kind: "file" | "directory" | "other";
}

/** A listing that is read in pieces, so that a directory of a million names does not block the process. */
export interface Walk {
  /** The next names, at most about `max`; empty at the end. Names that vanish or appear in between may be missed. */
  next(max: number): string[];
  close(): void;
}

export interface Storage {
  list(dir: string): string[];
  walk(dir: string): Walk;
  /** The bytes of a listed name that is not UTF-8. */
  rawName(dir: string, shown: string): Buffer | undefined;
  /** lstat; undefined when there is no such file. */
  look(path: string | Buffer): FileFacts | undefined;
  /**
   * Opens without following links or waiting for writers, and reads a regular file of at most `bytesMax`. `bytes` is undefined when
   * the file is larger, or not a regular file.
   */
  read(path: string, bytesMax: number): { facts: FileFacts; bytes: Buffer | undefined };
  /** Creates a new file as a whole; a failure leaves no file. The file must not exist. Mode 0600. */
  create(path: string, bytes: Buffer): void;
  /** Fails with EEXIST when `to` exists: files are published only in this way. */
  link(from: string, to: string): void;
  /** Replaces `to` silently when it exists. `from` is bytes when the name is not UTF-8. */
  rename(from: string | Buffer, to: string): void;
  unlink(path: string): void;
  /** Sets mtime (epoch ms). */
  touch(path: string, mtimeMs: number): void;
  /**
   * Makes a directory and its missing parents; does nothing when it is there.
   * @param missingMax throws ENOENT when more directories are missing, counting the directory itself; no limit when left out
   */
  makeDir(path: string, missingMax?: number): void;
  /** Makes the contents of these files durable, with one wait for all. */
  syncFiles(paths: readonly string[]): Promise<void>;
  /** Makes the names in these directories durable. */
  syncDirs(paths: readonly string[]): Promise<void>;
  /** Makes the names in a directory durable without returning in between: for rare steps that must not be interrupted. */
  syncDirNow(path: string): void;
}
