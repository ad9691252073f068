/** A file system for packages that make directories with whatever rights the umask leaves: here only our user gets rights. */
import fs from "node:fs";

export const privateFs: object = {
  ...fs,
  mkdir: (path: string, done: fs.NoParamCallback): void => fs.mkdir(path, { mode: 0o700 }, done),
};
