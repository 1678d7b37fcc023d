import assert from 'node:assert/strict'
import { show } from '../answer.ts'
import type { Client } from '../client.ts'
import { large, type MakeBad, notAnObject, notJson, strangeText, treacherous, wrongType } from '../corpus.ts'
import type { Operation } from '../document.ts'
import type { Journey, Journeys, Platform } from '../platform.ts'
import { sample } from '../sample.ts'

/** A client in the role that an operation asks for. */
async function clientsByScheme(platform: Platform): Promise<(operation: Operation) => Client> {
  const clients = new Map([
    ['bearer', await platform.admin],
    ['relayToken', (await platform.newRelay()).client],
  ])
  return ({ security: [required = {}] = [] }) => clients.get(Object.keys(required)[0] ?? '') ?? platform.anonymous
}

/** Sends bad bodies to every operation that takes one. Answers that an operation does not document fail by themselves. */
const everyOperationRefuses =
  (makeBad: MakeBad): Journey =>
  async (platform, { diagnostic }) => {
    const clientOf = await clientsByScheme(platform)
    let sentCount = 0
    for (const operation of platform.contract.operations) {
      const schema = operation.requestBody?.content['application/json']?.schema
      if (schema === undefined) continue
      const path = operation.template.replaceAll(/\{\w+\}/g, 'nothing')
      for (const { body, type = 'application/json' } of makeBad(sample(platform.contract.document, schema))) {
        const headers = { 'content-type': type }
        const answer = await clientOf(operation).attempt(operation.method, path, { body, headers })
        assert.ok(answer.status >= 400 && answer.status < 500, `${show(answer)} to ${body.slice(0, 200)}`)
        sentCount++
      }
    }
    diagnostic(`${sentCount} requests`)
  }

export const badInput: Journeys = {
  'no body, and what is no JSON object, is refused by every operation': everyOperationRefuses(notAnObject),
  'a body of another content type is refused by every operation': everyOperationRefuses(notJson),
  'fields of the wrong type are refused by every operation': everyOperationRefuses(wrongType),
  'text that a store or a terminal would stumble over is refused by every operation':
    everyOperationRefuses(strangeText),
  'numbers that no double carries, deep nesting and __proto__ are refused by every operation':
    everyOperationRefuses(treacherous),
  'a body above 4 MiB is refused by every operation': everyOperationRefuses(large),
}
