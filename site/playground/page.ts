/** The playground: takes files, calls the worker, and shows the program's output. Stores nothing and makes no other requests. */
import { html, name } from '../../build/report-page/markup.ts';
import { chosenFiles, droppedFiles, type GivenFile, take } from './files.ts';
import type { HeldFile } from './messages.ts';
import { opened } from './opened.ts';
import { filled, made } from './painted.ts';

interface Example {
  readonly name: string;
  readonly title: string;
  readonly files: readonly HeldFile[];
}

function json(id: string): unknown {
  return JSON.parse(document.getElementById(id)?.textContent ?? 'null');
}

const EXAMPLES = json('examples') as readonly Example[];
const WORKER = URL.createObjectURL(new Blob([json('worker') as string], { type: 'text/javascript' }));
const view = document.getElementById('view') as HTMLElement;

const DUMP = `kubectl get namespaces,nodes,pods,deployments,statefulsets,daemonsets,jobs,cronjobs,serviceaccounts,secrets,events -A -o yaml > dump.yaml
# OpenShift, beside it:
oc get imagedigestmirrorsets,imagetagmirrorsets,images.config,clusterversions -o yaml > mirrors.yaml`;

const LEAD =
  'Which credential is tried for which image, what stands in the way, and the YAML that fixes it. Worked out in this page: no connection is made, nothing is kept.';
const AFTER_DUMP =
  'Passwords in it stay where they are: no answer has a place for one. Files of several clusters go into folders of their own.';

/** The first page, with what was said of files that could not be taken. */
function start(said: readonly string[] = []): void {
  const files = field(false);
  const folder = field(true);
  const chooses = (label: string, kind: string, input: HTMLInputElement): HTMLElement =>
    made(html`<button type="button" class="${kind}">${label}</button>`, { click: () => input.click() });
  const notes = html`<div class="said-of-files" role="alert">${said.map((line) => html`<p>${line}</p>`)}</div>`;
  const drop = filled(
    html`
      <div class="drop">
        <p class="big">Drop files or a folder here</p>
        <p>Manifests of a cluster or of a git repository: .yaml, .yml, .json</p>
      </div>`,
    filled(
      html`<div class="picks"></div>`,
      chooses('Choose files', 'main', files),
      chooses('Choose a folder', '', folder),
    ),
    files,
    folder,
  );
  const how = html`
    <details class="how">
      <summary>How do I make a dump?</summary>
      <pre tabindex="0"><code>${DUMP}</code></pre>
      <p>${AFTER_DUMP}</p>
    </details>`;
  const examples = html`<div class="examples"><span class="none">or look at an example:</span></div>`;
  view.replaceChildren(
    filled(
      html`
        <section class="start">
          <h1>Why does it not pull? Drop a dump and see</h1>
          <p class="lead">${LEAD}</p>
        </section>`,
      drop,
      ...(said.length > 0 ? [made(notes)] : []),
      filled(examples, ...EXAMPLES.map(exampleButton)),
      made(how),
    ),
  );
}

function exampleButton({ name: folder, title, files }: Example): HTMLElement {
  const look = (): void => show({ root: `examples/${folder}`, files, leftOut: [] });
  return made(html`<button type="button">${title}</button>`, { click: look });
}

function field(folder: boolean): HTMLInputElement {
  const label = folder ? 'A folder' : 'Files';
  const input = made(html`
    <input type="file" multiple hidden ${folder && 'webkitdirectory'} aria-label="${label}" data-folder="${String(folder)}">`) as HTMLInputElement;
  input.addEventListener('change', () => void taken(chosenFiles(input)));
  return input;
}

async function taken(given: readonly GivenFile[]): Promise<void> {
  const found = await take(given);
  if (found.files.length > 0) show(found);
  else if (found.leftOut.length > 0) start(found.leftOut);
  else start(['There is no file in it: expected .yaml, .yml or .json.']);
}

function show(found: Awaited<ReturnType<typeof take>>): void {
  document.title = `${name(found.root)} · Playground · Pullwright`;
  void opened(view, WORKER, found, () => {
    document.title = 'Playground · Pullwright';
    start();
  });
}

/** Anywhere on the page: a drop that misses would make the browser leave it. */
function listen(): void {
  const mark = (isOver: boolean): void => {
    document.querySelector('.drop')?.classList.toggle('over', isOver);
  };
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    mark(true);
  });
  document.addEventListener('dragleave', () => mark(false));
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    mark(false);
    if (event.dataTransfer !== null) void droppedFiles(event.dataTransfer).then(taken);
  });
}

listen();
start();
