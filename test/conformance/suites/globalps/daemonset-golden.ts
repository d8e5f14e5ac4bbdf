/** The objects in upstream's shape, field by field: DaemonSet, ServiceAccount and both Secrets. */
import { isDeepStrictEqual } from 'node:util';
import { mergePullSecrets } from '../../../../runtime/core/docker-config/merge.ts';
import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import {
  upstreamDaemonSet,
  upstreamServiceAccount,
} from '../../../../runtime/global-pull-secret/daemon-set.ts';
import { configHash } from '../../../../runtime/global-pull-secret/eligibility.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

interface Input {
  readonly original: string;
  readonly additional: string | null;
  readonly image: string;
}

interface Answer {
  readonly daemonSet: unknown;
  readonly serviceAccount: unknown;
  readonly originalSecret: unknown;
  readonly globalSecret: unknown;
}

export const suite: ConformanceSuite<Input, Answer> = {
  cases: rows,
  answer({ original, additional, image }) {
    const merged =
      additional === null
        ? undefined
        : mergePullSecrets({ original: redact(original), additional: redact(additional) });
    if (merged !== undefined && !merged.ok) throw new Error(merged.problem.message);
    const configHashOf = configHash(merged === undefined ? redact(original) : merged.text);
    return {
      daemonSet: upstreamDaemonSet({ image }, { configHash: configHashOf, merged: merged !== undefined }),
      serviceAccount: upstreamServiceAccount(),
      originalSecret: { type: 'Opaque', data: original },
      globalSecret:
        merged === undefined ? null : { type: 'kubernetes.io/dockerconfigjson', data: reveal(merged.text) },
    };
  },
  // A case need not speak of every object; those it speaks of are compared whole.
  accepts: (actual, expected) =>
    Object.entries(expected).every(([field, value]) =>
      isDeepStrictEqual(actual[field as keyof Answer], value),
    ),
  mutation: {
    file: 'runtime/global-pull-secret/daemon-set.ts',
    replace: "automountServiceAccountToken: false, dnsPolicy: 'Default'",
    by: "automountServiceAccountToken: false, dnsPolicy: 'ClusterFirst'",
  },
};
