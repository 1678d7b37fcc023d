import {
  type ApiDocument,
  type Entry,
  jsonOf,
  jsonSchemaOf,
  type MediaTypes,
  type Operation,
  type Parameter,
  parametersOf,
  responseOf,
} from './document.ts'
import { curlCommand, javascriptRequest } from './example.ts'
import { type Html, html } from './html.ts'
import { line, prose } from './prose.ts'
import { fields, row } from './schema.ts'

export const methodLabel = (method: string): Html => html`<span class="method ${method.toLowerCase()}">${method}</span>`

const parameterGroups = { path: 'Path parameters', query: 'Query parameters', header: 'Headers' }

const parameterRow = (document: ApiDocument, { name, description, schema, required }: Parameter): Html =>
  row(document, name, { ...(description !== undefined && { description }), ...schema }, required === true)

function parameters(document: ApiDocument, allParameters: readonly Parameter[]): Html[] {
  return Object.entries(parameterGroups).flatMap(([place, title]) => {
    const entries = allParameters.filter((parameter) => parameter.in === place)
    const rows = entries.map((parameter) => parameterRow(document, parameter))
    return rows.length === 0
      ? []
      : html`<h4>${title}</h4>
          <ul class="fields">
            ${rows}
          </ul>`
  })
}

function body(document: ApiDocument, content: MediaTypes | undefined): Html | undefined {
  const schema = jsonSchemaOf(content)
  return (
    schema &&
    html`<h4>Request body</h4>
      ${fields(document, schema)}`
  )
}

type ResponseEntry = readonly [status: string, description: string, content: MediaTypes | undefined]

function responsesOf(document: ApiDocument, { operation }: Entry): ResponseEntry[] {
  return Object.entries(operation.responses).map(([status, response]) => {
    const { description, content } = responseOf(document, response)
    return [status, description, content]
  })
}

// Error responses are listed by their codes, other responses by their fields.
const isFailure = ([, , content]: ResponseEntry): boolean =>
  jsonSchemaOf(content)?.$ref === '#/components/schemas/Error'

function heading([status, description, content]: ResponseEntry): Html {
  const type = Object.keys(content ?? {}).find((name) => name !== 'application/json')
  return html`<h4>
    <span class="status">${status}</span> ${line(description)} ${type !== undefined && html`<code>${type}</code>`}
  </h4>`
}

// Responses with the same body share one description of its fields.
function successes(document: ApiDocument, entries: readonly ResponseEntry[]): Html[] {
  const bodies = Map.groupBy(entries, ([, , content]) => JSON.stringify(jsonSchemaOf(content)))
  return [...bodies.values()].map((equalEntries) => {
    const schema = jsonSchemaOf(equalEntries[0]?.[2])
    return html`${equalEntries.map(heading)}${schema && fields(document, schema)}`
  })
}

function failures(entries: readonly ResponseEntry[]): Html | undefined {
  const rows = entries.map(
    ([status, description]) =>
      html`<tr>
        <th scope="row"><span class="status">${status}</span></th>
        <td>${prose(description)}</td>
      </tr>`,
  )
  const statuses = entries.map(([status]) => html` <span class="status">${status}</span>`)
  return html`<details class="errors">
    <summary>Errors${statuses}</summary>
    <table>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </details>`
}

const sample = (title: string, code: string): Html =>
  html`<p class="sample">${title}</p>
    <pre><code>${code}</code></pre>`

function requests(document: ApiDocument, entry: Entry): Html {
  const { operationId, summary } = entry.operation
  const languages = { curl: curlCommand(document, entry), JavaScript: javascriptRequest(document, entry) }
  const tabs = Object.keys(languages).map(
    (name) =>
      html`<button
        type="button"
        role="tab"
        id="${operationId}-${name}-tab"
        aria-controls="${operationId}-${name}"
        data-language="${name}"
      >
        ${name}
      </button>`,
  )
  const panels = Object.entries(languages).map(
    ([name, code]) =>
      html`<div id="${operationId}-${name}" data-language="${name}" aria-labelledby="${operationId}-${name}-tab">
        <pre><code>${code}</code></pre>
      </div>`,
  )
  return html`<div class="tabs" role="tablist" aria-label="Request: ${summary}">${tabs}</div>
    ${panels}`
}

// Every POST of a signed-in user has an Idempotency-Key, unless it changes nothing.
const isReadOnly = (document: ApiDocument, { method, operation }: Entry): boolean =>
  method === 'GET' ||
  (method === 'POST' &&
    (operation.security ?? []).length > 0 &&
    !parametersOf(document, operation).some(({ name }) => name === 'Idempotency-Key'))

// Requests of relays are signed, and redirects are for browsers.
const canBeTried = ({ operation: { security = [], responses } }: Entry): boolean =>
  !security.some((scheme) => 'relayToken' in scheme) && Object.keys(responses).some((status) => status.startsWith('2'))

function samples(document: ApiDocument, entry: Entry, entries: readonly ResponseEntry[]): Html {
  const response = entries.map(([, , content]) => jsonOf(content)).find((media) => media !== undefined)
  const { operationId, summary, 'x-codeSamples': commands = [] } = entry.operation
  const effect = isReadOnly(document, entry) ? 'reads' : 'changes'
  return html`<div class="samples">
    ${commands.map(({ label, source }) => sample(label, source))} ${requests(document, entry)}
    ${response && sample('Response', JSON.stringify(response.example, null, 2))}
    ${
      canBeTried(entry) &&
      html`<button
        type="button"
        class="try"
        data-operation="${operationId}"
        data-effect="${effect}"
        aria-label="Try it: ${summary}"
        hidden=""
      >
        Try it
      </button>`
    }
  </div>`
}

/** Renders the article of one operation: description, parameters, responses and samples. */
export function operation(document: ApiDocument, entry: Entry): Html {
  const { operationId, summary, description, requestBody } = entry.operation
  const responses = responsesOf(document, entry)
  const entries = responses.filter((response) => !isFailure(response))
  return html`<article id="${operationId}" aria-labelledby="${operationId}-title">
    <div class="explanation">
      <h3 id="${operationId}-title"><a href="#${operationId}">${summary}</a></h3>
      <p class="route">${methodLabel(entry.method)} <code>${entry.path}</code></p>
      ${prose(description)} ${parameters(document, parametersOf(document, entry.operation))}
      ${body(document, requestBody?.content)} ${successes(document, entries)} ${failures(responses.filter(isFailure))}
    </div>
    ${samples(document, entry, entries)}
  </article>`
}

/** Renders the article of one event that webhooks receive. */
export function webhook(
  document: ApiDocument,
  type: string,
  { operationId, description, requestBody }: Operation,
): Html {
  const media = jsonOf(requestBody?.content)
  const data = media?.schema?.allOf?.[1]?.properties?.['data']
  return html`<article id="${operationId}" aria-labelledby="${operationId}-title">
    <div class="explanation">
      <h3 id="${operationId}-title"><a href="#${operationId}">${type}</a></h3>
      ${prose(description)}
      <h4>Data</h4>
      ${data && fields(document, data)}
    </div>
    <div class="samples">${sample('Example', JSON.stringify(media?.example, null, 2))}</div>
  </article>`
}

/** Renders the headers of a delivery and the fields of its body. */
export const deliveryFields = (document: ApiDocument, { parameters: allParameters = [] }: Operation): Html =>
  html`<h3>Headers</h3>
    <ul class="fields">
      ${parametersOf(document, { parameters: allParameters }).map((parameter) => parameterRow(document, parameter))}
    </ul>
    <h3>Body</h3>
    ${fields(document, { $ref: '#/components/schemas/CloudEvent' })}`
