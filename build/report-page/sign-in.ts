/** The script of the page on which a browser signs in: asks for the report with the token, and becomes it. */

function main(): void {
  const form = document.getElementById('sign-in');
  const token = document.getElementById('token');
  const namespace = document.getElementById('namespace');
  const said = document.getElementById('said');
  if (!(token instanceof HTMLInputElement) || !(namespace instanceof HTMLInputElement) || said === null)
    return;
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    said.textContent = 'The cluster is asked …';
    const given = token.value.trim();
    token.value = '';
    show(given, namespace.value.trim()).catch((error: unknown) => {
      said.textContent = error instanceof Error ? error.message : 'The server did not answer';
      token.focus();
    });
  });
  token.focus();
}

async function show(token: string, namespace: string): Promise<void> {
  const path = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  const answer = await fetch(`${path}report.html`, {
    headers: { authorization: `Bearer ${token}` },
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
  }).catch(() => {
    throw new Error('The server did not answer');
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim().slice(0, 500));
  // The policy of this document stays in force, and allows the report's script and style alone.
  document.open();
  document.write(text);
  document.close();
}

main();
