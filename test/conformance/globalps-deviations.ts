/** Deliberate differences from HyperShift for the global pull secret. */
import { type Deviation, deviates, text } from './suite.ts';

/** Whether Go's decoder rejects a docker config because a value has the wrong type. */
function readersRefuse(content: string): boolean {
  try {
    const { auths } = JSON.parse(content) as { readonly auths?: unknown };
    if (typeof auths !== 'object' || auths === null || Array.isArray(auths)) return auths !== null;
    const texts = ['auth', 'username', 'password', 'email', 'identitytoken', 'registrytoken'];
    return Object.values(auths).some((entry: unknown) => {
      if (entry === null) return false;
      if (typeof entry !== 'object' || Array.isArray(entry)) return true;
      return texts.some(
        (name) => typeof ((entry as Readonly<Record<string, unknown>>)[name] ?? '') !== 'string',
      );
    });
  } catch {
    return false;
  }
}

/** The document as JavaScript reads it; undefined for text that is none, or no object. */
function objectIn(content: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const document: unknown = JSON.parse(content);
    return typeof document === 'object' && document !== null && !Array.isArray(document)
      ? (document as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}

function entriesIn(content: string): readonly (readonly [string, unknown])[] {
  const auths = objectIn(content)?.['auths'];
  return typeof auths === 'object' && auths !== null ? Object.entries(auths) : [];
}

/** Whether an entry has a registry without a credential, or a credential without a registry. */
function hasIdleEntry(content: string): boolean {
  return entriesIn(content).some(([key, entry]) => {
    const { auth, username } = (entry ?? {}) as { readonly auth?: unknown; readonly username?: unknown };
    return key === '' || (auth === undefined && username === undefined);
  });
}

function hasField(content: string, is: (name: string) => boolean): boolean {
  return Object.keys(objectIn(content) ?? {}).some(is);
}

function additionalOf(input: unknown): string {
  return (input as { data?: Readonly<Record<string, string>> | null }).data?.['.dockerconfigjson'] ?? '';
}

const IDLE_ENTRY =
  'an entry without a registry or without a credential is of no use to anybody: it is left out and reported';

export const GLOBALPS_DEVIATIONS: Readonly<Record<string, readonly Deviation[]>> = {
  'globalps/merge-pull-secrets': [
    deviates(
      "the platform's other fields stay; the peer loses them on every node that has an additional secret",
      (input) =>
        hasField(text(input, 'original'), (name) => name !== 'auths' && name.toLowerCase() !== 'auths'),
    ),
    deviates(
      'the name "auths" is read without regard to case, as the kubelet does; the peer crashes',
      (input) =>
        hasField(text(input, 'original'), (name) => name !== 'auths' && name.toLowerCase() === 'auths'),
    ),
    deviates(
      IDLE_ENTRY,
      (input) => hasIdleEntry(text(input, 'original')) || hasIdleEntry(text(input, 'additional')),
    ),
    deviates(
      "a tenant's secret that cannot be read never holds up the platform's: that is written, and the error is said",
      (input) => typeof objectIn(text(input, 'additional'))?.['auths'] !== 'object',
    ),
  ],
  'globalps/validate-additional': [
    deviates(IDLE_ENTRY, (input) => hasIdleEntry(additionalOf(input))),
    deviates(
      'a document that is null is refused as no object; the peer says that it has no entry',
      (input) => additionalOf(input) === 'null',
    ),
    deviates(
      'of the additional secret only the entries are used, so that another field cannot spoil them',
      (input) => hasField(additionalOf(input), (name) => name === 'HttpHeaders'),
    ),
  ],
  'globalps/agent-check-and-fix': [
    deviates(
      'content that the kubelet and CRI-O refuse as a whole (auths no object, an entry no object, a field no text) is not written; the node keeps what it has',
      (input) => readersRefuse(text(input, 'secretContent')),
    ),
  ],
  'globalps/reconcile': [
    deviates(
      'a Secret of the namespace that is none of the three it works with wakes nobody',
      ({ object, hcpNamespace }: { object?: string; hcpNamespace?: string }) =>
        hcpNamespace === undefined && object?.startsWith('kube-system/') === true,
    ),
  ],
  'globalps/eligibility-and-labels': [
    deviates(
      'the controller runs on every platform, as requirement 1 says; only the node label is limited to AWS and Azure',
      ({ platform, upgradeType }: { platform: string; upgradeType?: string }) =>
        upgradeType === undefined && !['AWS', 'Azure'].includes(platform),
    ),
    deviates(
      "a pool's own labels and taints stay with HyperShift's controller of NodePools; ours is the label of eligibility",
      (input) => 'nodeLabels' in (input as object),
    ),
  ],
};
