/** Command line of the node agent, from its options. */
import { AGENT_PORTS } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import { type AgentOptions, reports } from './options.ts';

/** Where the image holds the executable. */
export const EXECUTABLE = '/usr/bin/pullwright';

/** Names of the flags that the command may have, beside those whose values are bound by name (`agent-guard.ts`). */
export const AGENT_FLAGS: readonly string[] = [
  'foreign',
  'health-port',
  'janitor',
  'log-level',
  'metrics-address',
  'removal-delay',
  'removal-share',
  'report',
  'restart',
  'restart-window',
  'watch',
];

/** `pullwright agent` with a flag for every option that differs from what the agent does by itself. */
export function agentCommand(options: AgentOptions): readonly string[] {
  return [
    EXECUTABLE,
    'agent',
    `--health-port=${options.healthPort ?? AGENT_PORTS.probes}`,
    ...flag('foreign', options.foreign),
    ...flag('removal-share', options.removals?.share),
    ...flag('removal-delay', options.removals?.delay),
    ...flag('restart', options.restart),
    ...flag('restart-window', options.restartWindow),
    ...(options.watch === false ? [] : ['--watch']),
    ...(reports(options) ? ['--report'] : []),
    ...(options.metrics === undefined ? [] : ['--metrics-address=$(NODE_ADDRESS)']),
    ...flag('log-level', options.logLevel),
    ...(options.janitor === true ? ['--janitor'] : []),
  ];
}

function flag(name: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [`--${name}=${value}`];
}
