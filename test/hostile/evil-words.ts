/** Names, keys and messages that attack a person's terminal, in every field that others can set. */
import { meta, pullSecretObject } from '../support/meta.ts';

/** ESC sequences that clear, write the clipboard and set the title; a carriage return; marks that turn the reading direction. */
export const EVIL = 'x\u001b[2J\u001b]52;c;aGk=\u0007\r\u009b31m\u202ey\u2066z';

/** Lines that a CI system which reads a log would take for commands of this program. */
export const CI_COMMAND = '\n::error::x\n##[error]x';

/** A dump in which whatever a tenant may choose is chosen to do harm. JSON, since YAML would be refused earlier. */
export function dump(word: string = EVIL): string {
  const auths = { [`quay.io/${word}`]: { auth: 'bm90LWEtcGFpcg' }, [word]: { auth: word }, 'r.io': word };
  const message = `it is ${word}`;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      pullSecretObject(
        { namespace: 'openshift-config', name: 'pull-secret' },
        { auths: { 'quay.io': { auth: 'YTpi' } } },
      ),
      pullSecretObject({ namespace: 'kube-system', name: 'additional-pull-secret' }, { auths }),
      pullSecretObject({ namespace: 'web', name: 'team' }, { auths }),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web', annotations: { note: word } } },
      {
        ...meta('v1 Pod', { namespace: 'web', name: 'web' }),
        spec: {
          nodeName: 'node1',
          imagePullSecrets: [{ name: 'team' }, { name: word }],
          containers: [{ name: word, image: `quay.io/a:${word}` }],
        },
        status: {
          phase: 'Pending',
          containerStatuses: [
            {
              name: word,
              image: word,
              state: { waiting: { reason: 'ErrImagePull', message: `${message}: unauthorized` } },
            },
          ],
        },
      },
      {
        ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name: 'set' }),
        spec: { imageDigestMirrors: [{ source: `quay.io/${word}`, mirrors: [word] }] },
      },
      ...roles(word),
      {
        ...meta('pullwright.dev/v1alpha1 PullStatus', { namespace: 'web', name: 'secret-team' }),
        status: {
          entries: [{ key: word, verdict: 'Rejected', message }],
          conditions: [
            {
              type: 'Ready',
              status: 'False',
              reason: 'Bad',
              message,
              lastTransitionTime: '2026-01-01T00:00:00Z',
            },
          ],
        },
      },
    ],
  });
}

/** Rights of an account, with hostile names. */
function roles(word: string): readonly object[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const rule = {
    apiGroups: [word, ''],
    resources: ['secrets', word],
    resourceNames: [word],
    verbs: ['get', word],
  };
  const subject = { kind: 'ServiceAccount', name: word, namespace: 'web' };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'web', name: word } },
    {
      apiVersion,
      kind: 'ClusterRole',
      metadata: { name: word },
      rules: [rule, { ...rule, resourceNames: [] }],
    },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name: word },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: word },
      subjects: [subject],
    },
  ];
}
