/** The pull of one image as a graph: pod, kubelet, runtime, pull sources in order. It is a list, so that it can be read out as well. */
import type { EntryOfPull, ReportPlace, ReportPull } from '../../runtime/diagnose/model/types.ts';
import { code, h, name, reference, sentence } from './dom.ts';
import { badge } from './verdict.ts';

type Step = 'good' | 'bad' | 'plain' | 'off';

/** The graph. */
export function pullGraph(pull: ReportPull, runtimes: readonly string[]): HTMLElement {
  const { object, image, verdict, kubelet, places, skipped, findings } = pull;
  return h(
    'section',
    { class: 'pull', id: 'pull', tabindex: '-1', 'aria-labelledby': 'pull-title' },
    h('h2', { id: 'pull-title' }, 'Pull path of ', code(object), ' ', badge(verdict)),
    h(
      'ol',
      { class: 'graph' },
      step('plain', 'Pod', reference(image), secretsList(pull)),
      step(kubelet.blocked === undefined ? 'good' : 'bad', 'kubelet chooses', ...kubeletContent(pull)),
      ...(runtimes.length > 0 && !runtimes.includes('cri-o')
        ? []
        : [step('plain', 'CRI-O tries, in this order', placesList(places, skipped))]),
      ...(runtimes.includes('containerd')
        ? [step('plain', 'containerd asks, in this order', hostsList(pull))]
        : []),
    ),
    ...(findings.length === 0
      ? []
      : [
          h('h3', {}, 'What to know'),
          h(
            'ul',
            { class: 'findings' },
            ...findings.map((one) =>
              h(
                'li',
                {},
                badge(
                  one.severity === 'error' ? 'broken' : one.severity === 'warning' ? 'attention' : 'ok',
                  one.severity,
                ),
                ' ',
                sentence(one.message),
                one.advice === undefined
                  ? undefined
                  : h('p', { class: 'advice' }, h('b', {}, 'To do: '), sentence(one.advice)),
              ),
            ),
          ),
        ]),
  );
}

function step(
  kind: Step,
  title: string,
  ...content: readonly (HTMLElement | string | undefined)[]
): HTMLElement {
  return h('li', { class: `step ${kind}` }, h('h3', {}, title), ...content);
}

function secretsList({ secrets }: ReportPull): HTMLElement {
  if (secrets.length === 0) return h('p', { class: 'none' }, 'lists no pull secret');
  return h(
    'ul',
    { class: 'chips' },
    ...secrets.map(({ name: secret, listedBy, state }) =>
      h(
        'li',
        { class: state === 'found' ? 'chip' : 'chip bad' },
        code(secret),
        h('span', {}, state === 'found' ? `by ${name(listedBy)}` : `${state}, listed by ${name(listedBy)}`),
      ),
    ),
  );
}

function kubeletContent({ kubelet }: ReportPull): readonly HTMLElement[] {
  const { blocked, tried, lost, others } = kubelet;
  if (blocked !== undefined) return [h('p', { class: 'fault' }, `✕ ${sentence(blocked)}`)];
  return [
    tried.length === 0
      ? h('p', { class: 'fault' }, 'no credential matches: pulls without one')
      : h(
          'ol',
          { class: 'chips' },
          ...tried.map((entry) => h('li', { class: 'chip good' }, ...entryText(entry))),
        ),
    ...(lost.length + others === 0
      ? []
      : [
          h(
            'details',
            { open: tried.length === 0 && lost.length > 0 },
            h('summary', {}, `${lost.length + others} entries lost`),
            h(
              'ul',
              { class: 'chips' },
              ...lost.map((entry) =>
                h('li', { class: 'chip off' }, ...entryText(entry), h('p', {}, sentence(entry.why))),
              ),
            ),
            others === 0 ? undefined : h('p', { class: 'none' }, `${others} are for other registries`),
          ),
        ]),
  ];
}

function entryText({ key, source }: EntryOfPull): readonly (HTMLElement | string)[] {
  return [code(key), h('span', {}, `from ${name(source)}`)];
}

function placesList(places: readonly ReportPlace[], skipped: ReportPull['skipped']): HTMLElement {
  if (places.length + skipped.length === 0) return h('p', { class: 'none' }, 'nothing is tried');
  return h(
    'ol',
    { class: 'places' },
    ...places.map((place) =>
      h(
        'li',
        { class: `place ${place.sent === 'nothing' || place.sent === 'failure' ? 'bare' : 'with'}` },
        h('span', { class: 'place-kind' }, place.kind === 'mirror' ? 'mirror' : 'the source itself'),
        reference(place.reference),
        place.from === undefined ? undefined : h('span', { class: 'from' }, name(place.from)),
        h('p', { class: 'sent' }, ...sentText(place)),
      ),
    ),
    ...skipped.map(({ reference: where, why, from }) =>
      h(
        'li',
        { class: 'place off' },
        h('span', { class: 'place-kind' }, 'not tried'),
        reference(where),
        from === undefined ? undefined : h('span', { class: 'from' }, name(from)),
        h('p', {}, sentence(why)),
      ),
    ),
  );
}

const CONTAINERD_SENDS = {
  kubelet: '✓ with the credential that the kubelet chose',
  nothing: '○ without a credential: the kubelet has none for the image',
  failure: '✕ nothing: the kubelet fails before',
} as const;

/** Files on each node name those hosts. */
function hostsList({ image, containerd }: ReportPull): HTMLElement {
  const [first = ''] = image.split('/');
  const isHost = image.includes('/') && (/[.:]/.test(first) || first === 'localhost');
  const host = isHost ? first : 'docker.io';
  const sent = (): HTMLElement => h('p', { class: 'sent' }, CONTAINERD_SENDS[containerd]);
  const kind = containerd === 'kubelet' ? 'place with' : 'place bare';
  return h(
    'ol',
    { class: 'places' },
    h(
      'li',
      { class: kind },
      h('span', { class: 'place-kind' }, 'every host of the file, in its order, on each node'),
      code(`/etc/containerd/certs.d/${host}/hosts.toml`),
      h(
        'p',
        {},
        'Mirror sets of the cluster are not for containerd; _default/hosts.toml serves where there is no such file.',
      ),
      sent(),
    ),
    h(
      'li',
      { class: kind },
      h('span', { class: 'place-kind' }, 'the source itself, unless the file names another server'),
      reference(image),
      sent(),
    ),
  );
}

function sentText({ sent, entry, why = '' }: ReportPlace): readonly (HTMLElement | string)[] {
  if (sent === 'kubelet') return ['✓ with the credential that the kubelet chose'];
  if (sent === 'entry' && entry !== undefined) return ['✓ with ', ...entryText(entry)];
  if (sent === 'helper') return ['✓ ', sentence(why)];
  return [sent === 'failure' ? '✕ ' : '○ no credential: ', sentence(why)];
}
