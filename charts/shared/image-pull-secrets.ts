/** Pull secrets of our own image: what every pod of ours names, where a registry does not give the image to everybody. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { PodSpec, PodTemplate } from './kubernetes.ts';

/** `imagePullSecrets` of a pod; nothing for no names. */
export function imagePullSecretsOf(names: readonly string[] = []): Pick<PodSpec, 'imagePullSecrets'> {
  return names.length === 0 ? {} : { imagePullSecrets: names.map((name) => ({ name })) };
}

/**
 * `object` with `imagePullSecrets` in its pod template, when it is a Deployment, a DaemonSet, a Job or a CronJob. Other objects
 * come back as they are. In pods and not in ServiceAccounts: their list is replaced as a whole by whoever writes it, and
 * OpenShift writes it.
 *
 * @example
 * ```ts
 * import { withImagePullSecrets } from './image-pull-secrets.ts';
 * import { daemonSet } from './workloads.ts';
 * import assert from 'node:assert/strict';
 *
 * const template = { spec: { containers: [{ name: 'main', image: 'registry.example.com/pullwright:1' }] } };
 * const object = withImagePullSecrets(daemonSet({ metadata: { name: 'a' }, selector: {}, template }), ['registry']);
 * assert.match(JSON.stringify(object), /"imagePullSecrets":\[\{"name":"registry"\}\]/);
 * ```
 */
export function withImagePullSecrets(object: KubeObject, names: readonly string[] = []): KubeObject {
  if (names.length === 0) return object;
  if (object.kind === 'CronJob') {
    const spec = object.spec as { readonly jobTemplate: { readonly spec: Templated } };
    const { jobTemplate } = spec;
    return {
      ...object,
      spec: { ...spec, jobTemplate: { ...jobTemplate, spec: withSecrets(jobTemplate.spec, names) } },
    };
  }
  if (!WITH_TEMPLATE.includes(object.kind)) return object;
  return { ...object, spec: withSecrets(object.spec as Templated, names) };
}

interface Templated {
  readonly template: PodTemplate;
}

const WITH_TEMPLATE = ['DaemonSet', 'Deployment', 'Job'];

function withSecrets(spec: Templated, names: readonly string[]): object {
  const { template } = spec;
  return { ...spec, template: { ...template, spec: { ...template.spec, ...imagePullSecretsOf(names) } } };
}
