/** The end-to-end cases: entries come and go, and the provider finds the credential of a mirror on the same host. */
import { isMatchImage } from '../../../../runtime/credential-provider/kind.ts';
import { filesOf } from '../../../credential-provider/support/machine-config-files.ts';
import { pullSecret, requestFor, tokenFor } from '../../../credential-provider/support/node-double.ts';
import { run } from '../../../credential-provider/support/one-run.ts';
import { reconcile } from '../../../credential-provider/support/reconcile-once.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Case {
  readonly name: string;
  readonly set: readonly string[];
  readonly then?: readonly string[];
  readonly wantFileContains?: string;
  readonly wantNot?: readonly string[];
  readonly wantProviderGone?: boolean;
  readonly genericFileRemoved?: boolean;
  readonly wantError?: boolean;
  readonly secretAuths?: Readonly<Record<string, { readonly auth: string }>>;
  readonly idms?: {
    readonly source: string;
    readonly mirrors: readonly string[];
    readonly mirrorSourcePolicy: string;
  };
  readonly podImage?: string;
  readonly wantJournal?: string;
}

type Outcome = Readonly<Record<string, boolean>>;

export const suite: ConformanceSuite<Case, Outcome> = {
  cases(document) {
    const { cases } = document as { cases: readonly Case[] };
    return cases.map((one) => ({ name: one.name, input: one, expected: expectedOf(one) }));
  },
  answer: (one) => (one.wantJournal === undefined ? rendered(one) : provided(one)),
  mutation: {
    file: 'runtime/credential-provider/merge.ts',
    replace: 'matchImages: [...new Set(kept)].sort()',
    by: "matchImages: ['*.myhost.io']",
  },
};

function expectedOf(one: Case): Outcome {
  const wanted = {
    ...(one.wantFileContains === undefined ? {} : { hasAll: true }),
    ...(one.wantNot === undefined ? {} : { hasRemoved: false }),
    ...(one.wantProviderGone === undefined ? {} : { isGone: one.wantProviderGone }),
    ...(one.wantError === undefined ? {} : { isRefused: one.wantError }),
    ...(one.wantJournal === undefined ? {} : { isWritten: true, hasCredential: true }),
  };
  if (Object.keys(wanted).length === 0) throw new Error(`nothing is wanted of "${one.name}"`);
  return wanted;
}

function rendered(one: Case): Outcome {
  const text = fileFor(one.then ?? one.set);
  return {
    ...(one.wantFileContains === undefined ? {} : { hasAll: one.set.every((entry) => text.includes(entry)) }),
    ...(one.wantNot === undefined ? {} : { hasRemoved: one.wantNot.some((entry) => text.includes(entry)) }),
    ...(one.wantProviderGone === undefined ? {} : { isGone: !text.includes('crio-credential-provider') }),
    ...(one.wantError === undefined ? {} : { isRefused: !one.set.every(isMatchImage) }),
  };
}

function fileFor(matchImages: readonly string[]): string {
  const [first] = reconcile({ platform: 'AWS', matchImages }, { platform: 'None' }).configs;
  // The platform's own file stays where ours is taken away, so its entries count.
  return [
    ...filesOf(first).values(),
    '*.dkr.ecr.*.amazonaws.com 123456789.dkr.ecr.us-east-1.amazonaws.com',
  ].join('\n');
}

function provided({ secretAuths, idms, podImage, wantJournal }: Case): Promise<Outcome> {
  if (idms === undefined || podImage === undefined || wantJournal === undefined)
    throw new Error('an incomplete case');
  const conf = [
    '[[registry]]',
    `prefix = ""`,
    `location = "${idms.source}"`,
    `blocked = ${idms.mirrorSourcePolicy === 'NeverContactSource'}`,
    ...idms.mirrors.flatMap((mirror) => [
      '[[registry.mirror]]',
      `location = "${mirror}"`,
      'pull-from-mirror = "digest-only"',
    ]),
  ];
  const setup = {
    api: { secrets: [pullSecret('mirror', secretAuths)] },
    files: { registriesConf: `${conf.join('\n')}\n` },
    stdin: requestFor(podImage.replace(/@.*/, ''), tokenFor('default')),
  };
  return run(setup, ({ log, auths }) => ({
    isWritten: log.some((line) => line.startsWith(wantJournal.replace(/\/etc\/crio\/auth\/$/, ''))),
    hasCredential: Object.values(secretAuths ?? {}).every(({ auth }) => JSON.stringify(auths).includes(auth)),
  }));
}
