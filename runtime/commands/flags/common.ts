/** Flags that mean in every command what they mean for kubectl. */

import type { Flag } from './flag.ts';
import { choice, duration, file, folder, several, text } from './flag.ts';

/** Which cluster is asked, and as whom. */
export const CLUSTER_FLAGS: {
  readonly kubeconfig: Flag<string | undefined>;
  readonly context: Flag<string | undefined>;
  readonly 'request-timeout': Flag<number>;
  readonly as: Flag<string | undefined>;
} = {
  kubeconfig: file({ help: 'the kubeconfig of the cluster; without it, as kubectl finds it' }),
  context: text({
    value: 'NAME',
    completes: 'contexts',
    help: 'the context of the kubeconfig; without it, the current one',
  }),
  'request-timeout': duration({
    default: '10s',

    help: 'how long one request to the API server may take',
  }),
  as: text({ value: 'USER', help: 'the user to act as, such as system:serviceaccount:shop:web' }),
};

/** The namespace that is meant. */
export const namespaceFlag: Flag<string | undefined> = text({
  value: 'NAME',
  short: 'n',
  completes: 'namespaces',
  help: 'the namespace; without it, that of the context',
});

/** Manifests in place of a cluster. */
export const fromFlag: Flag<readonly string[] | undefined> = several(
  folder({ help: 'a folder of manifests, such as a dump, in place of a cluster' }),
);

/** In which form results are printed; the first is the default. */
export function outputFlag<const C extends readonly [string, ...string[]]>(
  forms: C,
  help = 'the form of the result',
): Flag<C[number]> {
  return choice<C>(forms, { default: forms[0], short: 'o', help });
}

/** How a program that runs for long tells of itself. */
export const LOG_FLAGS: {
  readonly 'log-level': Flag<'debug' | 'info' | 'warn' | 'error'>;
  readonly 'log-format': Flag<'json' | 'logfmt'>;
} = {
  'log-level': choice(['debug', 'info', 'warn', 'error'], {
    default: 'info',
    help: 'the least that is logged',
  }),
  'log-format': choice(['json', 'logfmt'], { default: 'json', help: 'the form of the log' }),
};
