/** The default theme without its fonts, in the colours of the report, with a switch between versions. */

import { type Theme, useRoute } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { type DefineComponent, defineComponent, h, nextTick, onMounted, watch } from 'vue';
import { VersionSwitch } from './version-switch.ts';
import './style.css';

/** Sets right what those miss who hear the page: the first page has no main part, and the search is called by half of its name. */
const Layout: DefineComponent = defineComponent({
  setup() {
    const route = useRoute();
    const name = async (): Promise<void> => {
      await nextTick();
      // Its accessible name must be its visible text, which includes the keys.
      document.querySelector('.DocSearch-Button')?.removeAttribute('aria-label');
      const content = document.getElementById('VPContent');
      if (content?.querySelector('main') === null) content.setAttribute('role', 'main');
      else content?.removeAttribute('role');
    };
    onMounted(name);
    watch(() => route.path, name);
    return () =>
      h(DefaultTheme.Layout, undefined, {
        'nav-bar-content-after': () => h(VersionSwitch),
        'nav-screen-content-after': () => h(VersionSwitch),
      });
  },
}) as DefineComponent;

const theme: Theme = {
  extends: DefaultTheme,
  Layout,
};

export default theme;
