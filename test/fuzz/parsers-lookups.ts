/** Look-ups by the name of an image, in files of nodes and in Secrets: both sides are untrusted text. */

import { lookupForContainers } from '../../runtime/core/docker-config/containers-keyring.ts';
import { kubeletKeyring, lookupForKubelet } from '../../runtime/core/docker-config/kubelet-keyring.ts';
import { goQuote } from '../../runtime/core/go/text.ts';
import { imageHint, parseImageReference } from '../../runtime/core/image-reference.ts';
import { pathPart } from '../../runtime/core/kubernetes/object.ts';
import { shortNameCandidates } from '../../runtime/core/mirrors/registries-conf.ts';
import { redact } from '../../runtime/core/redacted.ts';
import {
  authFile,
  globalCovers,
  parseGlobalAuth,
  pullSources,
  writerOf,
} from '../../runtime/credential-provider/auth-file.ts';
import { patternsMeet } from '../../runtime/credential-provider/merge.ts';
import { currentCluster, usualCluster } from '../../runtime/credential-provider/plugin/api-server.ts';
import { registriesFor } from '../../runtime/credential-provider/plugin/conf-files.ts';
import { parseRequest } from '../../runtime/credential-provider/plugin/request.ts';
import { isScope, scopesAround } from '../../runtime/registry-overrides/machine-config/input.ts';
import { isSelected } from '../../runtime/registry-overrides/reconciler/mirror-sets.ts';
import { AUTHS, IMAGES, jsonOf, KUBECONFIG, REGISTRIES } from './corpus.ts';
import { holds, type Parser, valueOf } from './parser.ts';

/** A file as large as that of a node with mirrors, so that it is read in chunks. */
const LARGE_CONF = Array.from(
  { length: 60 },
  (_, index) =>
    `[[registry]]\n  prefix = ""\n  location = "r${index}.io/a"\n\n  [[registry.mirror]]\n    location = "m.io/r${index}"\n`,
).join('\n');
const CONF = [
  { path: '/etc/containers/registries.conf', text: `[[registry]]\n  location = "quay.io"\n${LARGE_CONF}` },
];

const CHOICE = { entries: [], keyBySource: new Map<string, string>(), skipped: [] };

export const LOOKUP_PARSERS: readonly Parser[] = [
  {
    name: 'image that the provider is asked about',
    corpus: [...IMAGES, 'r1.io/a/b/c'],
    unit: '/a',
    run: (text) => {
      const { image } = parseRequest(jsonOf({ image: text }));
      const registries = registriesFor(CONF);
      const sources = pullSources(registries, image);
      const global = parseGlobalAuth(redact(AUTHS));
      if (global === undefined) throw new Error('no auth file');
      const file = authFile({ choice: CHOICE, sources, global, by: 'a/b' });
      holds(writerOf(file.text) === 'a/b', 'the record');
      return [sources, globalCovers(global, sources), file.entries];
    },
  },
  {
    name: 'image that is looked up',
    corpus: IMAGES,
    unit: 'a.',
    run: (text) => {
      const source = { name: 'a', format: 'config.json', text: redact(AUTHS) } as const;
      const parsed = parseImageReference(text);
      const hint = imageHint(text);
      if (!parsed.ok) return hint;
      const { repository } = parsed.reference;
      const ring = kubeletKeyring({ secrets: [source] });
      holds(ring.ok, 'the keyring');
      const tried = ring.ok ? lookupForKubelet(ring.rings, repository).map(({ written }) => written) : [];
      return [tried, lookupForContainers([source], repository).found, hint];
    },
  },
  {
    name: "a node's registries.conf, in parts",
    corpus: [CONF[0]?.text ?? '', `${REGISTRIES}\n${LARGE_CONF}`],
    unit: '[[registry]]\n  location = "a.io"\n',
    run: (text) => registriesFor([{ path: 'a', text }]),
  },
  {
    name: 'image that others name',
    corpus: [...IMAGES, '*.example.com', 'quay.io/*'],
    unit: '/a',
    run: (text) => [
      isScope(text),
      scopesAround(text).length,
      shortNameCandidates(text, new Map([['nginx', 'docker.io/library/nginx']]), ['docker.io']),
      isSelected({ off: false, deny: ['quay.io/a'], allow: [text], problems: [] }, text, 'b'),
    ],
  },
  {
    name: 'patterns that may meet',
    corpus: ['*.example.com', '[a-c]*.io:443/b', 'a?c.io'],
    unit: '*a',
    // The API server takes no more.
    run: (text) => [
      patternsMeet(text.slice(0, 512), 'a*.example.com'),
      patternsMeet('*.*.io', text.slice(0, 512)),
    ],
  },
  {
    name: "a node's kubeconfig",
    corpus: [
      KUBECONFIG,
      jsonOf({ 'current-context': 'c', contexts: [], clusters: [{ name: 'a', cluster: { server: 'b' } }] }),
    ],
    unit: '- name: a\n',
    run: usualCluster,
  },
  {
    name: 'value that a kubeconfig may be',
    corpus: [jsonOf({ clusters: [{ name: 'a', cluster: { server: 'https://a' } }], contexts: null })],
    run: (text) => currentCluster(valueOf(text)),
  },
  {
    name: 'name that becomes part of a path',
    corpus: ['openshift-config', 'a_b.c', 'system:node'],
    unit: 'a',
    run: (text) => {
      const part = pathPart('namespace', text);
      holds(!/[/\\\0]/.test(part) && part !== '..' && part !== '.', 'the part');
      return part;
    },
  },
  {
    name: 'text that is quoted as Go does it',
    corpus: ['a', '\u0000\ud800"\\'],
    unit: '\u0001',
    run: (text) => goQuote(text),
  },
];
