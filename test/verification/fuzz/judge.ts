import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { parseJson } from '../../conformance/support/answer.ts'
import { Contract } from '../../conformance/support/contract.ts'
import { type OpenApi, pointer, type Schema } from '../../conformance/support/document.ts'
import { decodedPath, type TestResponse } from '../../support/request.ts'
import type { Operation, Wire } from './request.ts'
import { planted } from './schema.ts'

/** What the OpenAPI document says of a request and of the answer to it. */
export interface Judge {
  /** Whether the document has no such request. */
  isMalformed: (operation: Operation, wire: Wire) => boolean
  /** What is wrong about the answer; nothing where it is as documented. */
  faultsOf: (operation: Operation, wire: Wire, received: TestResponse) => string[]
}

const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/** White space around a text is taken off where the field's rules say so, which a JSON Schema cannot express. */
const trimmed = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, member: unknown) => (typeof member === 'string' ? member.trim() : member))

/** A parameter as its schema sees it. */
function typed(text: string, { type }: Schema): unknown {
  if (type === 'integer' || type === 'number') return /^-?\d+$/.test(text) ? Number(text) : text
  return type === 'boolean' && /^(?:true|false)$/.test(text) ? text === 'true' : text
}

export function judgeOf(document: OpenApi): Judge {
  const contract = new Contract(document)
  const ajv = new Ajv2020({ strict: false, validateSchema: false })
  formats.default(ajv)
  // As browsers read addresses, and the platform: letters beyond ASCII among them.
  ajv.addFormat('uri', (text: string) => URL.canParse(text))
  ajv.addSchema(document, 'contract')

  const isBody = ({ template, method, body }: Operation, wire: Wire): boolean => {
    if (body === undefined) return true
    const value = parseJson(Buffer.from(wire.body ?? '').toString())
    if (value === undefined || !jsonType.test(wire.headers['content-type'] ?? '')) return false
    const place = pointer(
      'paths',
      template,
      method.toLowerCase(),
      'requestBody',
      'content',
      'application/json',
      'schema',
    )
    const isValid = ajv.getSchema(`contract${place}`)
    if (isValid === undefined) throw new Error(`The document has nothing at ${place}.`)
    return isValid(value) === true || isValid(trimmed(value)) === true
  }

  const isQuery = ({ parameters }: Operation, { query }: Wire): boolean => {
    const given = new URLSearchParams(query)
    const own = parameters.filter((parameter) => parameter.in === 'query')
    return own.every(({ name, schema }) => {
      const [text, ...more] = given.getAll(name)
      return text === undefined || (more.length === 0 && ajv.validate(schema, typed(text, schema)))
    })
  }

  const isPath = ({ parameters, template }: Operation, { path }: Wire): boolean => {
    const [wanted, segments] = [template.split('/'), decodedPath(path).split('/')]
    const schemaOf = (part: string): Schema | undefined => parameters.find(({ name }) => part === `{${name}}`)?.schema
    if (wanted.length !== segments.length) return false
    return wanted.every((part, index) => {
      const schema = schemaOf(part)
      return schema === undefined ? part === segments[index] : ajv.validate(schema, segments[index])
    })
  }

  const faultsOf = (operation: Operation, wire: Wire, received: TestResponse): string[] => {
    const { status, headers, text, json } = received
    // The contract looks at what a function is asked, which is the decoded path.
    const path = decodedPath(wire.path)
    const answer = { method: operation.method, path, status, headers: new Headers(headers), text, body: json }
    try {
      contract.check(answer)
      return text.includes(planted) && status < 300 ? ['the answer holds what nobody asked for'] : []
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)]
    }
  }

  return {
    isMalformed: (operation, wire) => !(isPath(operation, wire) && isQuery(operation, wire) && isBody(operation, wire)),
    faultsOf,
  }
}
