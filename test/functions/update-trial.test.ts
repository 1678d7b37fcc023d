import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '@platform/core/config'
import { apiFunctions } from '@platform/core/updates/function-names'
import { packFiles } from '@platform/http/portal/pack'
import { getEvent, readiness, smokeRequests } from '@platform/worker/updates/smoke'
import { expect, test } from 'vitest'
import { countStoreCalls } from '../support/store-calls.ts'
import { bootstrapPlatform } from '../support/fixtures.ts'
import { writes } from './writes.ts'

await bootstrapPlatform()

// A release brings its portal; here one with the page alone will do.
const shell = {
  contentType: 'text/html',
  isHashed: false,
  tag: 'page',
  bodies: { identity: Buffer.from('<!doctype html>') },
}
writeFileSync(join(config.PLAT_ASSETS_DIR, 'portal.pack'), packFiles({ shell, files: new Map() }))

const folder = new URL('../../functions/', import.meta.url)
const handlerAt = async (name: string) => (await import(new URL(`${name}.ts`, folder).href)).handler

test('every function that answers requests is tried by one', () => {
  expect(smokeRequests.map(({ functionName }) => functionName).toSorted()).toEqual(apiFunctions.toSorted())
})

test.each(smokeRequests.map((each) => [each.functionName, each] as const))(
  '%s of a good release stands its trial, which changes nothing',
  async (_, { functionName, path, status }) => {
    const handler = await handlerAt(functionName)
    const before = writes()
    const { statusCode } = await handler(getEvent(path))
    expect(writes()).toBe(before)
    if (status === undefined) expect(statusCode).toBeLessThan(500)
    else expect(statusCode).toBe(status)
  },
)

test('the trial of health asks the store', async () => {
  const handler = await handlerAt(readiness.functionName)
  expect(await countStoreCalls(() => handler(getEvent(readiness.path)))).toBeGreaterThan(0)
})
