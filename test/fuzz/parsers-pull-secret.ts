/** Everything that reads a pull secret, or a file of the same form. */
import { describeSecretValue } from '../../runtime/commands/reconcile/report.ts';
import { lookupForContainers } from '../../runtime/core/docker-config/containers-keyring.ts';
import { kubeletKeyring, lookupForKubelet } from '../../runtime/core/docker-config/kubelet-keyring.ts';
import {
  parseDockerConfig,
  pullSecretOf,
  readersDigest,
  toBase64,
  upstreamAgentFault,
} from '../../runtime/core/docker-config/pull-secret.ts';
import { isNamespaceName, type SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { type Redacted, redact, reveal } from '../../runtime/core/redacted.ts';
import { authFile, parseGlobalAuth } from '../../runtime/credential-provider/auth-file.ts';
import { validateDockerConfig } from '../../runtime/diagnose/checks/docker-config.ts';
import { parseDocument } from '../../runtime/global-pull-secret/agent/document.ts';
import { configHash } from '../../runtime/global-pull-secret/eligibility.ts';
import { entryDigests, upstreamRefusal } from '../../runtime/global-pull-secret/reconciler/plan.ts';
import { judgedMark } from '../../runtime/global-pull-secret/removal-guard.ts';
import { JobError } from '../../runtime/pull-secret-adapter/job/gcp-error.ts';
import { assertPullSecret } from '../../runtime/pull-secret-adapter/job/job.ts';
import {
  judgePullSecret,
  pullSecretHash,
  pullSecretHint,
} from '../../runtime/pull-secret-adapter/pull-secret.ts';
import { plantedAuth } from '../support/canary.ts';
import { canonicalDockerConfig } from '../support/canonical-docker-config.ts';
import { AUTHS, jsonOf } from './corpus.ts';
import { holds, type Parser, readersOf, unlessNamed } from './parser.ts';

/** A key of one escaped character: V8 reads it as a backslash, once in some hundred thousand times. No registry has such a name. */
const ESCAPED_KEY = /"\\(?:u[0-9a-f]{4}|.)":/i;
const SECRET: SecretObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } };

/** Names that stand in `pullSecret`, which messages show. */
export function registriesOf(pullSecret: Redacted<string> | undefined): readonly string[] {
  return pullSecret === undefined ? [] : keysOf(reveal(pullSecret));
}

function keysOf(text: string): readonly string[] {
  try {
    const { auths } = JSON.parse(text) as { auths?: object };
    return Object.keys(auths ?? {});
  } catch {
    return [];
  }
}

export const PULL_SECRET_PARSERS: readonly Parser[] = readersOf(
  {
    corpus: [
      AUTHS,
      '{"auths":null}',
      `{"quay.io":{"auth":"${plantedAuth('cfg')}"}}`,
      `{"credHelpers":{"r.io":"x"},"auths":{"r.io":{"auth":"${plantedAuth('node')}"}}}`,
      jsonOf({ auths: { '*.example.com': { auth: plantedAuth('star') }, 'https://quay.io/v2/': {} } }),
      // Texts that are mistaken for pull secrets.
      '"e30="',
      '<html>',
      jsonOf(jsonOf({ auths: {} })),
    ],
    unit: '"r.io":{"auth":"eDp5"},',
  },
  {
    'docker config': (text) => {
      const parsed = parseDockerConfig(redact(text));
      parseDockerConfig(redact(text), 'dockercfg');
      if (!parsed.ok) return parsed;
      const canonical = canonicalDockerConfig(parsed.config);
      const again = parseDockerConfig(canonical);
      holds(
        again.ok && reveal(canonicalDockerConfig(again.config)) === reveal(canonical),
        'the canonical form',
      );
      const names = parsed.config.entries.flatMap(({ key, kubelet, containers }) => [
        key.written,
        kubelet?.username,
        kubelet?.email,
        containers?.username,
      ]);
      return unlessNamed(names, [parsed, validateDockerConfig(redact(text))]);
    },
    'the kubelet file of a node': (text) =>
      parseDocument(redact(new Uint8Array(Buffer.from(text))), 'the file'),
    "the node's auth file": (text) => {
      const global = parseGlobalAuth(redact(text));
      if (global === undefined) return undefined;
      const choice = { entries: [], keyBySource: new Map(), skipped: [] };
      const sources = [...reveal(global.auths).keys()].map((repository) => ({
        repository,
        kind: 'mirror' as const,
      }));
      const file = authFile({ choice, sources, global });
      if (ESCAPED_KEY.test(reveal(file.text))) return global;
      const again = parseGlobalAuth(file.text);
      holds(again !== undefined, 'the auth file');
      const same = again && authFile({ choice, sources, global: again });
      holds(same !== undefined && reveal(same.text) === reveal(file.text), 'the auth file');
      return global;
    },
    'keys that images are looked up by': (text) => {
      const secret = redact(text);
      const source = { name: 'a', format: 'config.json', text: secret } as const;
      const image = 'registry.example.com/team/app';
      const ring = kubeletKeyring({ secrets: [source] });
      const tried = ring.ok ? lookupForKubelet(ring.rings, image).map(({ written }) => written) : [];
      const { found } = lookupForContainers([source], image);
      return unlessNamed(tried, [tried, found]);
    },
    'pull secret that is compared': (text) => {
      const secret = pullSecretOf({ ...SECRET, data: { '.dockerconfigjson': toBase64(redact(text)) } });
      const digests = entryDigests(secret);
      return unlessNamed(
        [...digests.keys()],
        [
          upstreamAgentFault(redact(text)),
          judgedMark(redact(text)),
          isNamespaceName(text),
          upstreamRefusal(secret),
          [...digests],
          configHash(secret.text),
          readersDigest(secret),
        ],
      );
    },
    'pull secret of a cluster': (text) =>
      unlessNamed(registriesOf(redact(text)), judgePullSecret(redact(text))),
    'what changed in a Secret': (text) => {
      const value = (one: string) => redact(Buffer.from(one).toString('base64'));
      const said = [
        describeSecretValue(value(AUTHS), value(text)),
        describeSecretValue(undefined, redact(text)),
      ];
      return unlessNamed(keysOf(text), said);
    },
    'pull secret of a Job': (text) => {
      holds(pullSecretHash(redact(text)).length === 64, 'the hash');
      try {
        assertPullSecret(redact(text));
        return true;
      } catch (error) {
        // The message names registries, which a mutation can make of anything.
        if (error instanceof JobError) return error.reason;
        throw error;
      }
    },
    'what a text is instead of a pull secret': (text) => pullSecretHint(text),
  },
);
