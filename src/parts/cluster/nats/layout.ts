/** The consumers and the permissions that each machine of a cluster needs at the servers. Pure. */
import {
  askSubject,
  beatSubject,
  type Consumer,
  controlSubject,
  homeConsumer,
  inboxOf,
  logAskSubject,
  logSubject,
  machineConsumer,
  machineSubject,
  overSubject,
  RESULT,
  resultSubject,
  targetConsumer,
  WORK,
  workSubject,
} from "./streams.ts";

/** A machine with its state tree. */
export interface MachineRole {
  name: string;
  /** The targets whose tasks it runs, in addition to its own name. If empty, it runs no tasks of others. */
  serves: readonly string[];
  /** The targets to which it sends tasks. */
  sends: readonly string[];
}

export interface Permissions {
  publish: string[];
  subscribe: string[];
}

/** The consumers of all machines. */
export function consumersOf(machines: readonly MachineRole[]): Consumer[] {
  const targets = new Set(machines.flatMap(({ name, serves }) => [name, ...serves]));
  return [
    ...[...targets].map(targetConsumer),
    ...machines.map(({ name }) => homeConsumer(name)),
    ...machines.map(({ name }) => machineConsumer(name)),
  ];
}

/**
 * Subjects name their senders, so a machine may publish only under its own name, and may settle only tasks of the targets that it
 * serves. It may not make consumers or read a message of a stream by a direct request, because both can send what they read to any
 * subject. With the other requests it can send only an answer of the server to any subject, or a message with its old subject. No
 * machine takes either for a message of ours.
 */
export function permissionsOf({ name, serves, sends }: MachineRole): Permissions {
  const takes = serves.length === 0 ? [] : [...new Set([...serves, name])];
  const own = targetConsumer(name);
  const publish = [
    machineSubject(name),
    askSubject(`${name}.*`),
    // The consumer says when its stream was made, so a machine notices that the servers have lost everything.
    `$JS.API.CONSUMER.INFO.${own.stream}.${own.name}`,
    ...[homeConsumer(name), machineConsumer(name)].flatMap(mayTake),
    ...takes.flatMap((target) => [
      ...mayTake(targetConsumer(target)),
      resultSubject("*.*", target, name, ">"),
    ]),
    ...(takes.length === 0 ? [] : [beatSubject("*.*", name), logSubject("*.*", name)]),
  ];
  if (sends.length > 0)
    publish.push(
      ...sends.map((target) => workSubject(target, `${name}.>`)),
      overSubject("*", `${name}.>`),
      logAskSubject("*", `${name}.*`),
      // With these it sees which of its jobs and results are there, and takes jobs back.
      ...[WORK, RESULT].map((stream) => `$JS.API.STREAM.INFO.${stream}`),
      ...["GET", "DELETE"].map((verb) => `$JS.API.STREAM.MSG.${verb}.${WORK}`),
    );
  const subscribe = [
    `${inboxOf(name)}.>`,
    machineSubject("*"),
    controlSubject(name),
    askSubject("*.*"),
    beatSubject(`${name}.*`, "*"),
    logAskSubject(name, "*.*"),
    logSubject(`${name}.*`, "*"),
  ];
  return { publish: [...new Set(publish)], subscribe };
}

function mayTake({ stream, name }: Consumer): string[] {
  return [
    `$JS.API.CONSUMER.INFO.${stream}.${name}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`,
    `$JS.ACK.${stream}.${name}.>`,
  ];
}

/**
 * The users of a NATS server, in the form of its configuration.
 * @param keeper the machine that makes the streams. It may do everything
 * @param keyOf the public nkey of a machine
 */
export function usersText(
  machines: readonly MachineRole[],
  keeper: string,
  keyOf: (name: string) => string,
): string {
  const lines = [
    "# Made by `mailchute cluster init`, which replaces this file. It holds no secret.",
    "authorization {",
    "  users = [",
  ];
  for (const machine of machines) {
    lines.push(`    # ${machine.name}`, "    {", `      nkey: ${keyOf(machine.name)}`);
    if (machine.name !== keeper) {
      const { publish, subscribe } = permissionsOf(machine);
      lines.push("      permissions: {", ...listOf("publish", publish));
      lines.push(...listOf("subscribe", subscribe), "      }");
    }
    lines.push("    }");
  }
  return `${[...lines, "  ]", "}"].join("\n")}\n`;
}

function listOf(verb: string, subjects: readonly string[]): string[] {
  const items = subjects.map((subject) => `            ${JSON.stringify(subject)}`);
  return [`        ${verb}: {`, "          allow: [", ...items, "          ]", "        }"];
}

/** A first configuration of a server, which people can change. */
export const SERVER_TEXT = `# Made by \`mailchute cluster init\`, which does not touch it again: it is yours.
listen: "0.0.0.0:4222"
jetstream {
  store_dir: "/var/lib/nats"
}
# Without TLS, others in the network can read what is sent.
# tls {
#   cert_file: "/etc/nats/cert.pem"
#   key_file: "/etc/nats/key.pem"
# }
include "./users.conf"
`;
