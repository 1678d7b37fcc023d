import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { type Answer, show } from './answer.ts'
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
import { errorViolations, everywhereViolations } from './promises.ts'
import { recordResponse } from './seen-answers.ts'

const errorSchema = pointer('components', 'schemas', 'Error')

/** Checks responses against the OpenAPI document of the platform. */
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

  /** Throws if a response violates the document or the specification. */
  check(answer: Answer): void {
    const { method, path, status, body } = answer
    recordResponse({ method, path: path.split('?')[0] ?? '', status, error: body?.error })
    const violations = [...everywhereViolations(answer), ...errorViolations(answer), ...this.#undocumented(answer)]
    if (violations.length > 0) throw new Error(`${show(answer)}\n  ${violations.join('\n  ')}`)
  }

  #undocumented(answer: Answer): string[] {
    // 304 is part of HTTP, not of the document.
    if (answer.status === 304) return []
    const operation = operationOf(this.operations, answer.method, answer.path)
    if (operation === undefined) return isOfModule(answer) ? [] : this.#invalid(errorSchema, answer.body)
    const { operationId, method, template, responses } = operation
    const entry = responses[answer.status]
    if (entry === undefined) return [`${operationId} does not document the status ${answer.status}`]
    const response = resolve<ResponseObject>(this.document, entry)
    const place = isReference(entry)
      ? entry.$ref
      : pointer('paths', template, method.toLowerCase(), 'responses', String(answer.status))
    return [
      ...this.#content(place, response, answer),
      ...this.#headers(response, answer),
      ...undocumentedCode(operationId, response, answer),
    ]
  }

  #content(place: string, { content }: ResponseObject, { headers, text, body }: Answer): string[] {
    if (content === undefined) return text === '' ? [] : ['no body is documented']
    const type = headers.get('content-type') ?? ''
    const documented = content[type]
    if (documented === undefined) return [`the content type ${type} is not documented`]
    return documented.schema === undefined
      ? []
      : this.#invalid(place + pointer('content', type, 'schema').slice(1), body)
  }

  #headers({ headers: documented = {} }: ResponseObject, { headers }: Answer): string[] {
    return Object.entries(documented).flatMap(([name, entry]) => {
      const { required, schema } = resolve<HeaderObject>(this.document, entry)
      const text = headers.get(name)
      if (text === null) return required ? [`the header ${name} is missing`] : []
      const value = schema['type'] === 'integer' ? Number(text) : text
      return this.#ajv.validate(schema, value) ? [] : [`the header ${name} is ${text}`]
    })
  }

  #invalid(place: string, value: unknown): string[] {
    const validate = this.#ajv.getSchema(`contract${place}`)
    if (validate === undefined) return [`the document has nothing at ${place}`]
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `the body ${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }
}

/** Modules define their own responses; only errors of the platform's gateway are checked. */
const isOfModule = ({ path, status }: Answer): boolean =>
  status < 400 && /^\/(?:modules\/|api\/(?!v\d|modules(?:\/|$)))/.test(path)

/** The description of an error response lists its codes. */
function undocumentedCode(operationId: string, { description }: ResponseObject, { status, body }: Answer): string[] {
  const isUnknown = status >= 400 && typeof body?.error === 'string' && !description.includes(`\`${body.error}\``)
  return isUnknown ? [`${operationId} does not document ${body.error} for ${status}`] : []
}
