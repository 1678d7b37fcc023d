import { readFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { buildAssets } from '@platform/local/assets'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support.ts'

test('what functions hand out is built once, and again when it is older than its sources', async () => {
  await using folder = await temporaryFolder()
  const page = join(folder.path, 'docs.html')
  const changedAt = async () => (await stat(page)).mtimeMs

  await buildAssets(folder.path)
  expect(JSON.parse(await readFile(join(folder.path, 'openapi.json'), 'utf8'))).toHaveProperty('openapi')
  expect(JSON.parse(await readFile(join(folder.path, 'event-catalog.json'), 'utf8')).items).not.toEqual([])
  expect(JSON.parse(await readFile(join(folder.path, 'module-schema.json'), 'utf8'))).toHaveProperty('$id')
  expect(await readFile(page, 'utf8')).toMatch(/^<!doctype html>/i)
  expect(await readFile(join(folder.path, 'relay.mjs'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node/)
  expect(await readFile(join(folder.path, 'hello.mjs'), 'utf8')).toContain('/modules/hello')

  const builtAt = await changedAt()
  await buildAssets(folder.path)
  expect(await changedAt()).toBe(builtAt)

  const longAgo = new Date('2001-01-01T00:00:00Z')
  await utimes(page, longAgo, longAgo)
  await buildAssets(folder.path)
  expect(await changedAt()).toBeGreaterThan(longAgo.getTime())
})
