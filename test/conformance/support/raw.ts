import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text as readText } from 'node:stream/consumers'
import assert from 'node:assert/strict'
import { type Answer, parseJson } from './answer.ts'
import type { Platform } from './platform.ts'

/** Asks for a target exactly as it is written: `fetch` would resolve dots and backslashes away. */
export async function sendUnchanged(
  { options: { baseUrl }, contract }: Platform,
  target: string,
  headers: Record<string, string>,
): Promise<Answer> {
  const { protocol, hostname, port, pathname } = new URL(baseUrl)
  const send = protocol === 'https:' ? httpsRequest : httpRequest
  const request = send({
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port,
    path: pathname.replace(/\/$/, '') + target,
    headers,
  })
  request.end()
  const [response]: IncomingMessage[] = await once(request, 'response')
  assert.ok(response)
  const text = await readText(response)
  const received = new Headers(Object.entries(response.headersDistinct).map(([name, values]) => [name, String(values)]))
  const status = response.statusCode ?? 0
  const answer = { method: 'GET', path: target, status, headers: received, text, body: parseJson(text) }
  contract.check(answer)
  return answer
}
