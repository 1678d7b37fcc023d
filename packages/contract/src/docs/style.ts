/** The picture in the browser's tab: three linked nodes. */
export const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M8 4 4 12h8z" fill="none" stroke="#3b6fd4" stroke-width="1.5"/><g fill="#3b6fd4"><circle cx="8" cy="4" r="2.5"/><circle cx="4" cy="12" r="2.5"/><circle cx="12" cy="12" r="2.5"/></g></svg>',
)}`

/** The look of the page. Light or dark as the reader's system asks, one column on small screens, three on wide ones. */
export const style = `
:root {
  color-scheme: light dark;
  --paper: #ffffff; --shade: #f5f7fa; --line: #dde2ea; --ink: #1b2430; --faint: #586474; --accent: #2257bf;
  --get: #17693f; --post: #2257bf; --patch: #8a4b00; --delete: #b3261e; --tint: 12%;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161d; --shade: #1a2029; --line: #2e3743; --ink: #e6eaf0; --faint: #9aa6b5; --accent: #86b0ff;
    --get: #6fd39b; --post: #86b0ff; --patch: #f0b266; --delete: #ff9a92; --tint: 18%;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: 0.2em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
h1, h2, h3, h4, p, ul, pre { margin: 0 0 0.75rem; }
h1 { font-size: 2rem; line-height: 1.2; letter-spacing: -0.02em; }
h2 { font-size: 1.5rem; line-height: 1.3; letter-spacing: -0.01em; }
h3 { font-size: 1.15rem; line-height: 1.4; }
h4 { font-size: 0.875rem; margin-top: 1.5rem; }
h4 + h4 { margin-top: 0; }
h2 a, h3 a { color: inherit; text-decoration: none; }
h2 a:hover, h3 a:hover { text-decoration: underline; }
code, pre { font: 0.875em/1.6 ui-monospace, 'SF Mono', Menlo, Consolas, monospace; }
p code, li code, td code { background: var(--shade); border-radius: 4px; padding: 0.1em 0.2em; }
.skip { position: absolute; left: -100vw; background: var(--paper); padding: 0.75rem; z-index: 1; }
.skip:focus { left: 0; }
summary { cursor: pointer; }

nav { border-bottom: 1px solid var(--line); background: var(--shade); padding: 0.75rem 1.25rem; font-size: 0.875rem; }
nav summary { font-weight: 600; }
nav p { margin: 1rem 0 0.25rem; font-weight: 600; }
nav p a { color: inherit; text-decoration: none; }
nav ul { list-style: none; padding: 0; }
nav li a { display: flex; gap: 0.5rem; align-items: baseline; padding: 0.25rem 0; color: var(--ink); text-decoration: none; line-height: 1.4; }
nav a:hover { text-decoration: underline; }
nav .method { flex: none; width: 3.9rem; text-align: center; }

main { padding: 2rem 1.25rem 4rem; max-width: 82rem; margin: 0 auto; }
.edition { color: var(--faint); display: flex; gap: 1rem; flex-wrap: wrap; }
.introduction { max-width: 46rem; }
section { margin-top: 3.5rem; }
section > p { color: var(--faint); }
article { border-top: 1px solid var(--line); padding: 1.75rem 0; display: grid; gap: 1.5rem; }
article > * { min-width: 0; }
:target > .explanation > h3 { text-decoration: underline; text-decoration-thickness: 3px; text-decoration-color: var(--accent); }
.route { display: flex; gap: 0.5rem; align-items: baseline; }
.route code { background: none; padding: 0; }
.method { font: 600 0.7rem/1.6 ui-monospace, 'SF Mono', Menlo, Consolas, monospace; color: var(--hue); background: color-mix(in srgb, var(--hue) var(--tint), transparent); border-radius: 4px; padding: 0.05rem 0.4rem; }
.get { --hue: var(--get); } .post, .put { --hue: var(--post); } .patch { --hue: var(--patch); } .delete { --hue: var(--delete); }
.status { font: 600 0.8rem/1.6 ui-monospace, 'SF Mono', Menlo, Consolas, monospace; border: 1px solid var(--line); border-radius: 4px; padding: 0.05rem 0.35rem; }

.fields { list-style: none; padding: 0; border-top: 1px solid var(--line); font-size: 0.9rem; }
.fields > li { border-bottom: 1px solid var(--line); padding: 0.5rem 0; }
.fields p { margin: 0; }
.fields .name { background: none; padding: 0; font-weight: 600; }
.kind, .optional { color: var(--faint); font-size: 0.8125rem; }
.optional { font-style: italic; }
.fields details { margin-top: 0.25rem; font-size: 0.9rem; }
.fields summary { color: var(--faint); }
.fields .fields { margin: 0.25rem 0 0; padding-left: 1rem; border-top: 0; border-left: 2px solid var(--line); }
.fields .fields > li:last-child { border-bottom: 0; }

.errors { margin-top: 1.5rem; }
.errors > summary { font-size: 0.875rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; margin-top: 0.5rem; }
th, td { vertical-align: top; text-align: left; border-bottom: 1px solid var(--line); padding: 0.5rem 0.75rem 0.5rem 0; }
th { width: 3.5rem; }
td ul { padding: 0; margin: 0; list-style: none; }

.samples > p { font-size: 0.75rem; font-weight: 600; color: var(--faint); margin: 0 0 0.25rem; }
pre { background: var(--shade); border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem 1rem; font-size: 0.8125rem; white-space: pre-wrap; }

@media (min-width: 64rem) {
  body { display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-right: 1px solid var(--line); border-bottom: 0; }
  main { width: 100%; padding: 2.5rem 3rem 6rem; }
  article { grid-template-columns: minmax(0, 1fr) minmax(0, 26rem); gap: 3rem; }
  .samples { position: sticky; top: 1.5rem; align-self: start; max-height: calc(100vh - 3rem); overflow-y: auto; }
}
/* Where the page can open it, the list of operations stays open on wide screens. */
@supports selector(::details-content) {
  @media (min-width: 64rem) {
    nav details::details-content { content-visibility: visible; display: contents; }
    nav summary { display: none; }
  }
}
@media print { nav, .samples { display: none; } }
`
