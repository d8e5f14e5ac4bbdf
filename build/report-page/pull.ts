/** The pull of one image as a graph: pod, kubelet, runtime, pull sources in order. It is a list, for screen readers. */
import { VERDICTS } from '../../runtime/diagnose/checks/findings.ts';
import type { ReportExplanation, ReportPull } from '../../runtime/diagnose/model/cluster.ts';
import type { EntryPlace } from '../../runtime/diagnose/model/types.ts';
import {
  adviceText,
  badge,
  code,
  html,
  type Markup,
  name,
  reference,
  sentence,
  type Value,
} from './markup.ts';

/** Renders the graph of `pull`. `runtimes`: container runtimes of the cluster. */
export function pullGraph(pull: ReportPull, runtimes: readonly string[]): Markup {
  const { object, image, verdict, fault, explanation = NONE } = pull;
  const { findings, kubelet, containerd } = explanation;
  const { blockedBy } = kubelet;
  const broken = fault ?? (blockedBy && `${blockedBy.source} ${blockedBy.why}`);
  const mayBeCrio = runtimes.length === 0 || runtimes.includes('cri-o');
  const sends = containerd.what === 'kubelet' || containerd.what === 'unknown' ? containerd.what : 'nothing';
  const hosts = (): Markup => hostsList(image, CONTAINERD_SENDS[broken === undefined ? sends : 'failure']);
  return html`
    <section class="pull" id="pull" tabindex="-1" aria-labelledby="pull-title">
      <h2 id="pull-title">Pull path of ${code(object)} ${badge(verdict)}</h2>
      <ol class="graph">
        ${step('plain', 'Pod', [reference(image), secretsList(explanation)])}
        ${broken === undefined ? step('good', CHOOSES, credentialsList(kubelet)) : step('bad', CHOOSES, html`<p class="fault">✕ ${sentence(broken)}</p>`)}
        ${mayBeCrio && step('plain', 'CRI-O tries, in this order', placesList(explanation))}
        ${runtimes.includes('containerd') && step('plain', 'containerd tries, in this order', hosts())}
      </ol>
      ${findings.length > 0 && html`<h3>What to know</h3><ul class="findings">${findings.map(findingItem)}</ul>`}
    </section>`;
}

const CHOOSES = 'kubelet chooses';

const NONE: ReportExplanation = {
  secrets: [],
  kubelet: { tried: [], unused: [], anonymous: true },
  places: [],
  skipped: [],
  containerd: { what: 'kubelet' },
  findings: [],
};

function step(kind: 'good' | 'bad' | 'plain', title: string, content: Value): Markup {
  return html`<li class="step ${kind}"><h3>${title}</h3>${content}</li>`;
}

function findingItem({ severity, message, advice }: ReportExplanation['findings'][number]): Markup {
  return html`<li>${badge(VERDICTS[severity], severity)} ${sentence(message)}${adviceText(advice)}</li>`;
}

function secretsList({ secrets }: ReportExplanation): Markup {
  if (secrets.length === 0) return html`<p class="none">lists no pull secret</p>`;
  const items = secrets.map(({ name: secret, listedBy, state }) =>
    state === 'found'
      ? html`<li class="chip">${code(secret)}<span>by ${name(listedBy)}</span></li>`
      : html`<li class="chip bad">${code(secret)}<span>${state}, listed by ${name(listedBy)}</span></li>`,
  );
  return html`<ul class="chips">${items}</ul>`;
}

function credentialsList({ tried, unused: lost, others = 0, unknown }: ReportExplanation['kubelet']): Markup {
  const used = tried.map((entry) => html`<li class="chip good">${entryText(entry)}</li>`);
  const unused = lost.map(
    (entry) => html`<li class="chip off">${entryText(entry)}<p>${sentence(entry.why)}</p></li>`,
  );
  const details = html`
    <details ${tried.length === 0 && lost.length > 0 && 'open'}>
      <summary>${lost.length + others} entries ignored</summary>
      <ul class="chips">${unused}</ul>
      ${others > 0 && html`<p class="none">${others} are for other registries</p>`}
    </details>`;
  return html`
    ${used.length === 0 ? html`<p class="fault">${unknown === undefined ? 'no credential matches: one anonymous attempt' : sentence(unknown)}</p>` : html`<ol class="chips">${used}</ol>`}
    ${lost.length + others > 0 && details}`;
}

function entryText({ key, source, origin = source }: Pick<EntryPlace, 'key' | 'source' | 'origin'>): Markup {
  return html`${code(key)}<span>from ${name(origin)}</span>`;
}

function placesList({ places, skipped }: ReportExplanation): Markup {
  if (places.length + skipped.length === 0) return html`<p class="none">nothing is tried</p>`;
  const tried = places.map(({ reference: where, kind, from, crio }) =>
    placeItem(
      crio.what === 'kubelet' || crio.what === 'entry' || crio.what === 'helper' ? 'with' : 'bare',
      kind === 'mirror' ? 'mirror' : 'the source',
      [reference(where), fromText(from), html`<p class="sent">${sentText(crio)}</p>`],
    ),
  );
  const others = skipped.map(({ reference: where, why, from }) =>
    placeItem('off', 'not tried', [reference(where), fromText(from), html`<p>${sentence(why)}</p>`]),
  );
  return html`<ol class="places">${tried}${others}</ol>`;
}

function placeItem(kind: 'with' | 'bare' | 'off', title: string, content: Value): Markup {
  return html`<li class="place ${kind}"><span class="place-kind">${title}</span>${content}</li>`;
}

function fromText(from: string | undefined): Value {
  return from !== undefined && html`<span class="from">${name(from)}</span>`;
}

const CONTAINERD_SENDS = {
  kubelet: '✓ with the credential that the kubelet chose',
  nothing: '○ without a credential: the kubelet has none for the image',
  failure: '✕ nothing: the kubelet fails first',
  unknown: '? unknown: the content of a listed Secret is',
} as const;

/** The hosts that containerd contacts. A file on each node lists them. */
function hostsList(image: string, said: string): Markup {
  const [first = ''] = image.split('/');
  const isHost = image.includes('/') && (/[.:]/.test(first) || first === 'localhost');
  const kind = said === CONTAINERD_SENDS.kubelet ? 'with' : 'bare';
  const sent = html`<p class="sent">${said}</p>`;
  return html`
    <ol class="places">
      ${placeItem(kind, 'every host of the file, in its order, on each node', [
        code(`/etc/containerd/certs.d/${isHost ? first : 'docker.io'}/hosts.toml`),
        html`<p>containerd ignores mirror sets of the cluster; without such a file, _default/hosts.toml applies.</p>`,
        sent,
      ])}
      ${placeItem(kind, 'the source, unless the file names another server', [reference(image), sent])}
    </ol>`;
}

function sentText(sent: ReportExplanation['places'][number]['crio']): Value {
  if (sent.what === 'kubelet') return CONTAINERD_SENDS.kubelet;
  if (sent.what === 'entry') return ['✓ with ', entryText(sent.entry)];
  if (sent.what === 'helper')
    return ['✓ ', sentence(`from the credential helper "${sent.helper}" of ${sent.source}`)];
  const marks = { nothing: '○ no credential: ', failure: '✕ ', unknown: '? ' };
  return [marks[sent.what], sentence(sent.why)];
}
