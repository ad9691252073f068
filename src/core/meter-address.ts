/** `{meter:URL}` in the arguments and variables of an agent: the address of a service that its program reaches through the meter. Pure. */
import type { AgentSettings } from "./settings.ts";

const ADDRESS = /\{meter:([^{}\s]*)\}/g;

/** The text with another address for each `{meter:URL}`. */
function withAddresses(text: string, addressOf: (url: string) => string): string {
  return text.replace(ADDRESS, (_, url: string) => addressOf(url));
}

/** The settings of an agent with another address for each `{meter:URL}`. */
export function atAddresses(
  agent: AgentSettings,
  addressOf: (url: string) => string,
): AgentSettings {
  const inText = (text: string): string => withAddresses(text, addressOf);
  const { args, command, env, screen } = agent;
  return {
    ...agent,
    ...(args === undefined ? {} : { args: args.map(inText) }),
    ...(command === undefined ? {} : { command: command.map(inText) }),
    ...(screen === undefined ? {} : { screen: screen.map(inText) }),
    ...(env === undefined
      ? {}
      : {
          env: Object.fromEntries(Object.entries(env).map(([name, text]) => [name, inText(text)])),
        }),
  };
}

/** The settings for a program that asks the services themselves. */
export function withoutMeter(agent: AgentSettings): AgentSettings {
  return atAddresses(agent, (url) => url);
}

export function isServiceAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { hash, protocol, search, username } = new URL(text);
  return /^https?:$/.test(protocol) && `${hash}${search}${username}` === "";
}

/** Checks the addresses of an agent. @returns the fault, or undefined */
export function explainBadMeter(agent: AgentSettings, isProgram: boolean): string | undefined {
  const { args = [], command = [], env = {}, kind, meter, name, screen = [] } = agent;
  if (meter !== undefined && !isProgram)
    return `${name} is of kind ${kind}, and only programs have a meter: remove it`;
  const addresses = [...args, ...command, ...screen, ...Object.values(env)].flatMap((text) =>
    [...text.matchAll(ADDRESS)].map(([, address = ""]) => address),
  );
  const bad = addresses.find((address) => !isServiceAddress(address));
  if (bad !== undefined)
    return `${name}: {meter:${bad}} is no address of a service: write {meter:https://…}`;
  if (addresses.length > 0 && meter === undefined)
    return `${name} has {meter:${addresses[0]}}, and no meter: add meter: true, or meter: false to use the address as it is`;
  return undefined;
}
