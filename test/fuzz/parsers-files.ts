/** Files of nodes that others write, what systemd says, and files that a person gives to a command. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  isOwnDropIn,
  ownPointers,
  withKubeconfig,
} from '../../runtime/credential-provider/installer/plan.ts';
import { readFailures } from '../../runtime/credential-provider/installer/report.ts';
import { readEnvironment } from '../../runtime/credential-provider/installer/source.ts';
import { serviceSettings, unitValue } from '../../runtime/credential-provider/kubelet-unit.ts';
import { readSource } from '../../runtime/global-pull-secret/agent/sources.ts';
import { loadedService } from '../../runtime/node/systemd.ts';
import { NOTES } from '../../runtime/node/watch.ts';
import { tenantsOf } from '../../runtime/pull-secret-adapter/adapter/command.ts';
import { DEFAULT_SETTINGS, settingsOf } from '../../runtime/pull-secret-adapter/options.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { AUTHS, jsonOf } from './corpus.ts';
import { holds, type Parser, valueOf } from './parser.ts';

const folder = tempFolder();
mkdirSync(join(folder, NOTES), { recursive: true });

/** A file that holds `text`. */
function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const UNIT = `[Service]\nEnvironmentFile=-${join(folder, 'kubelet-env')}\nEnvironment="A=1" B=2\n# ExecStart=/usr/bin/kubelet --image-credential-provider-config=/etc/pullwright-0123456789abcdef.yaml\n`;

export const FILE_PARSERS: readonly Parser[] = [
  {
    name: "what the kubelet's unit and its environment say",
    corpus: [
      UNIT,
      'KUBELET_ARGS=--a\nB="c d"\n',
      '/usr/bin/kubelet --kubeconfig=/var/lib/kubelet/kubeconfig --x',
    ],
    unit: '--kubeconfig /a ',
    run: (text) => {
      fileOf('kubelet-env', text);
      const unit = [{ path: 'kubelet.service', text }];
      const settings = serviceSettings([text]);
      return [
        isOwnDropIn(text),
        ownPointers(text),
        unitValue(settings, 'A'),
        readEnvironment('', [...unit, { path: 'b.conf', text: UNIT }], undefined),
        withKubeconfig(['--a'], text, () => true),
      ];
    },
  },
  {
    name: 'what systemd says of a service',
    corpus: [
      jsonOf([
        { LoadState: { value: 'loaded' }, FragmentPath: { value: '/a' }, DropInPaths: { value: ['/b'] } },
        {
          ExecStartEx: { value: [['/k', ['/k', '--a'], ['no-env-expand']]] },
          MainPID: { value: 1 },
          EnvironmentFiles: { value: [['/e', true]] },
        },
        [['/a', 1, '/k --a']],
      ]),
    ],
    run: (text) => {
      const value = valueOf(text);
      const [unit, service, processes] = Array.isArray(value) ? (value as unknown[]) : [value];
      return loadedService(unit, service, processes);
    },
  },
  {
    name: 'notes of runs that failed',
    corpus: [jsonOf({ namespace: 'a', serviceAccount: 'b', image: 'c', message: 'm' })],
    run: (text) => {
      fileOf(`${NOTES}/a.json`, text);
      return readFailures(folder);
    },
  },
  {
    name: 'Secret that is mounted',
    corpus: [AUTHS, '{"auths":{}}'],
    unit: '"r.io":{},',
    run: (text) => {
      const source = readSource(fileOf('.dockerconfigjson', text));
      holds(source.bytes !== undefined, 'the file');
      return source;
    },
  },
  {
    name: 'list of tenants',
    corpus: ['acme: [project-a, "acme-*"]\n', 'a: [bc]\n'],
    unit: '- a\n',
    run: async (text) => {
      const given = await tenantsOf(fileOf('tenants.yaml', text));
      const { tenants } = settingsOf({}, given, DEFAULT_SETTINGS);
      holds(tenants !== undefined, 'tenants');
      return tenants;
    },
  },
];
