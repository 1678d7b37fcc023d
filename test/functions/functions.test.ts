import { readdirSync, readFileSync } from 'node:fs'
import { functions, routes } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'
import { functionNames } from '@platform/core/updates/function-names'
import { probeEvent } from '@platform/core/updates/version-probe'
import { version } from '@platform/core/lib/version'
import { expect, test } from 'vitest'
import { send } from '../support/request.ts'
import { captureLog } from '../support/log.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { handlerOf, requestTo, rows } from './table.ts'

const folder = new URL('../../functions/', import.meta.url)

const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))

test('every function of the route table, every passage, the fallback and every task is a file, and there is no other one', () => {
  const told = [...Object.keys(functions), modulePaths.function, fallback.function, ...Object.keys(tasks)]
  expect(files.toSorted()).toEqual(told.toSorted())
  expect(functionNames.toSorted()).toEqual(told.toSorted())
})

test.each(Object.keys(functions))('%s serves what the table says, and nothing else', (name) => {
  const source = readFileSync(new URL(`${name}.ts`, folder), 'utf8')
  const served = [...source.matchAll(/\broute\(\s*(\w+)/g)].map(([, operationId]) => String(operationId))
  const promised = routes.filter((route) => route.function === name).map(({ operationId }) => operationId)
  expect(served.toSorted()).toEqual(promised.toSorted())
})

test.each(rows)('$name is mounted', async (row) => {
  const { status, json } = await send(row.handler, requestTo(row))
  expect([status, json?.error]).not.toEqual([404, 'route_not_found'])
})

test.each(files)('%s answers a probe with its version, and does nothing else', async (name) => {
  const { handler } = await import(new URL(`${name}.ts`, folder).href)
  let answer: unknown
  const calls = await countStoreCalls(async () => {
    expect(await captureLog(async () => (answer = await handler(probeEvent)))).toEqual([])
  })
  expect(answer).toEqual({ version })
  expect(calls).toBe(0)
})

test('a caller who says the same in every way that a request has hears what other callers hear', async () => {
  const body = JSON.stringify(probeEvent)
  const headers = { 'content-type': 'application/json', platformprobe: 'true' }
  const sent = { method: 'POST', target: '/api/v1/clusters?platformProbe=true', headers, body }
  const { status, json } = await send(handlerOf('clusters'), sent)
  expect([status, json.error]).toEqual([401, 'unauthenticated'])
})

test('what a gateway or a queue has made is no probe, whatever stands beside it', async () => {
  const { handler: consume } = await import('../../functions/queue/jobs.ts')
  expect(await consume(Object.assign({ Records: [] }, probeEvent))).toEqual({ batchItemFailures: [] })
  const event = {
    rawPath: '/health/live',
    rawQueryString: '',
    headers: {},
    isBase64Encoded: false,
    requestContext: { http: { method: 'GET', sourceIp: '192.0.2.1' } },
  }
  expect(await handlerOf('health')(Object.assign(event, probeEvent))).toMatchObject({ statusCode: 200 })
})
