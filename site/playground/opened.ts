/** View after files are added: the questions, the command line of the selected one, and its answer. */
import { badge, html, type Markup, name } from '../../build/report-page/markup.ts';
import { VERDICT_WORDS } from '../../runtime/diagnose/model/types.ts';
import type { PageReport } from '../../runtime/diagnose/views/html.ts';
import type { Taken } from './files.ts';
import type { Answer } from './messages.ts';
import { filled, made, painted } from './painted.ts';
import {
  ASKINGS,
  type Asking,
  commandLine,
  type Fields,
  missing,
  REPORT_FILE,
  type Subject,
  workloadsOf,
} from './questions.ts';
import { Runner } from './runner.ts';

interface State {
  readonly runner: Runner;
  subject: Subject;
  asking: Asking;
  fields: Fields;
}

/** Draws into `view`; `leave` is called when the person wants other files. */
export async function opened(
  view: HTMLElement,
  worker: string,
  found: Taken,
  leave: () => void,
): Promise<void> {
  const [first] = ASKINGS;
  if (first === undefined) return;
  const state: State = {
    runner: new Runner(worker, found.files),
    subject: { root: found.root, files: found.files },
    asking: first,
    fields: { cluster: '', workload: '', image: '' },
  };
  const asked = made(html`<form class="asked"></form>`) as HTMLFormElement;
  const answer = made(html`<section id="answer" aria-live="polite" tabindex="-1"></section>`);
  const about = made(html`<p class="about"></p>`);
  const summary = made(
    html`<span>${found.files.length} ${found.files.length === 1 ? 'file' : 'files'}</span>`,
  );
  const again = async (): Promise<void> => {
    const said = await run(state, answer);
    if (state.subject.report === undefined && said?.file !== undefined) {
      const report = reportIn(said.file);
      state.subject = { ...state.subject, report };
      state.fields = firstFields(report);
      summary.append(` · ${counted(report)}`);
    }
  };
  const choose = (asking: Asking): void => {
    state.asking = asking;
    about.replaceChildren(asking.about);
    for (const tab of tabs.children) {
      const isChosen = tab.id === `tab-${asking.name}`;
      tab.setAttribute('aria-selected', String(isChosen));
      tab.setAttribute('tabindex', isChosen ? '0' : '-1');
    }
    drawFields(state, asked, again);
    void again();
  };
  const tabs = tabsOf(choose);
  asked.addEventListener('submit', (event) => event.preventDefault());
  const other = (): void => {
    state.runner.end();
    leave();
  };
  const head = filled(
    html`<div class="held"></div>`,
    filled(html`<h1>${name(found.root)}</h1>`, summary),
    made(html`<button type="button">Other files</button>`, { click: other }),
  );
  view.replaceChildren(head, ...leftOut(found), tabs, about, asked, answer);
  choose(first);
}

function tabsOf(choose: (asking: Asking) => void): HTMLElement {
  const tabs = ASKINGS.map((asking) =>
    made(
      html`<button type="button" role="tab" id="tab-${asking.name}" aria-controls="answer">${asking.title}</button>`,
      { click: () => choose(asking) },
    ),
  );
  const list = made(html`<div class="tabs" role="tablist" aria-label="Questions"></div>`, {
    keydown: onArrow,
  });
  list.append(...tabs);
  return list;
}

function leftOut({ leftOut: said }: Taken): readonly HTMLElement[] {
  if (said.length === 0) return [];
  return [
    made(html`<div class="said-of-files" role="status">${said.map((line) => html`<p>${line}</p>`)}</div>`),
  ];
}

/** Arrows go from tab to tab, as screen readers say they do. */
function onArrow(event: Event): void {
  const { key } = event as KeyboardEvent;
  const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0;
  const tabs = [...(event.currentTarget as HTMLElement).children] as HTMLElement[];
  const at = tabs.indexOf(event.target as HTMLElement);
  if (step === 0 || at < 0) return;
  const next = tabs[(at + step + tabs.length) % tabs.length];
  next?.focus();
  next?.click();
}

async function run(
  { runner, subject, asking, fields }: State,
  answer: HTMLElement,
): Promise<Answer | undefined> {
  const lacks = missing(asking, fields);
  if (lacks !== undefined) {
    answer.replaceChildren(made(html`<p class="none">${lacks}</p>`));
    return undefined;
  }
  const args = asking.args(subject, fields);
  const isPage = asking.name === 'report';
  const stop = made(html`<button type="button">Stop</button>`, { click: () => runner.stop() });
  answer.replaceChildren(filled(html`<div class="working" role="status">Working …</div>`, stop));
  try {
    const said = await runner.ask({
      args,
      colours: true,
      columns: columnsIn(answer),
      ...(isPage ? { read: REPORT_FILE } : {}),
    });
    if (said === undefined) answer.replaceChildren(made(html`<p class="none">Stopped.</p>`));
    else answer.replaceChildren(...shown(args, said));
    return said;
  } catch (error) {
    answer.replaceChildren(made(html`<p class="notes" role="alert">${(error as Error).message}</p>`));
    return undefined;
  }
}

/** Characters that fit beside each other. */
function columnsIn(answer: HTMLElement): number {
  return Math.max(40, Math.floor((answer.clientWidth - 40) / 8));
}

function shown(
  args: readonly string[],
  { code: exit, stdout, stderr, file }: Answer,
): readonly HTMLElement[] {
  const line = commandLine(args);
  const notes = file === undefined ? stderr : stderr.replace(/^Wrote .*\n?/m, '');
  const said = notes.trim() === '' ? [] : [made(html`<pre class="notes">${painted(notes.trim())}</pre>`)];
  if (file !== undefined) return [...said, frame(file), save(file)];
  return [
    ...said,
    filled(html`<div class="line"><code>$ ${line}</code>${ended(exit)}</div>`, copyButton(line)),
    made(html`<pre class="out" tabindex="0" aria-label="Answer">${painted(stdout || 'No answer.')}</pre>`),
  ];
}

function ended(exit: number): Markup {
  if (exit === 0) return badge('ok', 'exit code 0');
  return exit === 1 ? badge('broken', 'look here') : badge('unknown', 'not asked well');
}

/** A frame of its own origin: it may run its own script, and reach nothing of this page. */
function frame(page: string): HTMLElement {
  return made(html`<iframe title="Report" sandbox="allow-scripts" srcdoc="${page}"></iframe>`);
}

function save(page: string): HTMLElement {
  const get = (): void => {
    const url = URL.createObjectURL(new Blob([page], { type: 'text/html' }));
    made(html`<a href="${url}" download="${REPORT_FILE}"></a>`).click();
    URL.revokeObjectURL(url);
  };
  return filled(
    html`<p></p>`,
    made(html`<button type="button">Save this report as one file</button>`, { click: get }),
  );
}

function copyButton(text: string): HTMLElement {
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(
      () => button.replaceChildren('Copied'),
      () => button.replaceChildren('Select it by hand'),
    );
  };
  const button = made(html`<button type="button">Copy</button>`, { click: copy });
  return button;
}

/** Reads the data from the page that `report` wrote. */
function reportIn(html: string): PageReport {
  const page = new DOMParser().parseFromString(html, 'text/html');
  return JSON.parse(page.getElementById('data')?.textContent ?? 'null') as PageReport;
}

function counted({ clusters, problems }: PageReport): string {
  const broken = problems.filter(({ verdict }) => verdict === 'broken').length;
  const of = `${clusters.length} ${clusters.length === 1 ? 'cluster' : 'clusters'}`;
  return `${of} · ${problems.length} ${problems.length === 1 ? 'cause' : 'causes'} of trouble${broken === 0 ? '' : `, ${broken} broken`}`;
}

function firstFields(report: PageReport): Fields {
  const cluster = report.clusters.find(({ pulls }) => pulls.length > 0) ?? report.clusters[0];
  return fieldsOf(report, cluster?.name ?? '');
}

function fieldsOf(report: PageReport | undefined, cluster: string): Fields {
  const [pull] = workloadsOf(report, cluster);
  return { cluster, workload: pull?.object ?? '', image: pull?.image ?? '' };
}

function drawFields(state: State, form: HTMLFormElement, again: () => Promise<void>): void {
  const { subject, asking } = state;
  const { report } = subject;
  const set = (fields: Fields): void => {
    state.fields = fields;
    drawFields(state, form, again);
    void again();
  };
  const pulls = workloadsOf(report, state.fields.cluster);
  const images = [...new Set(report?.clusters.flatMap((one) => one.pulls.map(({ image }) => image)) ?? [])];
  const parts: HTMLElement[] = [];
  if (asking.needs.includes('cluster') && (report?.clusters.length ?? 0) > 1)
    parts.push(
      choice(
        'Cluster',
        state.fields.cluster,
        report?.clusters.map((one) => [one.name, name(one.name)]) ?? [],
        (cluster) => set(fieldsOf(report, cluster)),
      ),
    );
  if (asking.needs.includes('workload') && pulls.length > 0)
    parts.push(
      choice(
        'Workload',
        state.fields.workload,
        pulls.map((pull) => [pull.object, `${name(pull.object)} · ${VERDICT_WORDS[pull.verdict]}`]),
        (workload) =>
          set({
            ...state.fields,
            workload,
            image: pulls.find((pull) => pull.object === workload)?.image ?? '',
          }),
      ),
    );
  if (asking.needs.includes('image'))
    parts.push(imageField(state.fields.image, images, (image) => set({ ...state.fields, image })));
  form.replaceChildren(...parts);
}

function choice(
  label: string,
  value: string,
  options: readonly (readonly [string, string])[],
  chosen: (value: string) => void,
): HTMLElement {
  const items = options.map(
    ([one, text]) => html`<option value="${one}" ${one === value && 'selected'}>${text}</option>`,
  );
  const select = made(html`<select>${items}</select>`) as HTMLSelectElement;
  select.addEventListener('change', () => chosen(select.value));
  return filled(html`<label>${label}</label>`, select);
}

function imageField(value: string, images: readonly string[], chosen: (image: string) => void): HTMLElement {
  const input = made(html`
    <input type="text" value="${value}" list="images" spellcheck="false" autocomplete="off">`) as HTMLInputElement;
  input.addEventListener('change', () => chosen(input.value.trim()));
  const options = images.map((image) => html`<option value="${image}"></option>`);
  return filled(html`<label>Image</label>`, input, made(html`<datalist id="images">${options}</datalist>`));
}
