/** Reads the log of a run at another machine, part by part, through the bridge there. */
import type { Context } from "../../../cli/shell/command-spec.ts";
import type { RemoteLog, RunElsewhere } from "../../../cli/shell/remote-log.ts";
import { ErrIo, messageOf } from "../../../core/errors.ts";
import { LogCopy } from "../log-copy.ts";
import { treeName } from "../tree/tree-name.ts";
import { connectTo, placeOf } from "./place.ts";

/** @throws ErrIo when no server answers */
export async function openRemoteLog(
  ctx: Context,
  { id, machine, submission, attempt }: RunElsewhere,
  isStderr: boolean,
): Promise<RemoteLog> {
  const place = await placeOf(ctx);
  const tree = treeName(place.tree.dir, place.name);
  const dispatch = { tree, task: id, submission, attempt };
  const broker = await connectTo(place, tree, () => {}).catch((error: unknown) => {
    throw silent(machine, place.settings.cluster.servers.join(", "), error);
  });
  const copy = new LogCopy({
    dispatch,
    isStderr,
    note: (text) => ctx.out.note(text),
    ask: (ask) =>
      broker.askLog(machine, ask).catch((error: unknown) => {
        throw silent(machine, tree, error);
      }),
  });
  return {
    dir: copy.dir,
    pull: () => copy.pull(),
    close: async () => {
      copy.remove();
      await broker.close();
    },
  };
}

function silent(machine: string, path: string, error: unknown): ErrIo {
  return new ErrIo(`the logs are at ${machine}, which does not answer: ${messageOf(error)}`, {
    path,
    phase: "logs",
    hint: "its bridge must run, and the servers must be reached: mailchute cluster ls",
  });
}
