/** The platform's logo as SVG. */
export const mark =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2257bf"/><path d="M9 11.5 16 8l7 3.5-7 3.5zM9 16l7 3.5 7-3.5M9 20.5 16 24l7-3.5" fill="none" stroke="#fff" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/></svg>'

/** The favicon as a data URL. */
export const icon = `data:image/svg+xml,${encodeURIComponent(mark)}`

/** The style sheet of the API reference. It repeats the portal's colours, because the page loads no other file. */
export const style = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#f6f7f9, #0f1319);
  --surface: light-dark(#ffffff, #161b23);
  --raised: light-dark(#ffffff, #1d242e);
  --sunken: light-dark(#eef1f5, #0b0f14);
  --line: light-dark(#dde2ea, #2b3440);
  --line-strong: light-dark(#7f8a99, #6b7787);
  --ink: light-dark(#1b2430, #e6eaf0);
  --muted: light-dark(#556070, #9aa6b5);
  --accent: light-dark(#2257bf, #86b0ff);
  --accent-strong: light-dark(#1a469d, #a9c7ff);
  --on-accent: light-dark(#ffffff, #0d1626);
  --accent-tint: light-dark(#e8effc, #1d2b45);
  --good: light-dark(#17693f, #6fd39b);
  --good-tint: light-dark(#e3f4ea, #14301f);
  --warn: light-dark(#7a4300, #f0b266);
  --warn-tint: light-dark(#fdf0dc, #38270f);
  --bad: light-dark(#b3261e, #ff9a92);
  --bad-tint: light-dark(#fdeae8, #3d1917);
  --mono: ui-monospace, 'SF Mono', 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  --text: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif;
  --small: 0.8125rem;
  --body: 0.9375rem;
  --large: 1.125rem;
  --title: 1.5rem;
  --control: 2.25rem;
  --radius: 8px;
  --radius-small: 5px;
  --shadow-high: 0 8px 24px #10182833, 0 2px 6px #1018281f;
}
* { box-sizing: border-box; }
html { background: var(--paper); font: var(--body)/1.55 var(--text); scroll-padding-top: 4.5rem; }
body { margin: 0; color: var(--ink); overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: 0.2em; }
a:hover { color: var(--accent-strong); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: var(--radius-small); }
h1, h2, h3, h4, p, ul, pre { margin: 0 0 0.75rem; }
h1 { font-size: var(--title); line-height: 1.25; letter-spacing: -0.015em; }
h2 { font-size: 1.3rem; line-height: 1.3; letter-spacing: -0.01em; }
h3 { font-size: var(--large); line-height: 1.35; }
h4 { font-size: 0.875rem; margin-top: 1.5rem; }
h4 + h4 { margin-top: 0; }
h2 a, h3 a { color: inherit; text-decoration: none; }
h2 a:hover, h3 a:hover { text-decoration: underline; }
code, pre { font: 0.875em/1.6 var(--mono); }
p code, li code, td code { background: var(--sunken); border-radius: var(--radius-small); padding: 0.1em 0.25em; }
.skip { position: fixed; top: -10rem; left: 0.5rem; background: var(--raised); border-radius: var(--radius-small); box-shadow: var(--shadow-high); padding: 0.5rem 1rem; z-index: 3; }
.skip:focus { top: 0.5rem; }
summary { cursor: pointer; }

.bar { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: 1rem; height: 3.25rem; padding: 0 1rem; border-bottom: 1px solid var(--line); background: var(--surface); }
.brand { display: flex; align-items: center; gap: 0.5rem; min-width: 0; margin-right: auto; font-weight: 650; }
.brand svg { flex: none; width: 24px; height: 24px; }
.brand span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.back { flex: none; display: inline-flex; align-items: center; min-height: 2.25rem; }

nav { border-bottom: 1px solid var(--line); background: var(--surface); padding: 0.75rem 1rem; font-size: var(--small); }
nav summary { font-weight: 600; }
nav p { margin: 1rem 0 0.25rem; font-weight: 600; }
nav p a { color: inherit; text-decoration: none; }
nav ul { list-style: none; padding: 0; }
nav li a { display: flex; gap: 0.5rem; align-items: baseline; padding: 0.25rem 0; color: var(--ink); text-decoration: none; line-height: 1.4; }
nav a:hover { text-decoration: underline; }
nav .method { flex: none; width: 3.9rem; text-align: center; }

main { outline: none; padding: 1.5rem 1rem 4rem; max-width: 82rem; margin: 0 auto; }
.edition { color: var(--muted); display: flex; gap: 1rem; flex-wrap: wrap; }
.introduction { max-width: 46rem; }
section { margin-top: 3.5rem; }
section > p { color: var(--muted); }
article { border-top: 1px solid var(--line); padding: 1.75rem 0; display: grid; gap: 1.5rem; }
article > * { min-width: 0; }
:target > .explanation > h3 { text-decoration: underline; text-decoration-thickness: 3px; text-decoration-color: var(--accent); }
.route { display: flex; gap: 0.5rem; align-items: baseline; }
.route code { background: none; padding: 0; }
.method { font: 600 0.7rem/1.6 var(--mono); color: var(--hue); background: var(--tint); border-radius: var(--radius-small); padding: 0.05rem 0.4rem; }
.get { --hue: var(--good); --tint: var(--good-tint); }
.post, .put { --hue: var(--accent); --tint: var(--accent-tint); }
.patch { --hue: var(--warn); --tint: var(--warn-tint); }
.delete { --hue: var(--bad); --tint: var(--bad-tint); }
.status { font: 600 0.8rem/1.6 var(--mono); border: 1px solid var(--line); border-radius: var(--radius-small); padding: 0.05rem 0.35rem; }

.fields { list-style: none; padding: 0; border-top: 1px solid var(--line); font-size: 0.9rem; }
.fields > li { border-bottom: 1px solid var(--line); padding: 0.5rem 0; }
.fields p { margin: 0; }
.fields .name { background: none; padding: 0; font-weight: 600; }
.kind, .optional { color: var(--muted); font-size: var(--small); }
.optional { font-style: italic; }
.fields details { margin-top: 0.25rem; font-size: 0.9rem; }
.fields summary { color: var(--muted); }
.fields .fields { margin: 0.25rem 0 0; padding-left: 1rem; border-top: 0; border-left: 2px solid var(--line); }
.fields .fields > li:last-child { border-bottom: 0; }

.errors { margin-top: 1.5rem; }
.errors > summary { font-size: 0.875rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; margin-top: 0.5rem; }
th, td { vertical-align: top; text-align: left; border-bottom: 1px solid var(--line); padding: 0.5rem 0.75rem 0.5rem 0; }
th { width: 3.5rem; }
td ul { padding: 0; margin: 0; list-style: none; }

.sample { font-size: 0.75rem; font-weight: 600; color: var(--muted); margin: 0 0 0.25rem; }
[hidden] { display: none !important; }
input, select, textarea { width: 100%; min-height: var(--control); padding: 0.25rem 0.5rem; border: 1px solid var(--line-strong); border-radius: var(--radius-small); background: var(--surface); color: var(--ink); font: inherit; }
input[type='checkbox'] { width: auto; min-height: 1.25rem; flex: none; }
textarea { font: 0.8125rem/1.6 var(--mono); resize: vertical; }
button { min-height: var(--control); padding: 0 0.75rem; border: 1px solid var(--line-strong); border-radius: var(--radius-small); background: var(--raised); color: var(--ink); font: inherit; cursor: pointer; }
[type='submit'] { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
.search { margin-bottom: 0.75rem; }
.search label { font-weight: 600; }
.search p { margin: 0.25rem 0 0; font-weight: 400; color: var(--muted); }
.tabs { display: flex; gap: 0.25rem; margin-bottom: 0.25rem; }
.tabs button { min-height: 1.75rem; font-size: 0.75rem; }
[aria-selected='true'] { border-color: var(--accent); color: var(--accent); font-weight: 600; }
form { display: grid; gap: 0.75rem; margin-top: 0.75rem; padding: 0.75rem; border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); font-size: var(--small); }
form.changes { border-color: var(--warn); }
form p { margin: 0.25rem 0 0; color: var(--muted); }
form label > span { font-weight: 600; }
.warning { display: flex; gap: 0.5rem; align-items: center; padding: 0.5rem; border-radius: var(--radius-small); background: var(--warn-tint); color: var(--warn); }
.output pre { margin: 0.5rem 0 0; max-height: 24rem; overflow: auto; background: var(--sunken); }
pre { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); padding: 0.75rem 1rem; font-size: var(--small); white-space: pre-wrap; }

@media (min-width: 64rem) {
  body { display: grid; grid-template: auto 1fr / 18rem minmax(0, 1fr); }
  .bar { grid-column: 1 / -1; }
  nav { position: sticky; top: 3.25rem; height: calc(100vh - 3.25rem); overflow-y: auto; border-right: 1px solid var(--line); border-bottom: 0; }
  main { width: 100%; padding: 1.5rem 3rem 6rem; }
  article { grid-template-columns: minmax(0, 1fr) minmax(0, 26rem); gap: 3rem; }
  .samples { position: sticky; top: 4.75rem; align-self: start; }
}
/* On wide screens, the list of operations stays open in browsers that support ::details-content. */
@supports selector(::details-content) {
  @media (min-width: 64rem) {
    nav details::details-content { content-visibility: visible; display: contents; }
    nav summary { display: none; }
  }
}
@media print { .bar, nav, .samples { display: none; } }
`
