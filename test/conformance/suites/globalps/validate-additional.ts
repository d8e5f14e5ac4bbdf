/** Whether the reconciler's plan accepts the additional secret, and the message for its owner. */

import { type PullSecret, pullSecretOf } from '../../../../runtime/core/docker-config/pull-secret.ts';
import type { EntryStatus } from '../../../../runtime/core/kubernetes/pull-status.ts';
import { planPullSecrets } from '../../../../runtime/global-pull-secret/reconciler/plan.ts';
import { decodeObject } from '../../../../runtime/kube/decode.ts';
import { meta } from '../../../support/meta.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

type Data = Readonly<Record<string, string>>;

interface Input {
  readonly data: Data | null;
}

interface Answer {
  readonly error: string | null;
}

const PLATFORM: Data = { '.dockerconfigjson': '{"auths":{"platform.example":{"auth":"YTpi"}}}' };

export const suite: ConformanceSuite<Input, Answer> = {
  cases: rows,
  answer({ data }) {
    const plan = planPullSecrets({
      platform: secret('pull-secret', PLATFORM),
      additional: secret('additional-pull-secret', data ?? {}),
      global: undefined,
    });
    const rejected = plan.verdicts.find(({ verdict }) => verdict === 'Rejected');
    return { error: rejected === undefined ? null : inTheirWords(rejected) };
  },
  accepts: (actual, expected) => head(actual.error) === head(expected.error),
  mutation: {
    file: 'runtime/global-pull-secret/reconciler/plan.ts',
    replace: 'if (additional.value !== undefined) return merge.ok ? merge.verdicts : [];',
    by: 'if (additional.value !== undefined) return [];',
  },
};

function secret(name: string, data: Data): PullSecret {
  const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
  return pullSecretOf(
    decodeObject({
      ...meta('v1 Secret', { name }),
      type: 'kubernetes.io/dockerconfigjson',
      data: Object.fromEntries(encoded),
    }),
  );
}

function inTheirWords({ reason, message }: EntryStatus): string {
  if (reason === 'KeyMissing') return 'pull secret data is not a valid docker config json';
  if (reason === 'AuthsMissing') return 'docker config json must contain at least one auth entry';
  return `invalid docker config json format: ${reason} ${message}`;
}

/** The text before the colon: the rest comes from Go's parsers. */
function head(error: string | null): string | null {
  return error === null ? null : (error.split(':', 1)[0] ?? '');
}
