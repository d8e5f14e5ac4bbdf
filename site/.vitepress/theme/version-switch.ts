/** Leads to the same page of another version, or to its index where it has no such page. */
import { useData } from 'vitepress';
import { type DefineComponent, defineComponent, h, onMounted, ref } from 'vue';

/** Entry of `versions.js`, newest first. */
interface Version {
  readonly version: string;
  readonly path: string;
  readonly pages: readonly string[];
}

/** The switch. Before the script has run, it holds the version of this page alone. */
export const VersionSwitch: DefineComponent = defineComponent({
  setup() {
    const { site, page } = useData();
    const here = site.value.base.split('/').at(-2) ?? '';
    const versions = ref<readonly Version[]>([{ version: here, path: site.value.base, pages: [] }]);
    onMounted(() => {
      const { pullwrightVersions: known } = globalThis as {
        readonly pullwrightVersions?: readonly Version[];
      };
      if (known !== undefined) versions.value = known;
    });
    const open = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      const chosen = versions.value.find(({ version }) => version === value);
      if (chosen === undefined) return;
      const name = page.value.relativePath.replace(/\.md$/, '.html');
      location.assign(chosen.path + (chosen.pages.includes(name) ? name : ''));
    };
    return () =>
      h('label', { class: 'versions' }, [
        h('span', { class: 'visually-hidden' }, 'Version'),
        h(
          'select',
          { value: here, onChange: open },
          versions.value.map(({ version }, index) =>
            h('option', { value: version }, index === 0 ? `${version} (latest)` : version),
          ),
        ),
      ]);
  },
}) as DefineComponent;
