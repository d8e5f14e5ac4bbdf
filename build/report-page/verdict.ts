/** Verdicts as people see them: a sign, a colour and a word, so that none of them is needed alone. */
import { type ReportVerdict, VERDICT_WORDS } from '../../runtime/diagnose/model/types.ts';
import { html } from './dom.ts';

const SIGNS: Readonly<Record<ReportVerdict, string>> = { broken: '✕', attention: '!', unknown: '?', ok: '✓' };

/** Sign and word. */
export function badge(verdict: ReportVerdict, text: string = VERDICT_WORDS[verdict]): HTMLElement {
  return html`<span class="badge ${verdict}">${sign(verdict)}${text}</span>`;
}

/** The sign alone, for eyes: what it means must stand beside it. */
export function sign(verdict: ReportVerdict): HTMLElement {
  return html`<span class="sign ${verdict}" aria-hidden="true">${SIGNS[verdict]}</span>`;
}

/** The sign with a word for screen readers. */
export function mark(verdict: ReportVerdict, about: string): HTMLElement {
  const said = `${VERDICT_WORDS[verdict]}: ${about}`;
  return html`<span class="mark" title="${said}">${sign(verdict)}<span class="unseen">${said}</span></span>`;
}
