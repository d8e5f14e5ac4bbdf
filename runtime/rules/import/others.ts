/**
 * Kyverno policies, Gatekeeper mutations, ClusterExternalSecret, registry-creds (ClusterPullSecret) and imagepullsecret-patcher: what of them concerns pull
 * secrets is carried over, or named with the reason why it is not.
 *
 * Source of the rule: the documents of kyverno/kyverno, external-secrets/external-secrets, alexellis/registry-creds and
 * titansoft-pte-ltd/imagepullsecret-patcher.
 *
 * An import carries names and never a value or an annotation: profiles need the consent of the owner of the source, which an
 * annotation of years ago is not. What would mean something else as a profile is dropped with its reason.
 */

import type { KubeObject } from '../kubernetes/object.ts';
import { isNamespaceName } from '../kubernetes/object-names.ts';
import { recordOf } from '../record.ts';
import { dropped, together } from './copies.ts';
import type { ImportedPart, ImportedProfile, ImportNote } from './types.ts';
import { subjectOf } from './types.ts';

type Raw = Readonly<Record<string, unknown>>;

const NAME_LABEL = 'kubernetes.io/metadata.name';
const PULL_SECRET = 'kubernetes.io/dockerconfigjson';
const NOTHING: ImportedPart = { notes: [] };

/** All of them. */
export function importOthers(objects: readonly KubeObject[]): ImportedPart {
  return together(objects.map(importOne));
}

function importOne(object: KubeObject): ImportedPart {
  const group = object.apiVersion.split('/')[0] ?? '';
  if (group === 'kyverno.io') return importKyverno(object);
  if (group === 'external-secrets.io' && object.kind === 'ClusterExternalSecret')
    return importExternal(object);
  if (group === 'ops.alexellis.io' && object.kind === 'ClusterPullSecret') return importRegistryCreds(object);
  const reason = MUTATORS[`${group} ${object.kind}`];
  if (reason !== undefined) return mentions(object) ? note(dropped(subjectOf(object), reason)) : NOTHING;
  return object.kind === 'Deployment' ? importPatcher(object) : NOTHING;
}

const BY_HAND = 'write a profile with mode Inject';

/** Kinds whose rules are written in a language: they are only named, when they speak of pull secrets. */
const MUTATORS: Readonly<Record<string, string>> = {
  'policies.kyverno.io MutatingPolicy': `adds pull secrets by CEL: ${BY_HAND}`,
  'policies.kyverno.io GeneratingPolicy': 'makes Secrets by CEL: write a profile with mode Distribute',
  'mutations.gatekeeper.sh Assign': `adds pull secrets to pods: ${BY_HAND}`,
  'mutations.gatekeeper.sh ModifySet': `adds pull secrets to pods: ${BY_HAND}`,
  'admissionregistration.k8s.io MutatingAdmissionPolicy': `adds pull secrets by CEL: ${BY_HAND}`,
};

/** What our own reconciler made is no other tool's. */
function mentions({ metadata, spec }: KubeObject): boolean {
  if (metadata.labels?.['pullwright.dev/owner'] !== undefined) return false;
  return /imagePullSecrets|dockerconfigjson|imagepullsecret/i.test(JSON.stringify(spec ?? {}));
}

function importKyverno(object: KubeObject): ImportedPart {
  const rules = list(recordOf(object.spec)['rules']).map(recordOf);
  const prefix = subjectOf(object);
  return together(
    rules.map((rule, at) => {
      const name = text(rule['name']) ?? String(at);
      const subject = `${prefix} rule ${name}`;
      const generate = recordOf(rule['generate']);
      if (generate['kind'] === 'Secret' || generate['cloneList'] !== undefined)
        return generated(rule, generate, subject);
      const mutate = recordOf(rule['mutate']);
      const names = injectedBy(mutate);
      if (names !== undefined && isNarrowed(mutate)) return note(dropped(subject, NARROWED));
      return names === undefined
        ? NOTHING
        : mutated(rule, { names, subject, profile: `${object.metadata.name}-${name}` });
    }),
  );
}

function generated(rule: Raw, generate: Raw, subject: string): ImportedPart {
  if (generate['data'] !== undefined)
    return note(
      dropped(subject, 'holds its Secret in clear: make it a Secret, and name it as the source of a profile'),
    );
  const clone = recordOf(generate['clone']);
  const [name, namespace] = [text(clone['name']), text(clone['namespace'])];
  if (name === undefined || namespace === undefined)
    return note(dropped(subject, 'clones a list of Secrets: write a profile with each as a source'));
  const target = namespacesOf(rule, 'Namespace');
  if (typeof target === 'string')
    return note(
      dropped(subject, `${target}: write a profile with mode Distribute for Secret ${namespace}/${name}`),
    );
  const copy = text(generate['name']) ?? name;
  if (copy.includes('{{'))
    return note(dropped(subject, 'names its copies by a variable: write a profile with a fixed name'));
  return {
    profiles: [
      {
        name: copy,
        spec: {
          namespaceSelector: target,
          mode: 'Distribute',
          secrets: [{ name: copy, sources: [{ namespace, name }] }],
        },
      },
    ],
    grants: [{ namespace, name, to: '*' }],
    notes: [
      {
        outcome: 'changed',
        subject,
        message: `profile ${copy}: namespaces that are there already are served too; narrow the grant to those that are meant`,
      },
    ],
  };
}

/** Names that a mutation adds to pods; undefined when it does not concern pull secrets. */
function injectedBy(mutate: Raw): readonly string[] | undefined {
  if (!JSON.stringify(mutate).includes('imagePullSecrets')) return undefined;
  const references = list(recordOf(recordOf(mutate['patchStrategicMerge'])['spec'])['imagePullSecrets']);
  return references.flatMap((one) => text(recordOf(one)['name']) ?? []);
}

const NARROWED =
  'adds pull secrets only to the pods that its anchors or targets choose, such as by image: write a profile with mode Inject and a selector of those pods';

/** Whether anchors (`(image)`, `<(image)`, `=(x)`, `X(x)`; `+(x)` adds) or targets choose the pods. */
function isNarrowed({ targets, patchStrategicMerge }: Raw): boolean {
  return targets !== undefined || hasAnchor(patchStrategicMerge);
}

function hasAnchor(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => /^[<=X^]?\(.*\)$/.test(key) || hasAnchor(inner));
}

function mutated(
  rule: Raw,
  {
    names,
    subject,
    profile,
  }: { readonly names: readonly string[]; readonly subject: string; readonly profile: string },
): ImportedPart {
  const target = namespacesOf(rule, 'Pod');
  const reason =
    names.length === 0 || names.some((name) => name.includes('{{'))
      ? 'adds pull secrets by a patch that is no plain list'
      : typeof target === 'string'
        ? target
        : undefined;
  if (reason !== undefined || typeof target === 'string')
    return note(dropped(subject, `${reason}: write a profile with mode Inject`));
  const spec: ImportedProfile['spec'] = {
    namespaceSelector: target,
    selector: {},
    mode: 'Inject',
    secrets: names.map((name) => ({ name })),
  };
  return {
    profiles: [{ name: profile, spec }],
    notes: [
      {
        outcome: 'carried',
        subject,
        message: `profile ${profile}: names only; the Secrets must come from somewhere`,
      },
    ],
  };
}

/** The namespaces that a rule concerns, or why that cannot be said by a selector. */
function namespacesOf(rule: Raw, kind: 'Namespace' | 'Pod'): object | string {
  if (rule['preconditions'] !== undefined) return 'has preconditions';
  if (rule['exclude'] !== undefined) return 'excludes some';
  const match = recordOf(rule['match']);
  const blocks = [...list(match['any']), ...list(match['all'])].map(recordOf);
  const resources = blocks.map((one) => recordOf(one['resources']));
  const [only = recordOf(match['resources']), ...more] = resources;
  return more.length > 0 ? 'matches by several blocks' : selectorOf(only, kind);
}

function selectorOf(resources: Raw, kind: 'Namespace' | 'Pod'): object | string {
  const [namesKey, selectorKey] =
    kind === 'Namespace' ? ['names', 'selector'] : ['namespaces', 'namespaceSelector'];
  if (!list(resources['kinds']).every((one) => text(one)?.split('/').at(-1) === kind))
    return `matches other kinds than ${kind}`;
  const names = list(resources[namesKey]).flatMap((one) => text(one) ?? []);
  if (names.some((name) => /[*?]/.test(name))) return 'matches namespaces by a pattern';
  const known = ['kinds', namesKey, selectorKey, 'operations'];
  const strange = Object.keys(resources).find((key) => !known.includes(key));
  if (strange !== undefined) return `matches by "${strange}"`;
  if (names.length > 0) return { matchExpressions: [{ key: NAME_LABEL, operator: 'In', values: names }] };
  return recordOf(resources[selectorKey]);
}

function importExternal(object: KubeObject): ImportedPart {
  const spec = recordOf(recordOf(object.spec)['externalSecretSpec']);
  const target = recordOf(spec['target']);
  const isPull = recordOf(target['template'])['type'] === PULL_SECRET;
  const name =
    text(target['name']) ?? text(recordOf(object.spec)['externalSecretName']) ?? object.metadata.name;
  const message = isPull
    ? `External Secrets goes on making Secret ${name}: write a profile with mode Inject, so that pods list it`
    : 'makes no pull secret, as far as its template says';
  return note({ outcome: 'kept', subject: subjectOf(object), message });
}

function importRegistryCreds(object: KubeObject): ImportedPart {
  const source = recordOf(recordOf(object.spec)['secretRef']);
  const [name, namespace] = [text(source['name']), text(source['namespace'])];
  const subject = subjectOf(object);
  if (name === undefined || namespace === undefined)
    return note(dropped(subject, 'names no Secret in spec.secretRef'));
  const message = `profile ${object.metadata.name}: pods get the name at admission instead of by their ServiceAccount; namespaces that opted out by annotation need the label pullwright.dev/inject=false`;
  return {
    profiles: [everywhere(object.metadata.name, { namespace, name }, [namespace])],
    grants: [{ namespace, name, to: '*' }],
    notes: [{ outcome: 'changed', subject, message }],
  };
}

function everywhere(
  name: string,
  source: { readonly namespace: string; readonly name: string },
  except: readonly string[],
): ImportedProfile {
  const namespaceSelector = { matchExpressions: [{ key: NAME_LABEL, operator: 'NotIn', values: except }] };
  return {
    name,
    spec: {
      namespaceSelector,
      selector: {},
      mode: 'InjectAndDistribute',
      secrets: [{ name, sources: [source] }],
    },
  };
}

/** A Deployment of imagepullsecret-patcher, told by its image. */
function importPatcher(object: KubeObject): ImportedPart {
  const pod = recordOf(recordOf(recordOf(object.spec)['template'])['spec']);
  const container = list(pod['containers'])
    .map(recordOf)
    .find((one) => text(one['image'])?.includes('imagepullsecret-patcher') === true);
  if (container === undefined) return NOTHING;
  const { namespace = 'default' } = object.metadata;
  const subject = subjectOf(object);
  const env = list(container['env']).map(recordOf);
  const valueOf = (key: string): string | undefined =>
    text(env.find((one) => one['name'] === key)?.['value']);
  const source = sourceOf(env, pod);
  if (source === undefined)
    return note(
      dropped(
        subject,
        'holds its credential in clear: make it a Secret, and name it as the source of a profile',
      ),
    );
  const excluded = (valueOf('CONFIG_EXCLUDED_NAMESPACES') ?? '')
    .split(',')
    .map((one) => one.trim())
    // It compares whole names: what is none excludes nothing.
    .filter(isNamespaceName);
  const copy = valueOf('CONFIG_SECRETNAME') ?? 'image-pull-secret';
  const message = `profile ${copy}: pods get the name at admission instead of by their ServiceAccount; namespaces that opted out by annotation need the label pullwright.dev/inject=false`;
  return {
    profiles: [everywhere(copy, { namespace, name: source }, [...new Set([namespace, ...excluded])])],
    grants: [{ namespace, name: source, to: '*' }],
    notes: [{ outcome: 'changed', subject, message }],
  };
}

function sourceOf(env: readonly Raw[], pod: Raw): string | undefined {
  const given = env.find((one) => one['name'] === 'CONFIG_DOCKERCONFIGJSON');
  const byEnv = text(recordOf(recordOf(given?.['valueFrom'])['secretKeyRef'])['name']);
  const volumes = list(pod['volumes']).map((one) => text(recordOf(recordOf(one)['secret'])['secretName']));
  return byEnv ?? volumes.find((name) => name !== undefined);
}

function note(one: ImportNote): ImportedPart {
  return { notes: [one] };
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
