import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { type ApiResponse, describeResponse } from './answer.ts'
import {
  type HeaderObject,
  isReference,
  type OpenApi,
  type Operation,
  operationOf,
  operationsOf,
  pointer,
  resolve,
  type ResponseObject,
} from './document.ts'
import { recordResponse } from './seen-answers.ts'

const errorSchema = pointer('components', 'schemas', 'Error')

export class Contract {
  readonly document: OpenApi
  readonly operations: readonly Operation[]
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false })

  constructor(document: OpenApi) {
    this.document = document
    this.operations = operationsOf(document)
    formats.default(this.#ajv)
    this.#ajv.addSchema(document, 'contract')
  }

  check(response: ApiResponse): void {
    const { method, path, status, body } = response
    recordResponse({ method, path: path.split('?')[0] ?? '', status, error: body?.error })
    const violations = [...headerViolations(response), ...errorViolations(response), ...this.#violations(response)]
    if (violations.length > 0) throw new Error(`${describeResponse(response)}\n  ${violations.join('\n  ')}`)
  }

  #violations(response: ApiResponse): string[] {
    // The document does not contain 304, which every conditional request may return.
    if (response.status === 304) return []
    const operation = operationOf(this.operations, response.method, response.path)
    if (operation === undefined) return isOfModule(response) ? [] : this.#schemaViolations(errorSchema, response.body)
    const { operationId, method, template, responses } = operation
    const entry = responses[response.status]
    if (entry === undefined) return [`${operationId} does not document the status ${response.status}`]
    const documentedResponse = resolve<ResponseObject>(this.document, entry)
    const location = isReference(entry)
      ? entry.$ref
      : pointer('paths', template, method.toLowerCase(), 'responses', String(response.status))
    return [
      ...this.#contentViolations(location, documentedResponse, response),
      ...this.#documentedHeaderViolations(documentedResponse, response),
      ...codeViolations(operationId, documentedResponse, response),
    ]
  }

  #contentViolations(location: string, { content }: ResponseObject, { headers, text, body }: ApiResponse): string[] {
    if (content === undefined) return text === '' ? [] : ['no body is documented']
    const type = headers.get('content-type') ?? ''
    const documented = content[type]
    if (documented === undefined) return [`the content type ${type} is not documented`]
    if (documented.schema === undefined) return []
    return this.#schemaViolations(location + pointer('content', type, 'schema').slice(1), body)
  }

  #documentedHeaderViolations({ headers: documented = {} }: ResponseObject, { headers }: ApiResponse): string[] {
    return Object.entries(documented).flatMap(([name, entry]) => {
      const { required, schema } = resolve<HeaderObject>(this.document, entry)
      const text = headers.get(name)
      if (text === null) return required ? [`the header ${name} is missing`] : []
      const value = schema['type'] === 'integer' ? Number(text) : text
      return this.#ajv.validate(schema, value) ? [] : [`the header ${name} is ${text}`]
    })
  }

  #schemaViolations(location: string, value: unknown): string[] {
    const validate = this.#ajv.getSchema(`contract${location}`)
    if (validate === undefined) return [`the document has no schema at ${location}`]
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `the body ${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }
}

/** Modules define their own responses; only errors of the platform's gateway are checked. */
const isOfModule = ({ path, status }: ApiResponse): boolean =>
  status < 400 && /^\/(?:modules\/|api\/(?!v\d|modules(?:\/|$)))/.test(path)

/** The description of an error response lists its codes. */
function codeViolations(operationId: string, { description }: ResponseObject, { status, body }: ApiResponse): string[] {
  const isUnknown = status >= 400 && typeof body?.error === 'string' && !description.includes(`\`${body.error}\``)
  return isUnknown ? [`${operationId} does not document ${body.error} for ${status}`] : []
}

const requiredHeaders: Record<string, RegExp> = {
  'x-trace-id': /^(?!0{32})[0-9a-f]{32}$/,
  'x-content-type-options': /^nosniff$/,
  'referrer-policy': /^no-referrer$/,
  'cache-control': /./,
}

function headerViolations({ status, headers }: ApiResponse): string[] {
  const violations = Object.entries(requiredHeaders)
    .filter(([name, pattern]) => !pattern.test(headers.get(name) ?? ''))
    .map(([name]) => `the header ${name} is ${headers.get(name)}`)
  const isCacheable = headers.get('cache-control') !== 'no-store'
  return isCacheable && status >= 400 ? [...violations, 'an error may be cached'] : violations
}

function errorViolations({ status, headers, body }: ApiResponse): string[] {
  const isProbe = status === 503 && typeof body?.status === 'string'
  if (status < 400 || isProbe) return []
  return [
    ...(headers.get('content-type') === 'application/json' ? [] : ['the error is not JSON']),
    ...(body?.traceId === headers.get('x-trace-id') ? [] : ['traceId is not the X-Trace-Id']),
    ...(status === 401 && !headers.has('www-authenticate') ? ['401 without WWW-Authenticate'] : []),
    ...((status === 429 || status === 503) && !headers.has('retry-after') ? [`${status} without Retry-After`] : []),
  ]
}
