import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildAssets, pinAssets } from '@platform/local/assets'
import { unpackFiles } from '@platform/http/portal/pack'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support.ts'
import { isLong } from '../../support/long.ts'

const longAgo = new Date('2001-01-01T00:00:00Z')

test.runIf(isLong)('what functions hand out is built once, and again when it is older than its sources', async () => {
  await using folder = await temporaryFolder()
  const page = join(folder.path, 'docs.html')
  const files = ['docs.html', 'portal.pack', 'relay.mjs'].map((name) => join(folder.path, name))
  const changedAt = () => Promise.all(files.map(async (file) => (await stat(file)).mtimeMs))

  await buildAssets(folder.path)
  expect(JSON.parse(await readFile(join(folder.path, 'openapi.json'), 'utf8'))).toHaveProperty('openapi')
  expect(JSON.parse(await readFile(join(folder.path, 'event-catalog.json'), 'utf8')).items).not.toEqual([])
  expect(JSON.parse(await readFile(join(folder.path, 'module-schema.json'), 'utf8'))).toHaveProperty('$id')
  expect(await readFile(page, 'utf8')).toMatch(/^<!doctype html>/i)
  expect(await readFile(join(folder.path, 'relay.mjs'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node/)
  expect(await readFile(join(folder.path, 'hello.mjs'), 'utf8')).toContain('/modules/hello')

  const own = join(folder.path, 'own')
  await pinAssets(folder.path, own)
  const builtAt = await changedAt()
  await buildAssets(folder.path)
  expect(await changedAt()).toEqual(builtAt)

  await utimes(page, longAgo, longAgo)
  await buildAssets(folder.path)
  const [pageAt = 0, ...othersAt] = await changedAt()
  expect(pageAt).toBeGreaterThan(longAgo.getTime())
  expect(othersAt).toEqual(builtAt.slice(1))

  // A platform that runs goes on with what it began with.
  await writeFile(join(folder.path, 'portal.pack'), 'of another version')
  expect(unpackFiles(await readFile(join(own, 'portal.pack'))).files.size).toBeGreaterThan(0)
})

test('a file that cannot be built anew stays as it is for a platform that starts, and ends a deployment', async () => {
  await using folder = await temporaryFolder()
  const wants = ['module-schema.json']
  // No file takes the place of a folder that holds something.
  const place = join(folder.path, 'module-schema.json')
  await mkdir(place)
  const old = join(place, 'old')
  await writeFile(old, 'built once')
  await utimes(old, longAgo, longAgo)
  const outdated: string[] = []
  await buildAssets(folder.path, { wants, onOutdated: (name) => outdated.push(name) })
  expect(outdated).toEqual(wants)
  await expect(buildAssets(folder.path, { wants })).rejects.toThrow('EISDIR')
  expect(await readdir(folder.path)).toEqual(wants)
  // Where there is nothing at all, nobody can do without.
  await rm(old)
  const starting = buildAssets(folder.path, { wants, onOutdated: (name) => outdated.push(name) })
  await expect(starting).rejects.toThrow('EISDIR')
})
