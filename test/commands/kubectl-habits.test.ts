/** Habits of kubectl users: the same flags, forms and names in every command that has a use for them. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { Flag } from '../../runtime/cli/flags.ts';
import { helpText } from '../../runtime/cli/help.ts';
import { COMMANDS, GROUPS } from '../../runtime/commands/table.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { CLUSTER, EMPTY, nowhere, put, tidy } from './output-scene.ts';

const specs = await Promise.all(Object.values(COMMANDS).map(async (entry) => (await entry.load()).spec()));
/** Commands that people run manually. */
const byHand = specs.filter(({ name }) => !Object.hasOwn(GROUPS.run, name) || name === 'reconcile');

/** The short form of a flag wherever a command has it. */
const SHORT: Readonly<Record<string, string>> = {
  'all-namespaces': 'A',
  container: 'c',
  from: 'f',
  namespace: 'n',
  output: 'o',
  watch: 'w',
  yes: 'y',
};

test('a flag has one short form in every command, and a letter means one flag', () => {
  for (const { name, flags } of byHand)
    for (const [flag, { short }] of Object.entries(flags))
      assert.equal(short, SHORT[flag], `${name} --${flag}`);
});

test('who reads a cluster takes --context, --as and --request-timeout', () => {
  for (const { name, flags } of byHand.filter(({ name }) => name !== 'reconcile'))
    if (flags['kubeconfig'] !== undefined)
      for (const flag of ['context', 'as', 'request-timeout']) assert.ok(flag in flags, `${name} --${flag}`);
});

test('every result is printed as JSON and YAML too', () => {
  for (const { name, flags } of byHand) {
    const { choices = [] }: Partial<Flag<unknown>> = flags['output'] ?? {};
    if (choices.length > 0)
      for (const form of ['text', 'json', 'yaml']) assert.ok(choices.includes(form), `${name} -o ${form}`);
  }
});

test('every --help says what the exit codes mean', () => {
  for (const spec of specs) assert.match(helpText(spec), /^Exit codes: 0 /m, spec.name);
});

interface Row extends Case {
  readonly args: readonly string[];
  readonly stdout: RegExp;
}
const row = (name: string, args: readonly string[], stdout: RegExp, reason = 'kubectl takes it'): Row => ({
  name,
  reason,
  args,
  stdout,
});
const POD = /^(?:Deployment\/shop\/web|Pod\/shop\/web-1)\b/m;

const rows: readonly Row[] = [
  row('TYPE/NAME', ['doctor', 'deployment/web', '-n', 'shop', '-f', CLUSTER], POD),
  row('TYPE NAME', ['doctor', 'deployment', 'web', '-n', 'shop', '-f', CLUSTER], POD),
  row('a short form', ['doctor', 'deploy/web', '-nshop', `-f=${CLUSTER}`], POD),
  row('a plural', ['doctor', 'pods', 'web-1', '--namespace=shop', '--from', CLUSTER], POD),
  row('a plural with its group', ['doctor', 'deployments.apps/web', '-n', 'shop', '-f', CLUSTER], POD),
  row('--pod TYPE/NAME', ['explain', '--pod', 'deploy/web', '-n', 'shop', '-f', CLUSTER], /web/),
  row(
    'doctor -o name',
    ['doctor', 'web-1', '-n', 'shop', '-f', CLUSTER, '-o', 'name'],
    /^Pod\/shop\/web-1\n$/,
  ),
  row('doctor -A -o name', ['doctor', '--all', '-A', '-f', CLUSTER, '-o', 'name'], /^(?:\w+\/shop\/\S+\n)+$/),
  row('doctor -o wide', ['doctor', 'web-1', '-n', 'shop', '-f', CLUSTER, '-owide'], POD),
  row('report -o name', ['report', '-f', CLUSTER, '-o', 'name'], /^\w+\/shop\/web-1$/m),
  row(
    'explain -o name',
    ['explain', 'quay.io/shop/a', '-n', 'shop', '--pod', 'deploy/web', '-f', CLUSTER, '-o', 'name'],
    /^Secret\/shop\/pull\nSecret\/openshift-config\/pull-secret\n$/,
  ),
  row('explain -o wide', ['explain', 'quay.io/shop/a', '-f', CLUSTER, '-o', 'wide'], /^quay\.io\/shop\/a/),
  row(
    'mirrors -o name',
    ['mirrors', 'quay.io/shop/a@sha256:'.concat('a'.repeat(64)), '-f', CLUSTER, '-o', 'name'],
    /^ImageDigestMirrorSet\/m\n$/,
  ),
  row('report -o wide', ['report', '-f', CLUSTER, '-o', 'wide'], /^CLUSTER +VERDICT/m),
  row(
    'status -o name',
    ['status', '-f', 'examples/troubled', '-o', 'name'],
    /^PullStatus\/kube-system\/node-eu-worker-3$/m,
  ),
  row('status -o wide', ['status', '-f', 'examples/troubled', '-A', '-o', 'wide'], /^CLUSTER +STATE/),
  row(
    'status --no-headers',
    ['status', '-f', 'examples/troubled', '--no-headers'],
    /^clusters\/shop-eu +Attention/,
  ),
  row(
    'status -n',
    ['status', '-f', 'examples/troubled', '-n', 'payments', '-o', 'name'],
    /^PullSecretGrant\/payments\/teams\n$/,
  ),
];

table(test, rows, async ({ args, stdout }) => {
  const ran = await runInProcess(args);
  assert.match(ran.stdout, stdout, ran.stderr);
});

/** One input in which each command finds something that it names. */
const config = (key: string) => ({
  type: 'kubernetes.io/dockerconfigjson',
  stringData: { '.dockerconfigjson': JSON.stringify({ auths: { [key]: { auth: 'YTpi' } } }) },
});
const SPEC = {
  imagePullSecrets: [{ name: 'gone' }],
  containers: [{ name: 'a', image: '127.0.0.1:1/shop/web:1' }],
};
const INPUT = [
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pull', namespace: 'shop' }, ...config('r.io') },
  {
    ...meta('v1 Secret', { name: 'additional-pull-secret', namespace: 'kube-system' }),
    ...config('tenant.io'),
  },
  { ...meta('apps/v1 Deployment', { name: 'web', namespace: 'shop' }), spec: { template: { spec: SPEC } } },
  {
    ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'team' }),
    spec: { imageTagMirrors: [{ source: '127.0.0.1:1/shop', mirrors: ['127.0.0.1:2/shop'] }] },
  },
];
const READS: Readonly<Record<string, readonly [args: string, stdout: RegExp]>> = {
  check: ['--pre', /eligible-nodes +0 of 1 node/],
  doctor: [
    'deploy/web -n shop',
    /^Deployment\/shop\/web {2}broken: A pull secret that pods list does not exist: gone$/m,
  ],
  explain: ['--pod deploy/web -n shop', /Secret "gone", listed by Deployment\/shop\/web/],
  mirrors: ['127.0.0.1:1/shop/web:1', /ImageTagMirrorSet\/team/],
  reconcile: ['--dry-run', /tenant\.io/],
  report: ['', /Deployment\/shop\/web/],
  status: ['', /^Unknown +global-pull-secret +Secret\/kube-system\/additional-pull-secret +NotReported/m],
  test: ['examples/credential-tests/shop.test.yaml', /team-registry.*no credential matches/],
  validate: ['', /^3 checked/m],
  // Loopback is never asked.
  verify: ['127.0.0.1:1/shop/web:1 -n shop', /127\.0\.0\.1:2\/shop\/web:1/],
};

const VOID = nowhere('void');
mkdirSync(VOID);

test('-f - reads standard input in every command that reads manifests', async () => {
  const text = INPUT.map((one) => `${JSON.stringify(one)}\n`).join('---\n');
  const reading = specs.filter(({ flags }) => 'from' in flags).map(({ name }) => name);
  assert.deepEqual(reading, Object.keys(READS));
  for (const [name, [args, stdout]] of Object.entries(READS)) {
    const words = args.split(' ').filter((word) => word !== '');
    const ran = await runInProcess([name, ...words, '-f', '-'], { stdin: Readable.from([text]) });
    assert.ok(ran.code < 2, `${name}: ${ran.stderr}`);
    assert.match(ran.stdout, stdout, name);
    // The first as after a command that failed before the pipe.
    for (const [from, input, says] of [
      ['-', '---\n# nothing\n', /standard input: it is empty|no objects of a supported kind/],
      ['-', '\nkind: [\n', /standard input:\d: /],
      [VOID, '', /^Cannot read ".*void": it has no manifests \(\*\.yaml, \*\.yml or \*\.json\)$/m],
    ] as const) {
      const bad = await runInProcess([name, ...words, '-f', from], { stdin: Readable.from([input]) });
      assert.equal(bad.code, 1, name);
      assert.match(bad.stdout + bad.stderr, says, name);
    }
  }
});

const IMAGE = 'quay.io/shop/web:1';
const LISTED = put(
  'listed.yaml',
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pull', namespace: 'shop' }, ...config('quay.io') },
  {
    ...meta('v1 ServiceAccount', { name: 'default', namespace: 'shop' }),
    imagePullSecrets: [{ name: 'gone' }],
  },
  {
    ...meta('apps/v1 Deployment', { name: 'web', namespace: 'shop' }),
    spec: { template: { spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] } } },
  },
);
/** A pod whose registry is not found: neither an object nor a command fixes it. */
const UNFIXED = put('unfixed.yaml', {
  ...meta('v1 Pod', { name: 'web-1', namespace: 'shop' }),
  spec: { containers: [{ name: 'a', image: IMAGE }] },
  status: {
    phase: 'Pending',
    containerStatuses: [
      {
        name: 'a',
        state: { waiting: { reason: 'ErrImagePull', message: 'dial tcp: lookup quay.io: no such host' } },
      },
    ],
  },
});
const BROKEN = nowhere('broken.yaml');
writeFileSync(BROKEN, 'kind: [');
const ended = (name: string, code: number, args: readonly string[], says: RegExp) => ({
  name,
  reason: 'a script goes by it',
  code,
  args,
  says,
});

table(
  test,
  [
    ended('mirrors of what can be read', 0, ['mirrors', IMAGE, '-f', CLUSTER], /^image/),
    ...['mirrors', 'explain', 'report', 'status'].map((name) =>
      ended(
        `${name} of a document that cannot be read`,
        1,
        [name, ...(name === 'mirrors' || name === 'explain' ? [IMAGE] : []), '-f', CLUSTER, '-f', BROKEN],
        /broken\.yaml:1/,
      ),
    ),
    ended(
      'doctor --all -o yaml of a document that cannot be read',
      1,
      ['doctor', '--all', '-A', '-f', BROKEN, '-o', 'yaml'],
      /^(?![\s\S]*Nothing is broken)[\s\S]*broken\.yaml:1/,
    ),
    ended(
      'doctor -o yaml where a command is the fix',
      1,
      ['doctor', 'deploy/web', '-n', 'shop', '-f', LISTED, '-o', 'yaml'],
      /^Fixed by a command, not by YAML: kubectl patch serviceaccount default -n shop --type=json -p /,
    ),
    ended(
      'doctor --all -o yaml where no YAML is a fix',
      1,
      ['doctor', '--all', '-A', '-f', UNFIXED, '-o', 'yaml'],
      /^Not fixed by YAML: Pod\/shop\/web-1: the last pull of .* cannot resolve the name quay\.io\. Check /,
    ),
    ...['yaml', 'name'].map((form) =>
      ended(
        `doctor --all -o ${form} of pods that pull`,
        0,
        ['doctor', '--all', '-A', '-f', EMPTY, '-o', form],
        form === 'yaml' ? /^No problems found: nothing to fix$/m : /^No pods found$/m,
      ),
    ),
    ended(
      'report -o name of nothing',
      0,
      ['report', '-f', EMPTY, '-o', 'name'],
      /^No problem found in 1 cluster/,
    ),
    ended(
      'verify -o name',
      1,
      ['verify', '127.0.0.1:1/a:1', '-f', EMPTY, '-o', 'name'],
      /^No credential is refused or expires soon$/m,
    ),
    ended('status --cluster alone', 2, ['status', '--cluster', 'prod'], /name the folder too/),
    ended(
      'status of a namespace without objects',
      0,
      ['status', '-f', 'examples/troubled', '-n', 'nosuch'],
      /^No objects of Pullwright in namespace "nosuch"$/m,
    ),
    ended(
      'status of manifests',
      1,
      ['status', '-f', 'examples/credential-tests/manifests'],
      /^Unknown +pull-secret-injection +PullSecretGrant\/\S+ +NotReported/m,
    ),
  ],
  async ({ args, code, says }) => {
    const ran = await runInProcess(args);
    assert.match(`${ran.stdout}${ran.stderr}`, says);
    assert.equal(ran.code, code, ran.stderr);
  },
);

test('counts of several clusters are those of each', async () => {
  const { stdout } = await runInProcess(['status', '-f', 'examples/troubled']);
  assert.match(stdout, /^clusters\/shop-eu .* 4 of 5 agents ready, 5 of 8 nodes eligible$/m);
  assert.match(stdout, /^clusters\/shop-us .* 6 of 6 agents ready, 6 of 6 nodes eligible/m);
  const one = await runInProcess(['status', '-f', 'examples/troubled', '--cluster', 'clusters/shop-us']);
  assert.doesNotMatch(one.stdout, /shop-eu/);
});

test.lastly('the scene goes', tidy);
