import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { functions, routes } from '@platform/contract/index'
import { fallback } from '@platform/contract/passage'
import { send } from '../support/event.ts'
import { requestTo, rows } from './table.ts'

const folder = new URL('../../functions/', import.meta.url)
/** What is called by the platform alone, and what answers where no route is. */
const others = ['bootstrap', fallback.function]

test('every function of the route table is a file, and every file at the top a function of the table', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  expect(files.map((name) => name.slice(0, -3)).toSorted()).toEqual([...Object.keys(functions), ...others].toSorted())
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
