/** The `fs` module for packages that leave the rights of new directories to the umask. Here only our user gets rights. */
import fs from "node:fs";

export const privateFs: object = {
  ...fs,
  mkdir: (path: string, done: fs.NoParamCallback): void => fs.mkdir(path, { mode: 0o700 }, done),
};
