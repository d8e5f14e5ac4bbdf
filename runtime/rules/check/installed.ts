/** Whether what was applied is there, served and at work. */
import type { StatusRow } from '../diagnose/status-table.ts';
import { describeObject, type KubeObject } from '../kubernetes/object.ts';
import { recordOf, scalarText, textOf } from '../record.ts';
import { countedOf } from '../text/counted.ts';
import { type CheckInput, type CheckLine, fewNames, ofKind } from './types.ts';

const keyOf = ({ kind, metadata }: KubeObject): string =>
  describeObject({ kind, namespace: metadata.namespace, name: metadata.name });

type Conditions = readonly Readonly<Record<string, unknown>>[];

function conditionsOf({ status }: KubeObject): Conditions {
  const { conditions } = recordOf(status);
  return Array.isArray(conditions) ? conditions.map(recordOf) : [];
}

/** Objects of the plan that are not there. */
export function presentLine({ objects, plan }: CheckInput): CheckLine {
  const there = new Set(objects.map(keyOf));
  const missing = plan.map(keyOf).filter((key) => !there.has(key));
  if (missing.length === 0)
    return {
      check: 'objects',
      level: 'ok',
      message:
        plan.length === 1
          ? 'the object of the plan is there'
          : `all ${plan.length} objects of the plan are there`,
    };
  return {
    check: 'objects',
    level: 'fail',
    message: `${countedOf(missing.length, plan.length, ['object', 'objects'], ['of the plan is', 'of the plan are'])} not there: ${fewNames(missing)}`,
    fix: 'Apply what synth renders for this cluster, or look at what the GitOps tool says of it',
  };
}

/** Definitions that the API server serves. */
export function servedLines({ objects, plan }: CheckInput): readonly CheckLine[] {
  const there = new Map(ofKind(objects, 'CustomResourceDefinition').map((crd) => [crd.metadata.name, crd]));
  return ofKind(plan, 'CustomResourceDefinition').flatMap(({ metadata: { name } }): readonly CheckLine[] => {
    const crd = there.get(name);
    if (crd === undefined) return [];
    const established = conditionsOf(crd).find((one) => one['type'] === 'Established');
    if (established?.['status'] === 'True')
      return [{ check: 'crds', level: 'ok', message: `${name} is served` }];
    return [
      {
        check: 'crds',
        level: 'fail',
        message: `${name} is not served: ${textOf(established?.['message']) || 'the API server says nothing of it'}`,
        fix: `kubectl get crd ${name} -o yaml`,
      },
    ];
  });
}

const WORKLOADS = ['Deployment', 'DaemonSet', 'StatefulSet'];

/** Workloads of the plan: as many pods ready as are wanted. */
export function workloadLines({ objects, plan }: CheckInput): readonly CheckLine[] {
  const there = new Map(ofKind(objects, ...WORKLOADS).map((one) => [keyOf(one), one]));
  return ofKind(plan, ...WORKLOADS).flatMap((planned): readonly CheckLine[] => {
    const found = there.get(keyOf(planned));
    return found === undefined ? [] : [workloadLine(found)];
  });
}

function workloadLine(workload: KubeObject): CheckLine {
  const { metadata, kind } = workload;
  const name = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  const { ready, wanted, seen } = countsOf(workload);
  const fix = `kubectl describe ${kind.toLowerCase()} -n ${metadata.namespace ?? ''} ${metadata.name}; for a pod that does not pull, pullwright doctor --all -n ${metadata.namespace ?? ''}`;
  if (!seen)
    return {
      check: 'workloads',
      level: 'fail',
      message: `${name} has not been looked at by its controller yet`,
      fix,
    };
  if (wanted === 0)
    return {
      check: 'workloads',
      level: 'fail',
      message: `${name} wants no pod${kind === 'DaemonSet' ? ': no node is eligible' : ''}`,
      fix:
        kind === 'DaemonSet'
          ? 'pullwright check --pre says which nodes are eligible, and why not'
          : 'Set its replicas',
    };
  if (ready < wanted)
    return {
      check: 'workloads',
      level: 'fail',
      message: `${name} has ${ready} of ${wanted} pods ready`,
      fix,
    };
  return { check: 'workloads', level: 'ok', message: `${name} has all ${wanted} pods ready` };
}

function countsOf({ kind, metadata, spec, status }: KubeObject): {
  readonly ready: number;
  readonly wanted: number;
  readonly seen: boolean;
} {
  const told = recordOf(status);
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
  const generation = number(recordOf(metadata)['generation']);
  const seen = number(told['observedGeneration']) >= Math.max(1, generation);
  if (kind === 'DaemonSet')
    return { ready: number(told['numberReady']), wanted: number(told['desiredNumberScheduled']), seen };
  const { replicas = 1 } = recordOf(spec);
  return { ready: number(told['readyReplicas']), wanted: number(replicas), seen };
}

/** Admission: policies whose expressions the API server has checked, with a binding; webhooks with a CA and an answering service. */
export function admissionLines(input: CheckInput): readonly CheckLine[] {
  const { objects, plan } = input;
  const there = new Map(objects.map((object) => [keyOf(object), object]));
  const find = (planned: KubeObject): readonly KubeObject[] => {
    const found = there.get(keyOf(planned));
    return found === undefined ? [] : [found];
  };
  const policies = ofKind(plan, 'ValidatingAdmissionPolicy', 'MutatingAdmissionPolicy').flatMap(find);
  const hooks = ofKind(objects, 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration').filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright',
  );
  return [
    ...policies.map((policy) => policyLine(policy, objects)),
    ...hooks.map((hook) => webhookLine(hook, objects)),
  ];
}

function policyLine(policy: KubeObject, objects: readonly KubeObject[]): CheckLine {
  const check = 'admission';
  const { name } = policy.metadata;
  const bound = ofKind(objects, `${policy.kind}Binding`).some(
    ({ spec }) => recordOf(spec)['policyName'] === name,
  );
  const { typeChecking, observedGeneration } = recordOf(policy.status);
  const warnings = recordOf(typeChecking)['expressionWarnings'];
  if (!bound)
    return {
      check,
      level: 'fail',
      message: `${policy.kind} ${name} has no binding: it refuses nothing`,
      fix: 'Apply its binding, which is rendered beside it',
    };
  if (Array.isArray(warnings) && warnings.length > 0)
    return {
      check,
      level: 'fail',
      message: `${policy.kind} ${name} has expressions that the API server does not accept`,
      fix: `kubectl get ${policy.kind.toLowerCase()} ${name} -o jsonpath={.status.typeChecking}`,
    };
  const seen = policy.kind === 'MutatingAdmissionPolicy' || observedGeneration !== undefined;
  return seen
    ? { check, level: 'ok', message: `${policy.kind} ${name} is bound, and its expressions are accepted` }
    : {
        check,
        level: 'warn',
        message: `${policy.kind} ${name} is bound, and the controller manager has not checked its expressions yet`,
      };
}

function webhookLine(hook: KubeObject, objects: readonly KubeObject[]): CheckLine {
  const check = 'admission';
  const { name } = hook.metadata;
  const { webhooks } = hook as { readonly webhooks?: unknown };
  const list: readonly unknown[] = Array.isArray(webhooks) ? webhooks : [];
  const configs = list.map((one) => recordOf(recordOf(one)['clientConfig']));
  if (configs.some(({ caBundle }) => typeof caBundle !== 'string' || caBundle === ''))
    return {
      check,
      level: 'fail',
      message: `${name} has no caBundle: the API server cannot trust the webhook`,
      fix: 'Look at what brings its certificate: the log of the webhook, or cert-manager',
    };
  const silent = configs
    .map(({ service }) => recordOf(service))
    .filter(({ namespace, name: service }) => !answers(objects, scalarText(namespace), scalarText(service)));
  if (silent.length > 0)
    return {
      check,
      level: 'fail',
      message: `${name} leads to a service without a ready pod: ${silent.map((one) => `${scalarText(one['namespace'])}/${scalarText(one['name'])}`).join(', ')}`,
      fix: 'Look at the pods of the webhook: kubectl get pods -n NAMESPACE -l app.kubernetes.io/part-of=pullwright',
    };
  return { check, level: 'ok', message: `${name} has a CA, and its service a ready pod` };
}

function answers(objects: readonly KubeObject[], namespace: string, service: string): boolean {
  return ofKind(objects, 'EndpointSlice').some((slice) => {
    if (
      slice.metadata.namespace !== namespace ||
      slice.metadata.labels?.['kubernetes.io/service-name'] !== service
    )
      return false;
    const endpoints: unknown = slice['endpoints'];
    return (
      Array.isArray(endpoints) &&
      endpoints.some((one) => recordOf(recordOf(one)['conditions'])['ready'] === true)
    );
  });
}

/** What reports by conditions, nodes among it: one line for all that is in order, and one for each that is not. */
export function statusLines(rows: readonly StatusRow[]): readonly CheckLine[] {
  if (rows.length === 0)
    return [
      { check: 'status', level: 'warn', message: 'nothing reports yet', fix: 'pullwright status --watch' },
    ];
  const bad = rows.filter(({ state }) => state !== 'Ready');
  const good = rows.length - bad.length;
  return [
    ...(good === 0
      ? []
      : [
          {
            check: 'status',
            level: 'ok',
            message: `${good} of ${rows.length} that report are in order`,
          } as const,
        ]),
    ...bad.map(
      ({ object, reason, message, state }): CheckLine => ({
        check: 'status',
        level: state === 'Attention' ? 'fail' : 'warn',
        message: `${object}: ${reason}: ${message}`,
        ...(state === 'Attention' ? { fix: 'pullwright status says more' } : { fix: 'Wait, and look again' }),
      }),
    ),
  ];
}
