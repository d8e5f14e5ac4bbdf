/** The proxy settings of the environment, read by us and not by the runtime. */
import { PROXY_VARIABLES } from '../kube/proxy.ts';
import type { CommandIo } from './command.ts';

/**
 * Keeps the proxy settings for us alone. Bun's fetch obeys the environment on its own, also where NO_PROXY as Go reads it says
 * otherwise.
 */
export function takeProxySettings(env: CommandIo['env']): CommandIo['env'] {
  const taken = { ...env };
  if (process.versions['bun'] !== undefined) for (const name of PROXY_VARIABLES) delete process.env[name];
  return taken;
}
