/** Parsers of files and of fields that people write. */
import { parseFleet } from '../../charts/fleet.ts';
import { parseReconcileConfig } from '../../runtime/commands/reconcile/reconcilers.ts';
import { credentialExpiry } from '../../runtime/core/docker-config/expiry.ts';
import { kubeletKey } from '../../runtime/core/docker-config/kubelet-keyring.ts';
import { matchesImage, matchImageFault } from '../../runtime/core/docker-config/match-images.ts';
import { registryKey } from '../../runtime/core/docker-config/registry-key.ts';
import { formatGoDuration, parseGoDuration } from '../../runtime/core/go/duration.ts';
import { toByteText } from '../../runtime/core/go/text.ts';
import { parseGoUrl } from '../../runtime/core/go/url.ts';
import { formatImageReference, parseImageReference } from '../../runtime/core/image-reference.ts';
import { parseRegistriesConf } from '../../runtime/core/mirrors/registries-conf.ts';
import { Redacted, redact } from '../../runtime/core/redacted.ts';
import { decodeCredentialProviderConfig, kubeletRefusal } from '../../runtime/credential-provider/config.ts';
import { parseRequest } from '../../runtime/credential-provider/plugin/request.ts';
import { readExpectations } from '../../runtime/diagnose/commands/test.ts';
import { parseManifests } from '../../runtime/engine/offline/manifests.ts';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { parseCheckpoint } from '../../runtime/node/checkpoint.ts';
import { parseCloudEvent } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { parseChallenge } from '../../runtime/registry/token.ts';
import {
  formatImageOverrides,
  parseImageOverrides,
  parseOverridesFlag,
  sameOverrides,
} from '../../runtime/registry-overrides/overrides.ts';
import { plantedPassword } from '../support/canary.ts';
import { FLEET, IMAGES, jsonOf, KUBECONFIG, MANIFESTS, PROVIDER, REGISTRIES, TOKEN } from './corpus.ts';
import { holds, type Parser, unlessNamed, valueOf } from './parser.ts';

export const TEXT_PARSERS: readonly Parser[] = [
  {
    name: 'image reference',
    corpus: IMAGES,
    unit: '/a',
    run: (text) => {
      const parsed = parseImageReference(text);
      if (!parsed.ok) return parsed;
      const again = parseImageReference(formatImageReference(parsed.reference));
      holds(again.ok && jsonOf(again.reference) === jsonOf(parsed.reference), 'the reference');
      return parsed;
    },
  },
  {
    name: 'registry key',
    corpus: ['quay.io', 'https://index.docker.io/v1/', 'r.io:5000/a/b', '*.example.com'],
    unit: '/a',
    run: (text) => [registryKey(text), kubeletKey(text)],
  },
  {
    name: 'match images',
    corpus: ['*.example.com', 'r.io:5000/team', '*.*.registry.io/a', ...IMAGES],
    unit: '*.',
    run: (text) => [
      matchImageFault(text),
      matchesImage(text, 'a.b.example.com/x'),
      matchesImage('*.example.com', text),
    ],
  },
  {
    name: 'URL',
    corpus: ['https://r.io:5000/a?b=c#d', 'http://[::1]:80/', 'r.io/a%20b', 'https://u:p@r.io'],
    unit: '%41',
    run: (text) => parseGoUrl(toByteText(text)),
  },
  {
    name: 'duration',
    corpus: ['1h', '1h30m', '250ms', '-1.5s', '1us'],
    unit: '1h',
    run: (text) => {
      const parsed = parseGoDuration(text);
      if (parsed !== undefined && Number.isSafeInteger(parsed))
        holds(parseGoDuration(formatGoDuration(parsed)) === parsed, 'the duration');
      return parsed;
    },
  },
  {
    name: 'registries.conf',
    corpus: [REGISTRIES, 'short-name-mode = "permissive"\n'],
    unit: '[[registry]]\nlocation = "a.io"\n',
    run: parseRegistriesConf,
  },
  {
    name: 'overrides text',
    corpus: ['quay.io/a=m.io/a,quay.io/a=n.io/a', 'a=b', '='],
    unit: 'a.io=b.io,',
    run: (text) => {
      const parsed = parseImageOverrides(text);
      parseOverridesFlag(text);
      sameOverrides(text, 'a=b');
      const written = formatImageOverrides(parsed);
      holds(formatImageOverrides(parseImageOverrides(written)) === written, 'the overrides');
      return parsed === undefined ? undefined : [...parsed];
    },
  },
  {
    name: 'credential provider configuration',
    corpus: [PROVIDER, jsonOf(parseYaml(PROVIDER))],
    unit: '  - name: a\n',
    run: (text) => [decodeCredentialProviderConfig(text, parseYaml), kubeletRefusal(text, parseYaml)],
  },
  {
    name: 'kubelet request',
    corpus: [
      jsonOf({
        apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
        kind: 'CredentialProviderRequest',
        image: 'r.io/a',
        serviceAccountToken: plantedPassword('request'),
        serviceAccountAnnotations: { a: 'b' },
      }),
    ],
    unit: '{"a":',
    run: (text) => {
      const { image, annotations, ...rest } = parseRequest(text);
      return unlessNamed([image, jsonOf(annotations)], [image, annotations, rest]);
    },
  },
  {
    name: 'kubeconfig of a Secret',
    corpus: [KUBECONFIG, jsonOf(parseYaml(KUBECONFIG))],
    unit: 'a: [',
    run: (text) =>
      connectionFromSecret({
        subject: 'Secret/a/b',
        text: redact(text),
      }).server,
  },
  {
    name: 'CloudEvent',
    corpus: [
      '{"specversion":"1.0","id":"1","source":"s","type":"x.cluster.create","data":{"id":"cls-123"}}',
      '{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"e30="}',
    ],
    unit: '{"data":',
    run: (text) => [
      parseCloudEvent({ body: new Uint8Array(Buffer.from(text)), attributes: {} }),
      parseCloudEvent({
        body: new Uint8Array(Buffer.from(text)),
        attributes: { 'ce-id': text, 'ce-type': 't', 'ce-source': 's', 'ce-specversion': '1.0' },
      }),
    ],
  },
  {
    name: 'manifests',
    corpus: [MANIFESTS, 'a: 1\n', '---\n---\n'],
    unit: '---\nkind: Node\n',
    // What is said of the text must show no value, and a Secret's values are wrapped. What stands under another name is any text.
    run: (text) => {
      const { problems, manifests } = parseManifests(text, 'x.yaml');
      for (const { object } of manifests)
        if (object.kind === 'Secret' && object.apiVersion === 'v1')
          for (const value of Object.values(object['data'] ?? {}))
            holds(value === null || value instanceof Redacted, 'wrapping');
      return [problems, parseManifests(text, 'x.yaml', new Set(['Secret'])).problems];
    },
  },
  {
    name: 'fleet file',
    corpus: [FLEET],
    unit: '  - { name: a }\n',
    run: (text) => parseFleet(text).clusters.length,
  },
  {
    name: 'reconciler configuration',
    corpus: ['systems: { global-pull-secret: {}, registry-overrides: { only: ["a/b"] } }\n'],
    unit: 'a: [',
    run: (text) => parseReconcileConfig(text),
  },
  {
    name: 'expectations',
    corpus: [
      jsonOf({ from: '.', expectations: [{ image: 'r.io/a', namespace: 'n', expect: { denied: true } }] }),
      jsonOf({ tests: [{ image: 'r.io/a', expect: { secret: 'n/s', key: 'r.io' } }] }),
    ],
    run: (text) => readExpectations(valueOf(text)),
  },
  {
    name: 'Bearer challenge',
    corpus: [
      'Bearer realm="https://auth.example.com/token",service="r.io",scope="repository:a:pull"',
      'Basic realm="x"',
    ],
    unit: ',a="b"',
    run: (text) => parseChallenge(text),
  },
  {
    name: 'expiry of a credential',
    corpus: [TOKEN, plantedPassword('expiry'), Buffer.from('{"expiration":1900000000}').toString('base64')],
    unit: 'e30.',
    run: (text) =>
      ['robot', 'AWS', 'oauth2accesstoken'].map((username) =>
        credentialExpiry({ username, password: redact(text), identityToken: redact('') }),
      ),
  },
  {
    name: 'journal of a node',
    corpus: [
      '{"version":1,"breakers":{"a":{"rounds":1,"kind":"unit"}},"restarts":[1]}',
      '{"version":1,"breakers":{},"restarts":[],"change":{"phase":"writing","wanted":"a","source":"a","restart":true,"failures":0,"notBefore":1,"waitMs":0,"invocation":""}}',
    ],
    run: (text) => parseCheckpoint(valueOf(text)),
  },
];
