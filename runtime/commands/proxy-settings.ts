/** The proxy settings of the environment, read by us and not by the runtime. */
import type { CommandIo } from './command.ts';

/** The variables that matter. A runtime that obeys them by itself must not see them any more. */
const PROXY_VARIABLES: readonly string[] = [
  'HTTPS_PROXY',
  'https_proxy',
  'HTTP_PROXY',
  'http_proxy',
  'ALL_PROXY',
  'all_proxy',
];

/**
 * Keeps the proxy settings for us alone. Bun's fetch obeys the environment on its own, also where NO_PROXY as Go reads it says
 * otherwise.
 */
export function takeProxySettings(env: CommandIo['env']): CommandIo['env'] {
  const taken = { ...env };
  if (process.versions['bun'] !== undefined) for (const name of PROXY_VARIABLES) delete process.env[name];
  return taken;
}
