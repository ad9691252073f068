/** Asks a program of kind acp who it is and what it can do. No session is opened and no model is asked, so it costs nothing. */
import { lastLine, runToItsEnd } from "../../agents/probe/ask-once.ts";
import type { Handshake } from "../../agents/probe/bench.ts";
import {
  isObject,
  type JsonMembers,
  listOf,
  membersAt,
  readObjectLine,
  textOf,
} from "../../agents/stream/json-values.ts";
import { initializeLine, PROTOCOL } from "./dialogue.ts";
import { messageOfError } from "./fault.ts";
import { REQUEST } from "./read-line.ts";

/** Such programs take 3 to 5 s to answer, and more on a busy machine. */
const LIMIT_MS = 60_000;
const NO_RESUME = "a run that was interrupted begins a new session, which is told of the old one";

export const acpHandshake: Handshake = {
  kind: "acp",
  tryOut: async (agent, where) => (await import("./try-out.ts")).tryOut(agent, where),
  async shake({ command = [] }, { env, cwd }) {
    let answer: JsonMembers | undefined;
    const output = await runToItsEnd({
      argv: command,
      env,
      cwd,
      limitMs: LIMIT_MS,
      input: {
        begin: (write) => write(initializeLine()),
        hear: (line) => {
          const message = readObjectLine(line);
          if (message?.["id"] === REQUEST.initialize) answer = message;
          return answer !== undefined;
        },
      },
    });
    if (answer === undefined) {
      const said = lastLine(output.stderr) ?? lastLine(output.stdout) ?? "it printed nothing";
      return { fault: `it does not answer initialize (${output.fault ?? said})` };
    }
    if (isObject(answer["error"])) return { fault: messageOfError(answer["error"]) };
    return output.fault === undefined
      ? describe(membersAt(answer, "result"))
      : { fault: `it answers, and does not end when its input ends: ${output.fault}` };
  },
};

function describe(result: JsonMembers): Awaited<ReturnType<Handshake["shake"]>> {
  const version = result["protocolVersion"];
  if (version !== PROTOCOL)
    return {
      fault: `it speaks version ${String(version)} of the protocol, and mailchute ${PROTOCOL}`,
    };
  const can = membersAt(result, "agentCapabilities");
  const canResume = isObject(membersAt(can, "sessionCapabilities")["resume"]);
  const info = membersAt(result, "agentInfo");
  const logins = listOf(result["authMethods"])
    .filter(isObject)
    .map(({ id }) => textOf(id));
  return {
    name: `${textOf(info["name"]) || "a program without a name"} ${textOf(info["version"])}`.trim(),
    notes: logins.length === 0 ? [] : [`auth_method may be ${logins.join(", ")}`],
    abilities: [
      { name: "resume", can: canResume || can["loadSession"] === true, without: NO_RESUME },
    ],
  };
}
