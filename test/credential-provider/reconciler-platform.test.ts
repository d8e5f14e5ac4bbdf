/** Which file a pool's kubelets read: what the cluster says of itself, and when that is not enough to write anything. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { type Case, table, test } from '../support/suite.ts';
import { filesOf } from './support/machine-config-files.ts';
import { reconcile } from './support/reconcile-once.ts';
import type { ClusterShape } from './support/world-double.ts';

const FOLDER = '/etc/kubernetes/credential-providers';

/** The pool's rendered config with this kubelet unit. */
function unit(execStart: string): KubeObject {
  const contents = `[Service]\nExecStart=${execStart}\n`;
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: 'rendered-worker-1' },
    spec: { config: { systemd: { units: [{ name: 'kubelet.service', contents }] } } },
  };
}

interface Row extends Case {
  readonly shape: ClusterShape;
  readonly options?: object;
  /** Paths that are rendered; none: it is held back. */
  readonly paths: readonly string[];
  readonly says?: RegExp;
}

const DROP_IN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';
const rows: readonly Row[] = [
  {
    name: 'no Infrastructure object',
    reason: 'on a cloud the generic file would take its own providers away',
    shape: { platform: null },
    paths: [],
    says: /Infrastructure\/cluster not found.*"platform"/,
  },
  {
    name: 'no Infrastructure object, but the option',
    reason: 'somebody who knows has said it',
    shape: { platform: null },
    options: { platform: 'AWS' },
    paths: [`${FOLDER}/ecr-credential-provider.yaml`],
  },
  {
    name: 'an Infrastructure object that says nothing',
    reason: 'as bad as none',
    shape: { platform: '' },
    paths: [],
    says: /names no platform/,
  },
  {
    name: 'a platform that is not known',
    reason: 'every platform without a provider of its own has the generic file',
    shape: { platform: 'Moon' },
    paths: [`${FOLDER}/generic-credential-provider.yaml`, DROP_IN],
  },
  {
    name: 'a platform without a provider, and a kubelet that has one',
    reason: 'what the unit says is true of this kubelet',
    shape: {
      platform: 'None',
      more: [
        unit(`/usr/bin/kubelet --image-credential-provider-config=${FOLDER}/ecr-credential-provider.yaml`),
      ],
    },
    paths: [],
    says: /its kubelet reads ".*ecr-credential-provider\.yaml" already/,
  },
  {
    name: 'a cloud whose unit has the flag',
    reason: 'no drop-in is needed',
    shape: {
      platform: 'GCP',
      more: [
        unit(`/usr/bin/kubelet --image-credential-provider-config=${FOLDER}/gcr-credential-provider.yaml`),
      ],
    },
    paths: [`${FOLDER}/gcr-credential-provider.yaml`],
  },
  {
    name: 'a cloud whose unit lacks the flag',
    reason: 'else the file would never be read',
    shape: {
      platform: 'GCP',
      more: [unit('/usr/bin/kubelet --v=2 $KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS')],
    },
    paths: [`${FOLDER}/gcr-credential-provider.yaml`, DROP_IN],
  },
  {
    name: 'a rendered config that is not there',
    reason: 'the known template of the platform is what it would hold',
    shape: { platform: 'Azure' },
    paths: [`${FOLDER}/acr-credential-provider.yaml`],
  },
];

table(test, rows, ({ shape, options, paths, says }) => {
  const { configs, conditions, outcome } = reconcile(
    { pools: ['worker'], ...shape },
    parseReconcilerOptions({ ...options })(''),
  );
  assert.deepEqual(configs[0] === undefined ? [] : [...filesOf(configs[0]).keys()], paths);
  if (says === undefined) return;
  const rendered = conditions.get('MachineConfigRendered');
  assert.deepEqual([rendered?.status, rendered?.reason], ['False', 'MachineConfigRenderingFailed']);
  assert.match(rendered?.message ?? '', says);
  assert.ok(
    outcome.retain !== undefined && outcome.retain !== 'all' && outcome.retain.length === 1,
    'it stays',
  );
});

test('without entries nothing is unclear', () => {
  const { configs } = reconcile({ pools: ['worker'], platform: null, matchImages: null });
  assert.equal(configs[0]?.kind, 'MachineConfig');
});
