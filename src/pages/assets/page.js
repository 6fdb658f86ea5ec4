// The script of the pages: it searches as one types, and fetches parts of a page that take long. It makes elements and
// sets their text; it never makes HTML of a text. Without it, the search works with Enter, and the parts are links.
'use strict';

// How long to wait after a key, in milliseconds: shorter than the time between two keys of a fast typist.
const PAUSE = 60;

function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
}

function searchAsTyped(field, list, count) {
    let timer = 0;
    let asked = null;
    let shown = '';

    function hide() {
        list.hidden = true;
        count.textContent = '';
    }

    function link(hit) {
        const made = element('a');
        made.href = hit.open;
        made.append(element('span', 'about', `${hit.what}, ${hit.day}`));
        const text = element('span', 'text');
        for (const [part, isMarked] of hit.text) text.append(isMarked ? element('mark', '', part) : part);
        made.append(text);
        return made;
    }

    function show(hits, question) {
        list.replaceChildren(...hits.map(link));
        list.hidden = hits.length === 0;
        shown = question;
        count.textContent = hits.length === 0 ? 'Nothing found yet' : `${hits.length} found; the arrow keys lead to them`;
    }

    async function search() {
        const question = field.value.trimStart();
        if (asked) asked.abort();
        // One letter says nothing, but one Chinese character or an emoji is a question.
        if (/^[\x20-\x7e]?$/.test(question)) return hide();
        if (question === shown && !list.hidden) return undefined;
        asked = new AbortController();
        try {
            const address = `/search.json?q=${encodeURIComponent(question)}`;
            const answer = await fetch(address, { signal: asked.signal });
            if (answer.ok) show(await answer.json(), question);
            else hide();
        } catch (error) {
            // A newer key ended this search, or the server was ended: Enter then says what is wrong.
            if (error.name !== 'AbortError') hide();
        }
        return undefined;
    }

    function move(event) {
        const links = [...list.querySelectorAll('a')];
        const steps = { ArrowDown: 1, ArrowUp: -1 };
        if (event.key === 'Escape' && !list.hidden) {
            hide();
            field.focus();
        } else if (event.key in steps && !list.hidden && links.length > 0) {
            const place = links.indexOf(document.activeElement) + steps[event.key];
            event.preventDefault();
            (links[place] || field).focus();
        }
    }

    field.addEventListener('input', () => {
        clearTimeout(timer);
        timer = setTimeout(search, PAUSE);
    });
    field.addEventListener('focus', () => { if (list.childElementCount > 0 && field.value.trim() === shown) list.hidden = false; });
    field.form.addEventListener('keydown', move);
    document.addEventListener('click', (event) => { if (!field.form.contains(event.target)) hide(); });
    field.form.addEventListener('focusout', (event) => { if (event.relatedTarget && !field.form.contains(event.relatedTarget)) hide(); });
    // A slash anywhere on the page leads to the search.
    document.addEventListener('keydown', (event) => {
        const isTyping = event.target.matches('input, textarea, select');
        if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            field.focus();
        }
    });
}

// A table of checks that takes long to make: `data-later` names its address.
async function fillLater(place) {
    try {
        const answer = await fetch(place.dataset.later);
        if (!answer.ok) return;
        const rows = await answer.json();
        const body = element('tbody');
        for (const row of rows) {
            const line = element('tr', row.ok ? '' : 'bad');
            const head = element('th', '', row.what);
            head.scope = 'row';
            const found = element('td', '', row.found);
            if (row.mend) found.append(element('br'), element('code', '', row.mend));
            line.append(head, element('td', '', row.ok ? 'fine' : 'fault'), found);
            body.append(line);
        }
        const table = element('table', 'checks');
        table.append(element('caption', '', place.dataset.caption), body);
        place.replaceChildren(table);
    } catch {
        // The link in the place leads to the same.
    }
}

const field = document.getElementById('question');
if (field) searchAsTyped(field, document.getElementById('typed'), document.getElementById('typed-count'));
document.querySelectorAll('[data-later]').forEach(fillLater);
