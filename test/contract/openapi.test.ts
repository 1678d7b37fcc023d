import { readFileSync } from 'node:fs'
// This import comes first, because it extends zod before schemas are created.
import { openApiFile, openApiText } from '../../scripts/openapi.ts'
import type { ApiDocument, Operation } from '@platform/contract/docs/document'
import { parametersOf, responseOf } from '@platform/contract/docs/document'
import { ErrorBody } from '@platform/contract/common'
import { bodySchemaOf, mayOmitBody } from '@platform/contract/endpoint'
import { CloudEvent, eventNames, eventSchemas } from '@platform/contract/event'
import { statusOf, wireCodeOf } from '@platform/contract/errors'
import { errorCodesOf } from '@platform/contract/failures'
import { type Route, routes } from '@platform/contract/index'
import committed from '@platform/contract/openapi.json' with { type: 'json' }
import { exampleCommandsOf } from '@platform/cli/commands/add-command'
import { createProgram } from '@platform/cli/program'
import { Describer } from '@platform/contract/openapi/describe'
import { missingExample } from '@platform/contract/openapi/examples'
import { describe, expect, test } from 'vitest'
import { isUnbounded, mediaOf, schemasOf, findUndescribed } from './support/schemas.ts'

const document: ApiDocument = committed
const commands = exampleCommandsOf(createProgram())

function operationOf({
  method,
  endpoint,
}: Route): Operation & { requestBody?: { required?: boolean }; 'x-permission'?: string } {
  const operation = document.paths[endpoint.path]?.[endpoint.method]
  if (!operation) throw new Error(`${method} ${endpoint.path} is not in the document`)
  return operation
}

test('the committed document matches the contract', () => {
  expect(readFileSync(openApiFile, 'utf8')).toBe(openApiText())
})

test('the document contains exactly the operations of the route table', () => {
  const described = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  expect(described.length).toBe(routes.length)
  expect(new Set(described.map((operation) => operation?.operationId))).toEqual(
    new Set(routes.map(({ operationId }) => operationId)),
  )
})

test('every property has a description, every text of an example a value, and every text describes a property', () => {
  expect(findUndescribed(document)).toEqual([])
  expect(JSON.stringify(document)).not.toContain(missingExample)
  const describer = new Describer()
  describer.describeDocument(structuredClone(document))
  expect(describer.unusedTexts).toEqual([])
})

test.for(eventNames)('the webhook platform.%s has signature headers and an example of the event', (name) => {
  const { post } = document.webhooks?.[`platform.${name}`] ?? {}
  if (!post) throw new Error(`platform.${name} is not a webhook of the document`)
  expect(parametersOf(document, post).map((parameter) => parameter.name)).toEqual([
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
  ])
  const [{ example } = {}] = mediaOf(post)
  const event = CloudEvent.parse(example)
  expect([event, event.type]).toEqual([example, `platform.${name}`])
  expect(eventSchemas[name].parse(event.data)).toEqual(event.data)
})

test.for(Object.entries(commands))('the plat command of %s exists, with its options', ([operationId, text]) => {
  expect(routes.map((route) => route.operationId)).toContain(operationId)
  const words = text
    .replace(/ -- .*/, '')
    .replaceAll(/'[^']*'/g, '…')
    .split(' ')
    .slice(1)
  const command = words.reduce(
    (parent, word) => parent.commands.find((candidate) => candidate.name() === word) ?? parent,
    createProgram(),
  )
  // A command with subcommands has options only if it does something itself.
  expect(command.commands.length === 0 || command.options.length > 0).toBe(true)
  const knownOptions = command.options.flatMap(({ short, long }) => [short, long])
  expect(words.filter((word) => word.startsWith('-') && !knownOptions.includes(word))).toEqual([])
})

test('every string, array and integer has bounds', () => {
  expect(schemasOf(document).filter(isUnbounded)).toEqual([])
})

test('objects of responses have no additional properties, also in components that requests use', () => {
  const { schemas } = document.components
  for (const name of ['DashboardLayout', 'WidgetPlacementOutput', 'IdentityProvider', 'RoleMappingOutput'])
    expect(schemas[name], name).toMatchObject({ additionalProperties: false })
  expect(schemas['DashboardLayout']?.properties?.['layout']?.items?.$ref).toMatch(/\/WidgetPlacementOutput$/)
  expect(schemas['IdentityProvider']?.properties?.['roleMappings']?.items?.$ref).toMatch(/\/RoleMappingOutput$/)
})

test('no pattern has flags and no component is nullable, because the generator prints both incorrectly', () => {
  const { schemas } = document.components
  expect(schemasOf(document).filter(([, { pattern }]) => pattern && /\/[a-z]+$/.test(pattern))).toEqual([])
  expect(Object.keys(schemas).filter((name) => schemas[name]?.type?.includes('null'))).toEqual([])
})

test('the payload of a job refers to the payload of a script', () => {
  const { payload } = document.components.schemas['JobSubmission']?.properties ?? {}
  expect(payload?.$ref).toBe('#/components/schemas/InvokeScriptPayload')
  expect(document.components.schemas['InvokeScriptPayload']?.required).toEqual(['script'])
})

describe.for(routes)('$operationId', (route) => {
  const { access } = route.endpoint
  const operation = operationOf(route)
  const responses = Object.entries(operation.responses).map(
    ([status, response]) => [status, responseOf(document, response)] as const,
  )

  test('requires a JSON body unless it has no required member', () => {
    const isRequired = bodySchemaOf(route.endpoint) !== undefined && !mayOmitBody(route.endpoint)
    expect(operation.requestBody?.required ?? false).toBe(isRequired)
  })

  test('describes its parameters, and has an example of each body that the schema accepts', () => {
    for (const { name, description } of parametersOf(document, operation))
      expect([name, description]).not.toContain(undefined)
    const content = operation.requestBody?.content['application/json']
    if (content) expect(bodySchemaOf(route.endpoint)?.safeParse(content.example).error).toBeUndefined()
    for (const [status, response] of responses)
      for (const [type, media] of Object.entries(response.content ?? {})) {
        const schema = route.endpoint.responses[Number(status)]?.content?.[type]?.schema
        const errorExamples = Object.values(media?.examples ?? {}).map(({ value }) => value)
        for (const value of errorExamples) expect(ErrorBody.parse(value)).toEqual(value)
        if (errorExamples.length > 0) continue
        expect(media?.example).toBeDefined()
        expect(schema?.parse(media?.example) ?? media?.example).toEqual(media?.example)
      }
  })

  test('has the security scheme and permission of its access', () => {
    const scheme = { public: [], user: ['bearer'], relay: ['relayToken'] }[access as string] ?? ['bearer']
    expect((operation.security ?? []).flatMap(Object.keys)).toEqual(scheme)
    expect(operation['x-permission']).toBe(access.includes(':') ? access : undefined)
  })

  test('lists each error code under its status', () => {
    for (const code of errorCodesOf(route.endpoint)) {
      const [, response] = responses.find(([status]) => status === String(statusOf(code))) ?? []
      const declaredResponse = route.endpoint.responses[statusOf(code)]
      expect(response?.description).toContain(declaredResponse?.description ?? `\`${wireCodeOf(code)}\``)
    }
  })

  test('documents 400, 429 and 500, and 401 unless it is public', () => {
    const statuses = responses.map(([status]) => status)
    expect(statuses).toEqual(expect.arrayContaining(['400', '429', '500']))
    if (access !== 'public') expect(statuses).toContain('401')
  })

  test('documents trace id and rate limit headers, and Retry-After for 429 and 503', () => {
    for (const [status, { headers }] of responses) {
      const names = Object.keys(headers ?? {})
      expect(names).toEqual(expect.arrayContaining(['X-Trace-Id', 'RateLimit-Remaining']))
      expect(names.includes('Retry-After')).toBe(status === '429' || status === '503')
    }
  })
})
