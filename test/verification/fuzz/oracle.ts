import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { parseJson } from '../../conformance/support/answer.ts'
import { Contract } from '../../conformance/support/contract.ts'
import { operationsOf, pointer, type Schema } from '../../conformance/support/document.ts'
import { decodedPath, type TestResponse } from '../../support/request.ts'
import { marker } from './body.ts'
import type { Operation, Wire } from './request.ts'

/** The OpenAPI document decides which requests are malformed and which responses are documented. */

export const document = JSON.parse(
  readFileSync(new URL('../../../packages/contract/openapi.json', import.meta.url), 'utf8'),
)

export const operations: readonly Operation[] = operationsOf(document).map(
  ({ method, template, parameters = [], requestBody }) => ({
    name: `${method} ${template}`,
    method,
    template,
    parameters: parameters.filter((parameter) => parameter.in !== undefined),
    body: requestBody?.content['application/json']?.schema,
    isBodyOptional: requestBody?.required !== true,
  }),
)

const contract = new Contract(document)
const ajv = new Ajv2020({ strict: false, validateSchema: false })
formats.default(ajv)
// Like browsers and the platform, accept letters beyond ASCII.
ajv.addFormat('uri', (text: string) => URL.canParse(text))
ajv.addSchema(document, 'contract')

const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/** Some fields trim their text before validation, which JSON Schema cannot express. */
function trimTexts(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.trim()
  // Some requests nest thousands of arrays. No schema has this depth.
  if (typeof value !== 'object' || value === null || depth === 50) return value
  if (Array.isArray(value)) return value.map((item) => trimTexts(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, trimTexts(member, depth + 1)]))
}

function parseParameter(text: string, { type }: Schema): unknown {
  if (type === 'integer' || type === 'number') return /^-?\d+$/.test(text) ? Number(text) : text
  return type === 'boolean' && /^(?:true|false)$/.test(text) ? text === 'true' : text
}

function isBodyValid({ template, method, body, isBodyOptional }: Operation, wire: Wire): boolean {
  if (body === undefined || (isBodyOptional && (wire.body ?? '').length === 0)) return true
  const value = parseJson(Buffer.from(wire.body ?? '').toString())
  if (value === undefined || !jsonType.test(wire.headers['content-type'] ?? '')) return false
  const schemaPath = ['requestBody', 'content', 'application/json', 'schema']
  const validate = ajv.getSchema(`contract${pointer('paths', template, method.toLowerCase(), ...schemaPath)}`)
  if (validate === undefined) throw new Error(`The document has no body schema for ${method} ${template}.`)
  return validate(value) === true || validate(trimTexts(value)) === true
}

function isQueryValid({ parameters }: Operation, { query }: Wire): boolean {
  const parameterValues = new URLSearchParams(query)
  return parameters.every(({ in: location, name, schema }) => {
    if (location !== 'query') return true
    const [text, ...more] = parameterValues.getAll(name)
    return text === undefined || (more.length === 0 && ajv.validate(schema, parseParameter(text, schema)))
  })
}

function isPathValid({ parameters, template }: Operation, { path }: Wire): boolean {
  const [expected, segments] = [template.split('/'), decodedPath(path).split('/')]
  if (expected.length !== segments.length) return false
  return expected.every((part, index) => {
    const schema = parameters.find(({ name }) => part === `{${name}}`)?.schema
    return schema === undefined ? part === segments[index] : ajv.validate(schema, segments[index])
  })
}

export const isMalformed = (operation: Operation, wire: Wire): boolean =>
  !(isPathValid(operation, wire) && isQueryValid(operation, wire) && isBodyValid(operation, wire))

export function contractViolation({ method }: Operation, wire: Wire, response: TestResponse): string | undefined {
  const { status, headers, text, json } = response
  try {
    contract.check({ method, path: decodedPath(wire.path), status, headers: new Headers(headers), text, body: json })
    return text.includes(marker) && status < 300 ? 'the response contains an undocumented request member' : undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
