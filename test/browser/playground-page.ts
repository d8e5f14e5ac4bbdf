/** Queries of tests to an open playground. */
import type { Page } from 'playwright-core';
import type { Answer, HeldFile } from '../../site/playground/messages.ts';

/** The worker of the page, asked as a program. */
export function asked(page: Page, args: readonly string[], files: readonly HeldFile[]): Promise<Answer> {
  return page.evaluate(
    async ([words, held]) => {
      const source = JSON.parse(document.getElementById('worker')?.textContent ?? '') as string;
      const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
      const answer = await new Promise<Answer>((resolve, reject) => {
        worker.addEventListener('message', ({ data }: MessageEvent<Answer>) => resolve(data));
        worker.addEventListener('error', () => reject(new Error('the worker failed')));
        worker.postMessage({ id: 1, args: words, files: held, colours: false }, []);
      });
      worker.terminate();
      return answer;
    },
    [args, files] as const,
  );
}

/** All content of the page that a person could read. */
export function held(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const frames = [...document.querySelectorAll('iframe')].map(({ srcdoc }) => srcdoc);
    const stored = [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie];
    const databases = JSON.stringify(await indexedDB.databases());
    return [
      document.documentElement.outerHTML,
      ...frames,
      ...stored,
      databases,
      location.href,
      document.title,
    ].join('\n');
  });
}
