/** The pull of one image as a graph: pod, kubelet, runtime, pull sources in order. It is a list, so that it can be read out as well. */
import type { ReportExplanation, ReportPull } from '../../runtime/diagnose/model/cluster.ts';
import type { EntryPlace } from '../../runtime/diagnose/model/types.ts';
import { adviceText, code, html, name, reference, sentence } from './dom.ts';
import { badge } from './verdict.ts';

type Content = readonly (HTMLElement | string)[];

/** The graph. */
export function pullGraph(pull: ReportPull, runtimes: readonly string[]): HTMLElement {
  const { object, image, verdict, fault, explanation = NONE } = pull;
  const { findings } = explanation;
  const broken = fault ?? blockedText(explanation);
  const mayBeCrio = runtimes.length === 0 || runtimes.includes('cri-o');
  return html`
    <section class="pull" id="pull" tabindex="-1" aria-labelledby="pull-title">
      <h2 id="pull-title">Pull path of ${code(object)} ${badge(verdict)}</h2>
      <ol class="graph">
        ${step('plain', 'Pod', [reference(image), secretsList(explanation)])}
        ${step(broken === undefined ? 'good' : 'bad', 'kubelet chooses', kubeletContent(explanation, broken))}
        ${mayBeCrio && step('plain', 'CRI-O tries, in this order', [placesList(explanation)])}
        ${runtimes.includes('containerd') && step('plain', 'containerd asks, in this order', [hostsList(image, explanation, broken)])}
      </ol>
      ${findings.length > 0 && [html`<h3>What to know</h3>`, html`<ul class="findings">${findings.map(findingItem)}</ul>`]}
    </section>`;
}

const NONE: ReportExplanation = {
  secrets: [],
  kubelet: { tried: [], unused: [], anonymous: true },
  places: [],
  skipped: [],
  containerd: { what: 'kubelet' },
  findings: [],
};

function blockedText({ kubelet: { blockedBy } }: ReportExplanation): string | undefined {
  return blockedBy && `${blockedBy.source} ${blockedBy.why}`;
}

function step(kind: 'good' | 'bad' | 'plain', title: string, content: Content): HTMLElement {
  return html`<li class="step ${kind}"><h3>${title}</h3>${content}</li>`;
}

function findingItem({ severity, message, advice }: ReportExplanation['findings'][number]): HTMLElement {
  const verdict = severity === 'error' ? 'broken' : severity === 'warning' ? 'attention' : 'ok';
  return html`<li>${badge(verdict, severity)} ${sentence(message)}${adviceText(advice)}</li>`;
}

function secretsList({ secrets }: ReportExplanation): HTMLElement {
  if (secrets.length === 0) return html`<p class="none">lists no pull secret</p>`;
  const items = secrets.map(({ name: secret, listedBy, state }) =>
    state === 'found'
      ? html`<li class="chip">${code(secret)}<span>by ${name(listedBy)}</span></li>`
      : html`<li class="chip bad">${code(secret)}<span>${state}, listed by ${name(listedBy)}</span></li>`,
  );
  return html`<ul class="chips">${items}</ul>`;
}

function kubeletContent({ kubelet }: ReportExplanation, broken: string | undefined): Content {
  const { tried, unused: lost, others = 0 } = kubelet;
  if (broken !== undefined) return [html`<p class="fault">✕ ${sentence(broken)}</p>`];
  const used = tried.map((entry) => html`<li class="chip good">${entryText(entry)}</li>`);
  const chosen =
    used.length === 0
      ? html`<p class="fault">no credential matches: pulls without one</p>`
      : html`<ol class="chips">${used}</ol>`;
  if (lost.length + others === 0) return [chosen];
  const unused = lost.map(
    (entry) => html`<li class="chip off">${entryText(entry)}<p>${sentence(entry.why)}</p></li>`,
  );
  return [
    chosen,
    html`
      <details open="${tried.length === 0 && lost.length > 0}">
        <summary>${lost.length + others} entries lost</summary>
        <ul class="chips">${unused}</ul>
        ${others > 0 && html`<p class="none">${others} are for other registries</p>`}
      </details>`,
  ];
}

function entryText({ key, source, origin = source }: Pick<EntryPlace, 'key' | 'source' | 'origin'>): Content {
  return [code(key), html`<span>from ${name(origin)}</span>`];
}

function placesList({ places, skipped }: ReportExplanation): HTMLElement {
  if (places.length + skipped.length === 0) return html`<p class="none">nothing is tried</p>`;
  const tried = places.map(
    (place) => html`
      <li class="place ${place.crio.what === 'nothing' || place.crio.what === 'failure' ? 'bare' : 'with'}">
        <span class="place-kind">${place.kind === 'mirror' ? 'mirror' : 'the source itself'}</span>
        ${reference(place.reference)}
        ${fromText(place.from)}
        <p class="sent">${sentText(place.crio)}</p>
      </li>`,
  );
  const others = skipped.map(
    ({ reference: where, why, from }) => html`
      <li class="place off">
        <span class="place-kind">not tried</span>
        ${reference(where)}
        ${fromText(from)}
        <p>${sentence(why)}</p>
      </li>`,
  );
  return html`<ol class="places">${tried}${others}</ol>`;
}

function fromText(from: string | undefined): HTMLElement | undefined {
  return from === undefined ? undefined : html`<span class="from">${name(from)}</span>`;
}

const CONTAINERD_SENDS = {
  kubelet: '✓ with the credential that the kubelet chose',
  nothing: '○ without a credential: the kubelet has none for the image',
  failure: '✕ nothing: the kubelet fails before',
} as const;

/** Files on each node name those hosts. */
function hostsList(
  image: string,
  { containerd }: ReportExplanation,
  broken: string | undefined,
): HTMLElement {
  const [first = ''] = image.split('/');
  const isHost = image.includes('/') && (/[.:]/.test(first) || first === 'localhost');
  const host = isHost ? first : 'docker.io';
  const sent =
    CONTAINERD_SENDS[
      broken !== undefined ? 'failure' : containerd.what === 'kubelet' ? 'kubelet' : 'nothing'
    ];
  const kind = sent === CONTAINERD_SENDS.kubelet ? 'with' : 'bare';
  return html`
    <ol class="places">
      <li class="place ${kind}">
        <span class="place-kind">every host of the file, in its order, on each node</span>
        ${code(`/etc/containerd/certs.d/${host}/hosts.toml`)}
        <p>Mirror sets of the cluster are not for containerd; _default/hosts.toml serves where there is no such file.</p>
        <p class="sent">${sent}</p>
      </li>
      <li class="place ${kind}">
        <span class="place-kind">the source itself, unless the file names another server</span>
        ${reference(image)}
        <p class="sent">${sent}</p>
      </li>
    </ol>`;
}

function sentText(sent: ReportExplanation['places'][number]['crio']): Content {
  if (sent.what === 'kubelet') return [CONTAINERD_SENDS.kubelet];
  if (sent.what === 'entry') return ['✓ with ', ...entryText(sent.entry)];
  if (sent.what === 'helper')
    return ['✓ ', sentence(`the helper "${sent.helper}" of ${sent.source} is asked`)];
  return [sent.what === 'failure' ? '✕ ' : '○ no credential: ', sentence(sent.why)];
}
