/** The generator's settings. `site/build.ts` stages the pages first and says where the site will stand. */
import { readdirSync, readFileSync } from 'node:fs';
import type { DefaultTheme, UserConfig } from 'vitepress';
import { VERSION } from '../../runtime/core/version.ts';
import { titleOf } from '../stage.ts';

const { PULLWRIGHT_SITE_PAGES: pages = '', PULLWRIGHT_SITE_BASE: base = '/' } = process.env;

/** A key in its lock. */
const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0b5cad"/><circle cx="12" cy="16" r="5" fill="none" stroke="#fff" stroke-width="3"/><path d="M17 16h10m-4 0v5" stroke="#fff" stroke-width="3" fill="none"/></svg>',
)}`;

const BACK = { text: 'Documentation', link: '/' };

const config: UserConfig<DefaultTheme.Config> = {
  title: 'Pullwright',
  description: 'Pull credentials as code for Kubernetes and OpenShift fleets',
  lang: 'en',
  srcDir: pages,
  base: `${base}${VERSION}/`,
  cleanUrls: false,
  ignoreDeadLinks: false,
  // The policy of the pages lets nothing be loaded ahead of its use.
  router: { prefetchLinks: false },
  // All versions know of each other by one file above them.
  head: [
    ['script', { src: `${base}versions.js` }],
    ['link', { rel: 'icon', href: ICON }],
  ],
  vite: { build: { chunkSizeWarningLimit: 5000 } },
  markdown: {
    anchor: { slugify },
    config: (md) => md.core.ruler.push('empty-heads', emptyHeadsAsCells),
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    search: {
      provider: 'local',
      options: { detailedView: true },
    },
    nav: [
      { text: 'Install', link: '/install' },
      { text: 'Commands', link: '/reference/cli' },
      { text: 'Playground', link: '/play.html', target: '_self' },
    ],
    outline: [2, 3],
    docFooter: { prev: false, next: false },
    sidebar: {
      '/runbooks/': [BACK, { text: 'Runbooks', items: pagesIn('runbooks') }],
      '/reference/': [BACK, { text: 'References', items: pagesIn('reference') }],
      '/decisions/': [BACK, { text: 'Decisions', items: pagesIn('decisions') }],
      '/': [
        ...sections(),
        {
          text: 'More',
          items: [
            { text: 'Runbooks', link: '/runbooks/' },
            { text: 'Decisions', link: '/decisions/' },
          ],
        },
      ],
    },
  },
};

export default config;

interface Token {
  readonly type: string;
  readonly content: string;
  tag: string;
}

/** The head of a column without a name is not a head, to those who hear the page. */
function emptyHeadsAsCells({ tokens }: { readonly tokens: readonly Token[] }): void {
  for (const [at, token] of tokens.entries()) {
    const [inner, close] = [tokens[at + 1], tokens[at + 2]];
    if (token.type !== 'th_open' || inner?.content !== '' || close === undefined) continue;
    token.tag = 'td';
    close.tag = 'td';
  }
}

/** Anchors as GitHub makes them of headings. */
function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The sections of the index, each with the pages that it leads to first. */
function sections(): DefaultTheme.SidebarItem[] {
  const seen = new Set<string>();
  return readFileSync(`${pages}/index.md`, 'utf8')
    .split(/^## /m)
    .slice(1)
    .map((part) => ({
      text: part.slice(0, part.indexOf('\n')),
      items: [...part.matchAll(/\]\(\.\/((?:reference\/)?[\w-]+)\.md[^)]*\)/g)].flatMap(([, name = '']) => {
        if (seen.has(name)) return [];
        seen.add(name);
        return [{ text: titleOf(readFileSync(`${pages}/${name}.md`, 'utf8')), link: `/${name}` }];
      }),
    }));
}

function pagesIn(folder: string): DefaultTheme.SidebarItem[] {
  return readdirSync(`${pages}/${folder}`)
    .filter((file) => file.endsWith('.md'))
    .sort((a, b) => Number(b === 'index.md') - Number(a === 'index.md') || (a < b ? -1 : 1))
    .map((file) => ({
      text: file === 'index.md' ? 'All of them' : titleOf(readFileSync(`${pages}/${folder}/${file}`, 'utf8')),
      link: `/${folder}/${file === 'index.md' ? '' : file.slice(0, -'.md'.length)}`,
    }));
}
