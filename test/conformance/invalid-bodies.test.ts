import { expect } from 'vitest'
import { sampled } from '../support/long.ts'
import { test } from './support/test.ts'
import { show } from './support/answer.ts'
import type { Client } from './support/client.ts'
import {
  type BadBody,
  large,
  type MakeBad,
  notAnObject,
  notJson,
  strangeText,
  treacherous,
  wrongType,
} from './support/corpus.ts'
import type { Operation } from './support/document.ts'
import type { Platform } from './support/platform.ts'
import { sample } from './support/sample.ts'

/**
 * A client with the permission of the operation. Operations on the caller's own account use a separate session or user.
 */
async function clientsByScheme(platform: Platform): Promise<(operation: Operation) => Client> {
  const { client: relay } = await platform.newRelay()
  const { client: somebody } = await platform.newPerson('Viewer')
  const admin = platform.anonymous.withToken((await platform.signIn()).accessToken)
  return ({ security: [required = {}] = [], 'x-permission': permission }) => {
    if ('relayToken' in required) return relay
    if (!('bearer' in required)) return platform.anonymous
    return permission === undefined ? somebody : admin
  }
}

const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, 'nothing')

async function problemsOf(client: Client, { method, template }: Operation, bad: BadBody): Promise<string[]> {
  const { body, type = 'application/json' } = bad
  const sent = `to ${type} ${String(body).slice(0, 200)}`
  try {
    const answer = await client.attempt(method, pathOf(template), { body, headers: { 'content-type': type } })
    return answer.status >= 400 && answer.status < 500 ? [] : [`${show(answer)} ${sent}`]
  } catch (error) {
    return [`${error instanceof Error ? error.message : String(error)} ${sent}`]
  }
}

const kinds: [kind: string, makeBad: MakeBad][] = [
  ['a missing body and a body that is not a JSON object', notAnObject],
  ['a body of another content type', notJson],
  ['fields of the wrong type', wrongType],
  ['text with control characters and lone surrogates', strangeText],
  ['out-of-range numbers, deep nesting and __proto__', treacherous],
  ['a body above 4 MiB', large],
]

test.for(kinds)('every operation rejects %s', async ([, makeBad], { platform }) => {
  const { contract } = platform
  const clientOf = await clientsByScheme(platform)
  const problems: string[] = []
  for (const operation of contract.operations) {
    const schema = operation.requestBody?.content['application/json']?.schema
    const bodies = schema === undefined ? [] : sampled(makeBad(sample(contract.document, schema)))
    for (const bad of bodies) problems.push(...(await problemsOf(clientOf(operation), operation, bad)))
  }
  expect(problems).toEqual([])
})

test('ignores an unexpected body, or rejects it when it is large', async ({ platform }) => {
  const clientOf = await clientsByScheme(platform)
  for (const operation of platform.contract.operations) {
    if (operation.method === 'GET' || operation.requestBody !== undefined) continue
    for (const body of ['{', '['.repeat(10_000), 'x'.repeat(5_000_000)]) {
      const answer = await clientOf(operation).attempt(operation.method, pathOf(operation.template), { body })
      expect(answer.status, show(answer)).toBeLessThan(500)
    }
  }
})
