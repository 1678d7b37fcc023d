import { readFileSync } from 'node:fs'
import { type ApiDocument, entriesOf, type Entry, type Operation } from './docs/document.ts'
import { Html, html } from './docs/html.ts'
import { deliveryFields, methodLabel, operation, webhook } from './docs/operation.ts'
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

type WebhookEntry = readonly [type: string, operation: Operation]

const webhooksOf = ({ webhooks = {} }: ApiDocument): WebhookEntry[] =>
  Object.entries(webhooks).map(([type, { post }]) => [type, post])

const contents = (groups: readonly Group[], events: readonly WebhookEntry[]): Html =>
  html`<nav aria-label="Operations" tabindex="0">
    <div class="search" role="search" hidden="">
      <label for="search">Search</label>
      <input id="search" type="search" placeholder="Path, summary or property" autocomplete="off" spellcheck="false" />
      <p role="status"></p>
    </div>
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
      <p><a href="#webhook-events">Events of webhooks</a></p>
      <ul>
        ${events.map(([type, { operationId }]) => html`<li><a href="#${operationId}">${type.replace('platform.', '')}</a></li>`)}
      </ul>
    </details>
  </nav>`

const section = (document: ApiDocument, { id, name, description, entries }: Group): Html =>
  html`<section id="${id}">
    <h2><a href="#${id}">${name}</a></h2>
    <p>${line(description)}</p>
    ${entries.map((entry) => operation(document, entry))}
  </section>`

const deliveryIntroduction =
  'The platform sends each event of a webhook by POST to its address. Verify the signature before you use a delivery, with a library of Standard Webhooks or as the header describes. Respond with a 2xx status within ten seconds, and do slow work afterwards. Deliveries may arrive twice or out of order.'

const eventSection = (document: ApiDocument, events: readonly WebhookEntry[]): Html =>
  html`<section id="webhook-events">
    <h2><a href="#webhook-events">Events of webhooks</a></h2>
    <p>${deliveryIntroduction}</p>
    ${events[0] && deliveryFields(document, events[0][1])}
    ${events.map(([type, entry]) => webhook(document, type, entry))}
  </section>`

const pageHeader = html`<header class="bar">
  <div class="brand">${new Html(mark.replace('<svg ', '<svg aria-hidden="true" '))} <span>Platform</span></div>
  <a class="back" href="/">Back to the portal</a>
</header>`

// These are not `html` templates, because `html` would escape the style sheet and the script.
const styleElement = new Html(`<style>${style}</style>`)
const script = readFileSync(new URL('docs/browser.js', import.meta.url), 'utf8')
const scriptElement = new Html(`<script type="module">${script}</script>`)

/** Renders the API reference as one HTML page that loads no other resources. */
export function docsPage(document: ApiDocument): string {
  const { title, version, description } = document.info
  const groups = groupsOf(document)
  const events = webhooksOf(document)
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
        ${pageHeader} ${contents(groups, events)}
        <main id="reference" tabindex="-1">
          <header>
            <h1>${title}</h1>
            <p class="edition">Version ${version} <a href="/api/v1/openapi.json">OpenAPI document</a></p>
            <div class="introduction">
              ${prose(description)}
              <p>
                In the examples <code>$PLATFORM</code> is the address of the platform and <code>$TOKEN</code> an access
                or API token.
              </p>
            </div>
          </header>
          ${groups.map((group) => section(document, group))} ${eventSection(document, events)}
        </main>
        ${scriptElement}
      </body>
    </html> `.markup
}
