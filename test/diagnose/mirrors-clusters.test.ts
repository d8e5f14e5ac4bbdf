/** `mirrors` over several clusters, refused objects, files of nodes and short names: the answer that nodes will really give. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { type InProcessRun, runInProcess } from '../support/in-process.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { idms, image, type MirrorsRow, machineConfig, ofCluster, set } from './mirror-objects.ts';

const work = tempFolder();
const DIGEST = `sha256:${'a'.repeat(64)}`;

function cli(stdin: string, ...args: readonly string[]): Promise<InProcessRun> {
  return runInProcess(['mirrors', ...args], { stdin: Readable.from([Buffer.from(stdin)]) });
}

const ROWS: readonly MirrorsRow[] = [
  {
    name: 'two sets of one source are ordered as the operator does',
    reason: 'a topological sort with ties by name',
    objects: [
      idms('one', 'quay.io/a', 'quay.io/a', 'b.example.com/a'),
      idms('two', 'quay.io/a', 'a.example.com/a'),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 0,
    says: [/1 {2}a\.example\.com\/a\/x@.*\n {2}2 {2}quay\.io\/a\/x@.*\n {2}3 {2}b\.example\.com\/a\/x@/],
  },
  {
    name: 'a MachineConfig that is older than the objects is named',
    reason: 'nodes use it until it is rolled out',
    objects: [
      idms('a', 'quay.io/a', 'new.example.com/a'),
      machineConfig('[[registry]]\nlocation = "quay.io/z"\n'),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 0,
    says: [/warning: MachineConfig\/99-worker-generated-registries has no entry for "quay\.io\/a"/],
  },
  {
    name: 'an ICSP cannot stand beside NeverContactSource',
    reason: 'the operator refuses both, and the advice must be one that can be followed',
    objects: [
      set('ImageDigestMirrorSet', 'never', [
        { source: 'quay.io/a', mirrors: ['m.example.com/a'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
      set('ImageContentSourcePolicy', 'old', [{ source: 'quay.io/a', mirrors: ['o.example.com/a'] }]),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 1,
    says: [
      /replace ImageContentSourcePolicy\/old with an ImageDigestMirrorSet with the same mirrorSourcePolicy/,
    ],
    never: /give both the same mirrorSourcePolicy/,
  },
  {
    name: 'a mirror without repository makes the runtime give up',
    reason: 'repository name must be canonical',
    objects: [
      set('ImageTagMirrorSet', 'hub', [{ source: 'docker.io/library/nginx', mirrors: ['m10.example.com'] }]),
    ],
    args: ['docker.io/library/nginx', '--for', 'node'],
    code: 1,
    says: [/fails {2}the runtime pulls from nowhere: rewriting reference: repository name must be canonical/],
  },
  {
    name: 'image.config.openshift.io/cluster blocks',
    reason: 'it ends up in the same file',
    objects: [image({ blockedRegistries: ['quay.io'] })],
    args: ['quay.io/a/x:1'],
    code: 1,
    says: [
      /rule {3}quay\.io \(Image\/cluster spec\.registrySources\.blockedRegistries\)/,
      /not tried: The rule for "quay\.io" blocks it/,
      /\nwrong {2}no usable pull source for "quay\.io\/a\/x:1"\n/,
    ],
  },
  {
    name: 'an image by tag names the mirror that is skipped, and the set to apply',
    reason: 'the textbook fault of a disconnected cluster',
    objects: [idms('release', 'quay.io/a', 'm.example.com/a')],
    args: ['quay.io/a/x:1', '--for', 'node'],
    code: 0,
    says: [
      /wrong {2}"quay\.io\/a\/x:1" is named by tag, and mirror "m\.example\.com\/a" \(ImageDigestMirrorSet\/release\)/,
      /kind: ImageTagMirrorSet\nmetadata:\n {2}name: release-tags\nspec:\n {2}imageTagMirrors:\n {4}- source: quay\.io\/a/,
    ],
  },
  {
    name: 'no mirror set given says so',
    reason: 'nothing can be concluded from it',
    objects: [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } }],
    args: ['quay.io/a/x:1'],
    code: 0,
    says: [/no mirror set is given/],
  },
  {
    name: 'a transport is no part of a reference',
    reason: 'it is pasted from an error text',
    objects: [],
    args: ['docker://quay.io/a/x:1'],
    code: 2,
    says: [/an image must not have a scheme, user name or password: write "quay\.io\/a\/x:1"/],
  },
  {
    name: 'a short name follows the search registries of the Image object',
    reason: 'they replace those of the template',
    objects: [image({ containerRuntimeSearchRegistries: ['a.example.com', 'docker.io'] })],
    args: ['nginx', '--for', 'node', '--output', 'json'],
    code: 0,
    says: [/"image": "a\.example\.com\/nginx:latest"[\s\S]*"image": "docker\.io\/library\/nginx:latest"/],
  },
  {
    name: 'one bad entry refuses every set',
    reason: 'the operator writes no file, and nodes keep what they have',
    objects: [
      idms('good', 'quay.io/a', 'a.example.com/a'),
      ofCluster(idms('bad', 'quay.io/b', 'https://b.example.com')),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 1,
    says: [
      /Operator rejects all mirror sets because of ImageDigestMirrorSet\/bad: nodes keep/,
      /error: ImageDigestMirrorSet\/bad/,
    ],
    never: /the API server refuses/,
  },
  {
    name: 'a set that the API server refuses does not come into force',
    reason: 'it is declared, so that its schema counts; the others are applied',
    objects: [
      idms('good', 'quay.io/a', 'a.example.com/a'),
      idms('twice', 'quay.io/a', 'b.example.com/a', 'b.example.com/a'),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 1,
    says: [
      /the API server rejects ImageDigestMirrorSet\/twice, so it has no effect: the rules shown/,
      /1 {2}a\.example\.com\/a\/x@/,
      /error: ImageDigestMirrorSet\/twice spec\.imageDigestMirrors\[0\]\.mirrors\[1\] lists the mirror "b\.example\.com\/a" twice/,
    ],
    never: /2 {2}b\.example/,
  },
  {
    name: 'an Image object that the API server refuses blocks nothing',
    reason: 'only one of the two lists may be set, be they empty',
    objects: [image({ blockedRegistries: ['quay.io'], allowedRegistries: [] })],
    args: ['quay.io/a/x:1', '--for', 'node'],
    code: 1,
    says: [/the API server rejects Image\/cluster/, /1 {2}quay\.io\/a\/x:1/],
  },
  {
    name: 'what nodes keep is read from the MachineConfig',
    reason: 'that file is in force as long as the objects are refused',
    objects: [
      ofCluster(idms('bad', 'quay.io/a', 'bad/')),
      machineConfig(
        '[[registry]]\n  location = "quay.io/a"\n  [[registry.mirror]]\n    location = "old.example.com/a"\n',
      ),
    ],
    args: ['quay.io/a/x:1', '--for', 'node'],
    code: 0,
    says: [/nodes keep MachineConfig\/99-worker-generated-registries/, /1 {2}old\.example\.com\/a\/x:1/],
  },
];

table(test, ROWS, async (row) => {
  const text = row.objects.map((object) => JSON.stringify(object)).join('\n---\n');
  const ran = await cli(text, ...row.args, '--from', '-');
  assert.equal(ran.code, row.code, ran.stdout + ran.stderr);
  for (const says of row.says) assert.match(ran.stdout + ran.stderr, says);
  if (row.never !== undefined) assert.doesNotMatch(ran.stdout + ran.stderr, row.never);
});

const HOSTED = {
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'HostedCluster',
  metadata: { name: 'prod', namespace: 'clusters' },
  spec: { imageContentSources: [{ source: 'quay.io/a', mirrors: ['hosted.example.com/a'] }] },
};

test('nodes of a hosted cluster follow its imageContentSources, its control plane the management cluster', async () => {
  const text = [HOSTED, idms('m', 'quay.io/a', 'management.example.com/a')]
    .map((one) => JSON.stringify(one))
    .join('\n---\n');
  const asked = await cli(text, 'quay.io/a/x:1', '--from', '-');
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /choose one with --cluster: management, clusters\/prod/);
  const ran = await cli(
    text,
    `quay.io/a/x@${DIGEST}`,
    '--from',
    '-',
    '--cluster',
    'clusters/prod',
    '--output',
    'json',
  );
  const { reports } = JSON.parse(ran.stdout) as {
    readonly reports: readonly {
      readonly for: readonly string[];
      readonly candidates: readonly { readonly reference: string; readonly from?: string }[];
    }[];
  };
  assert.deepEqual(
    reports.map(({ for: planes, candidates }) => [planes, candidates[0]?.reference.split('/')[0]]),
    [
      [['node', 'image-stream'], 'hosted.example.com'],
      [['control-plane', 'control-plane-operator', 'ignition-server'], 'management.example.com'],
    ],
  );
  assert.equal(
    reports[0]?.candidates[0]?.from,
    'HostedCluster/clusters/prod spec.imageContentSources[0].mirrors[0]',
  );
});

test('over folders of several clusters it asks which', async () => {
  const folder = mkdtempSync(join(work, 'case-'));
  for (const [name, mirror] of [
    ['east', 'e.example.com'],
    ['west', 'w.example.com'],
  ] as const) {
    const file = join(folder, 'clusters', name, 'mirrors.yaml');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(idms('release', 'quay.io/a', mirror)));
  }
  const asked = await cli('', 'quay.io/a/x:1', '--from', folder);
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /--cluster: clusters\/east, clusters\/west/);
  const ran = await cli(
    '',
    `quay.io/a/x@${DIGEST}`,
    '--from',
    folder,
    '--cluster',
    'clusters/west',
    '--for',
    'node',
  );
  assert.match(ran.stdout, /1 {2}w\.example\.com\/x@/);
});

test('the files of a node decide, aliases too', async () => {
  const folder = mkdtempSync(join(work, 'case-'));
  const conf = join(folder, 'registries.conf');
  const dropIns = join(folder, 'registries.conf.d');
  mkdirSync(dropIns);
  writeFileSync(
    conf,
    'unqualified-search-registries = ["a.example.com"]\n[[registry]]\nlocation = "quay.io"\nblocked = true\n',
  );
  writeFileSync(join(dropIns, '01.conf'), '[aliases]\n"app" = "quay.io/team/app"\n');
  const ran = await cli(
    '',
    'app:1',
    '--registries-conf',
    conf,
    '--registries-conf',
    dropIns,
    '--for',
    'node',
  );
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, /image {2}quay\.io\/team\/app:1 {2}\(for the short name "app:1"\)/);
  assert.match(ran.stdout, /The rule for "quay\.io" blocks/);
});

test('--what-if says what nodes would do', async () => {
  const file = join(work, 'tags.json');
  const entry = { source: 'quay.io/a', mirrors: ['m.example.com/a'] };
  writeFileSync(file, JSON.stringify(set('ImageTagMirrorSet', 'tags', [entry])));
  const text = JSON.stringify(idms('release', 'quay.io/a', 'm.example.com/a'));
  const ran = await cli(text, 'quay.io/a/x:1', '--from', '-', '--for', 'node', '--what-if', file);
  assert.match(
    ran.stdout,
    /^change every node drains and reloads CRI-O: mirror .* is added to "quay\.io\/a"/,
  );
  assert.match(ran.stdout, /1 {2}m\.example\.com\/a\/x:1/);
});
