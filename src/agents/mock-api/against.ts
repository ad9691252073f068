/** The environment and arguments that make claude and codex use the mock API instead of their service. */

interface Against {
  env: Record<string, string>;
  args: readonly string[];
}

interface AgainstOptions {
  /** Address of the mock. */
  url: string;
  /** Sent with each request. A script recognizes an account by the last four letters of its key. Never use a real key. */
  key: string;
  /** How many times the program tries again after an error. */
  retries: number;
}

/**
 * Turns off claude's requests to other servers. With `isSubscription` it treats its key as that of a subscription, with quota
 * windows.
 */
export function claudeAgainst(
  { url, key, retries }: AgainstOptions,
  { isSubscription = false } = {},
): Against {
  return {
    env: {
      ANTHROPIC_BASE_URL: url,
      [isSubscription ? "CLAUDE_CODE_OAUTH_TOKEN" : "ANTHROPIC_API_KEY"]: key,
      CLAUDE_CODE_MAX_RETRIES: String(retries),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
    },
    args: [],
  };
}

/** A provider in codex's configuration. Its name differs from those that codex knows. */
export function codexAgainst({ url, key, retries }: AgainstOptions): Against {
  const provider = [
    'name="mock"',
    `base_url=${JSON.stringify(`${url}/v1`)}`,
    'wire_api="responses"',
    `request_max_retries=${retries}`,
    `stream_max_retries=${retries}`,
    `experimental_bearer_token=${JSON.stringify(key)}`,
  ];
  const settings = [`model_providers.mock={${provider.join(",")}}`, 'model_provider="mock"'];
  return { env: {}, args: settings.flatMap((setting) => ["-c", setting]) };
}
