/** Records that programs write for each other, and answers about them: reports, annotations, error responses. */

import { UsageError } from '../../runtime/core/errors.ts';
import { readValue } from '../../runtime/core/kubernetes/read-spec.ts';
import { recordOf } from '../../runtime/core/record.ts';
import { lineOf } from '../../runtime/diagnose/checks/documents.ts';
import { failedStatus } from '../../runtime/engine/apply.ts';
import { leftBehind } from '../../runtime/engine/changes.ts';
import { parseManifests } from '../../runtime/engine/offline/manifests.ts';
import { parseOptions } from '../../runtime/global-pull-secret/options.ts';
import { confirmedRemovals } from '../../runtime/global-pull-secret/removal-guard.ts';
import { addressKind, isNetwork } from '../../runtime/http/addresses.ts';
import { refusalWords } from '../../runtime/kube/api-error.ts';
import { ignitionText } from '../../runtime/kube/ignition.ts';
import { sentinelSettings } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { optionsSchema } from '../../runtime/pull-secret-injection/options.ts';
import { injectedText } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { absenceFromError, minorOf } from '../../runtime/registry-overrides/olm-catalogs.ts';
import { parseOverridesOptions } from '../../runtime/registry-overrides/options.ts';
import { meta } from '../support/meta.ts';
import { jsonOf } from './corpus.ts';
import { type Parser, valueOf } from './parser.ts';

export const RECORD_PARSERS: readonly Parser[] = [
  {
    name: 'confirmed removals',
    corpus: ['0123456789ab, ba9876543210'],
    unit: ',',
    run: (text) => confirmedRemovals(text).length,
  },
  {
    name: 'file in a MachineConfig',
    corpus: ['data:text/plain;charset=utf-8;base64,YWJj', 'data:,a%20b%2', 'data:;base64,'],
    unit: '%41',
    run: (text) =>
      ignitionText(
        {
          ...meta('machineconfiguration.openshift.io/v1 MachineConfig', { name: 'a' }),
          spec: { config: { storage: { files: [{ path: '/a', contents: { source: text } }] } } },
        },
        '/a',
      ),
  },
  {
    name: 'refusal in the words of others',
    corpus: [
      'pods "a" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1',
      'admission webhook "a.b.c" denied the request: no',
      "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: c",
      'secrets "a" is forbidden: User "u" cannot patch resource "secrets" in API group "" in the namespace "n"',
      'NotFound: manifest unknown',
    ],
    unit: 'q,',
    run: (text) => [refusalWords(text), absenceFromError(text)],
  },
  {
    name: 'address and network',
    corpus: ['10.0.0.0/8', '::ffff:169.254.169.254', 'fd00:ec2::254/128', 'v1.36.3+rke2', '8.8.8.8'],
    unit: ':0',
    run: (text) => [isNetwork(text), addressKind(text), minorOf(text)],
  },
  {
    name: 'marks of the engine on an object',
    corpus: [
      jsonOf({ conditions: [{ type: 'Ready', status: 'True' }], scope: 'local||a' }),
      jsonOf({ conditions: null, scope: 'local|n|a' }),
    ],
    unit: '{"type":"a"},',
    run: (text) => {
      const value = valueOf(text) as { scope?: unknown } | null;
      const annotations = { 'pullwright.dev/key': value?.scope } as Readonly<Record<string, string>>;
      const object = meta('v1 A', { name: 'a', labels: { 'pullwright.dev/owner': 'r' }, annotations });
      const status = { conditions: [{ type: 'Ready', status: 'True' }] };
      const problem = { code: 'A', message: 'm' } as never;
      return [
        leftBehind(object, 'r', 'local'),
        failedStatus(status, problem, { status: value }, new Date(0)),
      ];
    },
  },
  {
    name: 'places in manifests',
    corpus: [
      'kind: A\nmetadata:\n  name: a\nspec:\n  list:\n    - x\n---\nkind: List\nitems: [{kind: B, metadata: {name: b}}]\n',
    ],
    unit: '  - a\n',
    run: (text) =>
      parseManifests(text, 'a.yaml').manifests.map((manifest) => lineOf(manifest, 'spec.list[0]')),
  },
  {
    name: 'options of a section, and names that were injected before',
    corpus: [
      jsonOf({ restart: 'never', shape: 'upstream', share: 0.5, copies: 3 }),
      jsonOf({ share: 0.1 }),
      jsonOf({ mode: 'own', agent: { restart: 'never' }, removals: { share: 0.5 } }),
      jsonOf({ mode: 'auto', catalogs: true, clusters: { 'clusters/a': { mode: 'own' } } }),
      jsonOf({ message_decision: { result: 'true' }, message_data: { id: 'resource.id' } }),
      jsonOf('profile/a: x, y; grant/b: z'),
    ],
    unit: 'a: b; ',
    run: (text) => {
      const value = valueOf(text);
      const by = [{ source: 'profile/a', names: ['x'] }];
      const given = recordOf(value);
      const used = [
        () => parseOptions(given)('local'),
        () => parseOverridesOptions(given)('local'),
        () => sentinelSettings({}, given),
      ].map((read) => {
        try {
          return read();
        } catch (error) {
          if (!(error instanceof UsageError)) throw error;
          return error.message;
        }
      });
      return [readValue(value, optionsSchema, 'a'), injectedText(by, ['x'], value), used];
    },
  },
];
