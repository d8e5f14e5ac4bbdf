/** Output for a shell or `kubectl apply`: a name in it stays a name, and rights are limited by resourceNames. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kubectl } from '../../runtime/core/kubernetes/object.ts';
import { shellWord } from '../../runtime/core/text.ts';
import { encodeObject } from '../../runtime/kube/decode.ts';
import { toYaml } from '../../runtime/kube/yaml.ts';
import { source } from '../pull-secret-injection/scene.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { commandsOn } from './evil-commands.ts';
import { dump } from './evil-words.ts';

const folder = tempFolder();

const WORDS = [
  'x;$(evil)',
  '`evil`',
  "'; evil; '",
  'a b',
  'a|evil',
  '$HOME',
  '~',
  '*',
  '&',
  '#',
  '!!',
  '\\',
  '',
];

test('a word stands for itself in a shell, and no command has a name that no object can have', async () => {
  const ran = await runProcess(['/bin/sh', '-c', `printf '%s\\0' ${WORDS.map(shellWord).join(' ')}`]);
  assert.deepEqual(ran.stdout.split('\0').slice(0, -1), WORDS);
  for (const word of [...WORDS, '-n', '--all', '$(evil)', 'A'])
    assert.equal(kubectl(['get', 'secret', word], [word]), undefined, word);
});

test('no printed line runs a program that a name in the cluster names', async () => {
  const [from, bin] = [join(folder, 'dump'), join(folder, 'bin')];
  for (const path of [from, bin]) mkdirSync(path);
  writeFileSync(join(bin, 'evil'), `#!/bin/sh\n: > '${folder}/ran'\n`);
  chmodSync(join(bin, 'evil'), 0o755);
  const shell = (line: string) => runProcess(['/bin/sh', '-c', line], { env: { PATH: bin }, cwd: folder });
  await shell('evil');
  assert.ok(existsSync(join(folder, 'ran')), 'a shell would');
  rmSync(join(folder, 'ran'));
  for (const word of ['x;$(evil)`evil`', "x';evil;'"]) {
    // Its objects too are named so, which no API server takes, but a folder may hold.
    const named = dump(word).replaceAll(/"(?:web|team|secret-team)"/g, () => JSON.stringify(word));
    writeFileSync(join(from, 'all.json'), dump(word));
    writeFileSync(join(from, 'named.json'), named);
    for (const args of commandsOn(from, 'x')) {
      const { stdout, stderr } = await runInProcess(args, { cwd: folder });
      for (const [line] of `${stdout}\n${stderr}`.matchAll(/\b(?:kubectl|oc|pullwright) [a-z].*/g)) {
        await shell(line);
        assert.equal(existsSync(join(folder, 'ran')), false, `${args.join(' ')}: ${line}`);
      }
    }
  }
});

test('the YAML of doctor gives the account of a tenant what its pods list, by name', async () => {
  const metadata = { namespace: 'shop', name: 'web' };
  const containers = [{ name: 'a', image: 'quay.io/shop/web:1' }];
  const spec = { nodeName: 'n', imagePullSecrets: [{ name: 'mirror' }], containers };
  const waiting = { reason: 'ErrImagePull', message: 'unauthorized' };
  const status = { phase: 'Pending', containerStatuses: [{ name: 'a', state: { waiting } }] };
  const imageTagMirrors = [
    { source: 'quay.io/shop', mirrors: ['m.io/shop'], mirrorSourcePolicy: 'NeverContactSource' },
  ];
  const file = join(folder, 'mirror.yaml');
  const items = [
    source('kube-system/original-pull-secret', ['quay.io'], ''),
    source('shop/mirror', ['m.io/shop'], ''),
    source('shop/of-others', ['x.io'], ''),
    { apiVersion: 'v1', kind: 'Pod', metadata, spec, status },
    { ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }), spec: { imageTagMirrors } },
  ];
  writeFileSync(file, items.map((one) => toYaml(encodeObject(one))).join('---\n'));
  const { stdout } = await runInProcess(['doctor', '--all', '-A', '-o', 'yaml', '--from', file]);
  const fixes = parseAllDocuments(stdout).map((one) => one.toJS() as { kind: string; rules?: object });
  // Which images the provider serves is of the whole cluster: that is not beside them.
  assert.deepEqual(
    fixes.map(({ kind }) => kind),
    ['Role', 'RoleBinding'],
  );
  assert.deepEqual(fixes[0]?.rules, [
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['mirror'], verbs: ['get'] },
    { apiGroups: [''], resources: ['serviceaccounts'], resourceNames: ['default'], verbs: ['get'] },
  ]);
});
