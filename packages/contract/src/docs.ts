import { type ApiDocument, entriesOf, type Entry } from './docs/document.ts'
import { Html, html } from './docs/html.ts'
import { methodLabel, operation } from './docs/operation.ts'
import { line, prose } from './docs/prose.ts'
import { icon, mark, style } from './docs/style.ts'

interface Group {
  id: string
  name: string
  description: string
  entries: Entry[]
}

function groupsOf(document: ApiDocument): Group[] {
  const entries = entriesOf(document)
  return document.tags.map(({ name, description = '' }) => ({
    id: `tag-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`,
    name,
    description,
    entries: entries.filter((entry) => entry.operation.tags.includes(name)),
  }))
}

const contents = (groups: readonly Group[]): Html =>
  html`<nav aria-label="Operations" tabindex="0">
    <details>
      <summary>Operations</summary>
      ${groups.map(
        ({ id, name, entries }) =>
          html`<p><a href="#${id}">${name}</a></p>
            <ul>
              ${entries.map(
                ({ method, operation: { operationId, summary } }) =>
                  html`<li>
                    <a href="#${operationId}">${methodLabel(method)} <span>${summary}</span></a>
                  </li>`,
              )}
            </ul>`,
      )}
    </details>
  </nav>`

const section = (document: ApiDocument, { id, name, description, entries }: Group): Html =>
  html`<section id="${id}">
    <h2><a href="#${id}">${name}</a></h2>
    <p>${line(description)}</p>
    ${entries.map((entry) => operation(document, entry))}
  </section>`

const pageHeader = html`<div class="bar">
  <div class="brand">${new Html(mark.replace('<svg ', '<svg aria-hidden="true" '))} <span>Platform</span></div>
  <a class="back" href="/">Back to the portal</a>
</div>`

// Not an `html` template: the text must match the hash in the policy byte for byte.
const styleElement = new Html(`<style>${style}</style>`)

/** The API reference as one HTML page that loads no other resources. */
export function docsPage(document: ApiDocument): string {
  const { title, version, description } = document.info
  const groups = groupsOf(document)
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>API reference · ${title}</title>
        <link rel="icon" href="${icon}" />
        ${styleElement}
      </head>
      <body>
        <a class="skip" href="#reference">Skip to the reference</a>
        ${pageHeader} ${contents(groups)}
        <main id="reference" tabindex="-1">
          <header>
            <h1>${title}</h1>
            <p class="edition">Version ${version} <a href="/api/v1/openapi.json">OpenAPI document</a></p>
            <div class="introduction">
              ${prose(description)}
              <p>
                In the examples <code>$PLATFORM</code> is the address of the platform and <code>$TOKEN</code> an access
                token.
              </p>
            </div>
          </header>
          ${groups.map((group) => section(document, group))}
        </main>
      </body>
    </html> `.markup
}

/** The Content-Security-Policy of the page; it allows only the page's own style sheet and icon. */
export async function docsSecurityPolicy(): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
  const hash = btoa(String.fromCharCode(...new Uint8Array(digest)))
  return `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}
