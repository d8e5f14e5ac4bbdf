/** Findings of a SidecarSet before it is applied. */
import assert from 'node:assert/strict';
import { sidecarSetProblems } from '../../runtime/diagnose/checks/documents.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly spec?: unknown;
  readonly from?: string;
  readonly apiVersion?: string;
  readonly says: readonly string[];
}

const WEB = { matchLabels: { app: 'web' } };
const LOG = [{ name: 'log', image: 'quay.io/log' }];
const GOOD = { selector: WEB, containers: LOG, imagePullSecrets: [{ name: 'quay' }] };
const TYPO = { matchlabels: { app: 'web' } };

const rows: readonly Row[] = [
  { name: 'a good one', reason: 'nothing to say', spec: GOOD, from: 'platform', says: [] },
  {
    name: 'one without pull secrets',
    reason: 'whatever else is wrong is for others to say',
    spec: { selector: TYPO, containers: [] },
    says: [],
  },
  { name: 'no spec', reason: 'it lists nothing', says: [] },
  {
    name: 'a version that there is not',
    reason: 'nobody would read it',
    apiVersion: 'apps.kruise.io/v1',
    spec: GOOD,
    says: ['error WrongVersion apiVersion'],
  },
  {
    name: 'selectors with typing errors',
    reason: 'the API server drops the field, and the selector would select all',
    spec: { ...GOOD, selector: TYPO, namespaceSelector: TYPO, updateStrategy: { selector: TYPO } },
    says: [
      'error SelectorInvalid spec.selector.matchlabels',
      'error SelectorInvalid spec.namespaceSelector.matchlabels',
      'error SelectorInvalid spec.updateStrategy.selector.matchlabels',
    ],
  },
  {
    name: 'a selector of another type',
    reason: 'as above',
    spec: { ...GOOD, selector: 'app=web' },
    says: ['error SelectorInvalid spec.selector'],
  },
  {
    name: 'an operator that there is not',
    reason: 'the shape is right, and it says nothing',
    spec: {
      ...GOOD,
      namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'in', values: ['a'] }] },
    },
    says: ['error SelectorInvalid spec.namespaceSelector'],
  },
  {
    name: 'an empty selector',
    reason: 'everywhere else it selects all, here none',
    spec: { ...GOOD, selector: {} },
    says: ['warning SelectorEmpty spec.selector'],
  },
  {
    name: 'no selector',
    reason: 'the same',
    spec: { ...GOOD, selector: undefined },
    says: ['warning SelectorEmpty spec.selector'],
  },
  {
    name: 'a namespace and a selector of namespaces',
    reason: 'the namespace wins',
    spec: { ...GOOD, namespace: 'web', namespaceSelector: WEB },
    says: ['warning NamespaceWins spec.namespaceSelector'],
  },
  {
    name: 'names that are none',
    reason: 'a pod with such a reference is refused',
    spec: { ...GOOD, imagePullSecrets: [{ name: 'No_Name' }, {}, 'quay', { name: 'quay' }] },
    says: [
      'error SecretNameInvalid spec.imagePullSecrets[0].name',
      'error SecretNameInvalid spec.imagePullSecrets[1].name',
      'error SecretNameInvalid spec.imagePullSecrets[2].name',
    ],
  },
  {
    name: 'pull secrets that are no list',
    reason: 'one place, and no word of the rest',
    spec: { ...GOOD, imagePullSecrets: { name: 'quay' } },
    from: 'platform',
    says: ['error SecretNameInvalid spec.imagePullSecrets'],
  },
  {
    name: 'a source namespace that is none',
    reason: 'nothing could be brought from there',
    spec: GOOD,
    from: 'Platform/quay',
    says: ['error SourceNamespaceInvalid metadata.annotations["pullwright.dev/source-namespace"]'],
  },
  {
    name: 'a source namespace, and nothing to bring',
    reason: 'somebody meant something',
    spec: { selector: WEB, containers: LOG },
    from: 'platform',
    says: ['warning NoSecretListed metadata.annotations["pullwright.dev/source-namespace"]'],
  },
  {
    name: 'no container',
    reason: 'as in Kruise nothing is injected then',
    spec: { ...GOOD, containers: [] },
    says: ['warning NoContainers spec.containers'],
  },
  {
    name: 'an init container alone',
    reason: 'it is one',
    spec: { ...GOOD, containers: [], initContainers: LOG },
    says: [],
  },
];

table(test, rows, ({ spec, from, apiVersion = 'apps.kruise.io/v1beta1', says }) => {
  const annotations = from === undefined ? {} : { 'pullwright.dev/source-namespace': from };
  const object = { apiVersion, kind: 'SidecarSet', metadata: { name: 'log', annotations }, spec };
  const said = sidecarSetProblems(object).map(({ severity, code, path }) => `${severity} ${code} ${path}`);
  assert.deepEqual(said, says);
});
