/** Command line of the node agent, from its options. */
import { type AgentOptions, DEFAULT_HEALTH_PORT } from './options.ts';

/** Where the image holds the executable. */
export const EXECUTABLE = '/usr/bin/pullwright';

/** `pullwright agent` with a flag for every option that differs from what the agent does by itself. */
export function agentCommand(options: AgentOptions): readonly string[] {
  return [
    EXECUTABLE,
    'agent',
    `--health-port=${options.healthPort ?? DEFAULT_HEALTH_PORT}`,
    ...flag('foreign', options.foreign),
    ...flag('restart', options.restart),
    ...flag('restart-window', options.restartWindow),
    ...flag('restart-slots', options.restartSlots),
    ...(options.watch === false ? [] : ['--watch']),
    ...(options.report === true ? ['--report'] : []),
    ...flag('log-level', options.logLevel),
    ...(options.janitor === true ? ['--janitor'] : []),
  ];
}

function flag(name: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [`--${name}=${value}`];
}
