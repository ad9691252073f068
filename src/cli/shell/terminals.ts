/**
 * Ends a process that has outlived its terminal by the hang-up signal. In a normal exit, Node would try to reset the terminal, and
 * abort because it is gone.
 */
import { isatty } from "node:tty";

/** @returns a function to call at the end. It does not return if a terminal that exists now is gone by then */
export function watchTerminals(): () => void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  return () => {
    if (terminals.every((fd) => isatty(fd))) return;
    process.removeAllListeners("SIGHUP");
    process.kill(process.pid, "SIGHUP");
  };
}
