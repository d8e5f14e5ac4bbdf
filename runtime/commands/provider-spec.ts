/**
 * What `provider` says about itself. Its arguments are read by its own parser, since the kubelet hands each plugin whatever its
 * configuration holds, and at each start of a container: this file is loaded for help, completion and the reference only.
 */
import { PROVIDER_FLAGS } from '../rules/credential-provider/provider-flags.ts';
import { choice, type Flag, file, text, toggle } from './flags/flag.ts';
import type { CommandSpec } from './flags/help.ts';

export const PROVIDER_SPEC: CommandSpec = {
  name: 'provider',
  program: 'crio-credential-provider',
  summary: 'Give CRI-O the pull credentials of a namespace (kubelet plugin)',
  about: [
    "Gives CRI-O the pull credentials of a pod's namespace, for the mirrors that an image is really pulled from.",
    "The kubelet runs it with a CredentialProviderRequest on stdin. It finds the image's mirrors in registries.conf, reads the namespace's pull secrets with the pod's own token, writes <auth dir>/<namespace>-<sha256 of the image>.json for CRI-O and answers with a CredentialProviderResponse on stdout. Everything else goes to stderr and to the journal (journalctl -t crio-credential-provider).",
  ],
  args: [{ name: '< request.json', help: 'the CredentialProviderRequest' }],
  flags: {
    config: file({
      help: 'JSON object with the flags below, without dashes; crio-credential-provider.json beside the executable is read in any case, if it is there',
    }),
    ...settingFlags(),
    'dry-run': toggle({
      help: 'write nothing; print pull sources, choices and the redacted auth file. What the request holds under "dryRun" (registriesConf, globalAuth, secrets) stands in for the node and the API server',
    }),
    check: toggle({
      help: 'write nothing; take a request without a token, and say whether configuration, folder, CA and API server of this node are as a run needs them: 0 yes, 1 no',
    }),
    output: choice(['text', 'json'], {
      default: 'text',
      help: 'the form of what --dry-run and --check print',
    }),
    version: toggle({ help: 'print the version' }),
    'version-json': toggle({ help: 'print the version as JSON' }),
  },
  examples: ['node main.ts provider --dry-run < examples/request.json'],
};

function settingFlags(): Readonly<Record<string, Flag<unknown>>> {
  return Object.fromEntries(
    Object.values(PROVIDER_FLAGS).map(({ flag, kind, help }): [string, Flag<unknown>] => {
      if (kind === 'path' || kind === 'paths')
        return [flag, text({ value: 'PATH', completes: 'files', help })];
      if (kind === 'secrets') return [flag, choice(['list', 'named'], { help })];
      return [flag, kind === 'boolean' ? toggle({ help }) : text({ value: 'MS', help })];
    }),
  );
}
