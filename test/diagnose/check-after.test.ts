/** What is said of an installation that was made. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { checkAfter, worstLevel } from '../../runtime/diagnose/checks/installed.ts';
import type { StatusRow } from '../../runtime/diagnose/checks/status.ts';
import { suite, table } from '../support/suite.ts';
import { agent, crd, NOTHING, object, policy, type Row, row } from './check-objects.ts';

const test = suite('check after');
const READY = { observedGeneration: 1, desiredNumberScheduled: 2, numberReady: 2 };
const hook = (clientConfig: object): KubeObject =>
  object('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', 'w', {
    metadata: { name: 'w', labels: { 'app.kubernetes.io/part-of': 'pullwright' } },
    webhooks: [{ clientConfig }],
  });
const slice = (ready: boolean): KubeObject =>
  object('discovery.k8s.io/v1', 'EndpointSlice', 'e', {
    metadata: { name: 'e', namespace: 'n', labels: { 'kubernetes.io/service-name': 's' } },
    endpoints: [{ conditions: { ready } }],
  });
const HOOK = hook({ caBundle: 'Q0E=', service: { namespace: 'n', name: 's' } });
const bindingOf = (kind: string): KubeObject =>
  object('admissionregistration.k8s.io/v1', `${kind}Binding`, 'b', { spec: { policyName: 'p' } });
const VALIDATING = 'ValidatingAdmissionPolicy';
const after: readonly Row[] = [
  row(
    'an object that is not there',
    { plan: [agent()] },
    ['objects', 'fail'],
    /1 of 1 object of the plan is.*DaemonSet\/kube-system\/agent/,
    /synth/,
  ),
  row(
    'all objects',
    { plan: [agent()], objects: [agent()] },
    ['objects', 'ok'],
    /the object of the plan is there/,
  ),
  row(
    'a definition that is not served',
    {
      plan: [crd('a.x.io', ['v1'])],
      objects: [
        crd(
          'a.x.io',
          ['v1'],
          {},
          { conditions: [{ type: 'Established', status: 'False', message: 'names conflict' }] },
        ),
      ],
    },
    ['crds', 'fail'],
    /names conflict/,
  ),
  row(
    'one that is',
    {
      plan: [crd('a.x.io', ['v1'])],
      objects: [crd('a.x.io', ['v1'], {}, { conditions: [{ type: 'Established', status: 'True' }] })],
    },
    ['crds', 'ok'],
    /is served/,
  ),
  row(
    'a workload that nobody has looked at',
    { plan: [agent()], objects: [agent()] },
    ['workloads', 'fail'],
    /not been looked at/,
  ),
  row(
    'a DaemonSet without nodes',
    { plan: [agent()], objects: [agent({}, { ...READY, desiredNumberScheduled: 0 })] },
    ['workloads', 'fail'],
    /wants no pod: no node is eligible/,
    /check --pre/,
  ),
  row(
    'pods that are not ready',
    { plan: [agent()], objects: [agent({}, { ...READY, numberReady: 1 })] },
    ['workloads', 'fail'],
    /1 of 2 pods/,
    /doctor --all/,
  ),
  row('pods that are', { plan: [agent()], objects: [agent({}, READY)] }, ['workloads', 'ok'], /all 2 pods/),
  row(
    'a policy without a binding',
    { plan: [policy(VALIDATING)], objects: [policy(VALIDATING)] },
    ['admission', 'fail'],
    /refuses nothing/,
  ),
  row(
    'a policy that is not understood',
    {
      plan: [policy(VALIDATING)],
      objects: [policy(VALIDATING, { typeChecking: { expressionWarnings: [{}] } }), bindingOf(VALIDATING)],
    },
    ['admission', 'fail'],
    /does not accept/,
  ),
  row(
    'a policy that nobody has checked',
    { plan: [policy(VALIDATING)], objects: [policy(VALIDATING), bindingOf(VALIDATING)] },
    ['admission', 'warn'],
    /not checked/,
  ),
  row(
    'a policy that works',
    {
      plan: [policy(VALIDATING)],
      objects: [policy(VALIDATING, { observedGeneration: 1 }), bindingOf(VALIDATING)],
    },
    ['admission', 'ok'],
    /is bound/,
  ),
  row(
    'a webhook without a CA',
    { objects: [hook({ service: { namespace: 'n', name: 's' } })] },
    ['admission', 'fail'],
    /no caBundle/,
  ),
  row(
    'a webhook without a pod',
    { objects: [HOOK, slice(false)] },
    ['admission', 'fail'],
    /without a ready pod: n\/s/,
  ),
  row('a webhook that answers', { objects: [HOOK, slice(true)] }, ['admission', 'ok'], /has a CA/),
];
table(test, after, ({ input, check, level, says, fix }) => {
  const found = checkAfter({ ...NOTHING, ...input }, []).filter((line) => line.check === check);
  const line = found.find((one) => says.test(one.message));
  assert.ok(line, JSON.stringify(found));
  assert.equal(line.level, level);
  if (fix !== undefined) assert.match(line.fix ?? '', fix);
});

test('what reports by conditions counts: trouble fails, work in progress warns, silence is not taken for health', () => {
  const reported = (state: StatusRow['state']): StatusRow => ({
    system: 's',
    object: 'PullStatus/a/b',
    state,
    reason: 'R',
    message: 'm',
  });
  const levels = (...rows: readonly StatusRow[]) =>
    checkAfter(NOTHING, rows).flatMap(({ check, level }) => (check === 'status' ? level : []));
  assert.deepEqual(levels(reported('Ready'), reported('Attention'), reported('Progressing')), [
    'ok',
    'fail',
    'warn',
  ]);
  assert.deepEqual(levels(), ['warn']);
  assert.equal(worstLevel([]), 'ok');
});

test.run();
