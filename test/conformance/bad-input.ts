import assert from 'node:assert/strict'
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
import type { Journey, Journeys, Platform } from './support/platform.ts'
import { sample } from './support/sample.ts'

/**
 * A client in the role that an operation asks for. What needs no permission is about the caller itself: its password, its
 * sessions. That is nothing to try as the administrator, and the administrator tries the rest in a session of its own.
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

/** Sends bad bodies to every operation that takes one, and tells of all that went wrong. */
const everyOperationRefuses =
  (makeBad: MakeBad): Journey =>
  async (platform, report) => {
    const { contract } = platform
    const clientOf = await clientsByScheme(platform)
    const problems: string[] = []
    let sentCount = 0
    for (const operation of contract.operations) {
      const schema = operation.requestBody?.content['application/json']?.schema
      const bodies = schema === undefined ? [] : makeBad(sample(contract.document, schema))
      for (const bad of bodies) problems.push(...(await problemsOf(clientOf(operation), operation, bad)))
      sentCount += bodies.length
    }
    report.diagnostic(`${sentCount} requests`)
    if (problems.length > 0) throw new Error(problems.join('\n'))
  }

/** A bad body is the caller's fault: its answer has a documented status from 400 to 499. */
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

export const badInput: Journeys = {
  'no body, and what is no JSON object, is refused by every operation': everyOperationRefuses(notAnObject),
  'a body of another content type is refused by every operation': everyOperationRefuses(notJson),
  'fields of the wrong type are refused by every operation': everyOperationRefuses(wrongType),
  'text that a store or a terminal would stumble over is refused by every operation':
    everyOperationRefuses(strangeText),
  'numbers that no double carries, deep nesting and __proto__ are refused by every operation':
    everyOperationRefuses(treacherous),
  'a body above 4 MiB is refused by every operation': everyOperationRefuses(large),

  'a body that nobody asked for is left alone, or refused where it is large': async (platform) => {
    const clientOf = await clientsByScheme(platform)
    for (const operation of platform.contract.operations) {
      if (operation.method === 'GET' || operation.requestBody !== undefined) continue
      for (const body of ['{', '['.repeat(10_000), 'x'.repeat(5_000_000)]) {
        const answer = await clientOf(operation).attempt(operation.method, pathOf(operation.template), { body })
        assert.ok(answer.status < 500, show(answer))
      }
    }
  },
}
