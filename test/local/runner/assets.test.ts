import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unpackFiles } from '@platform/http/portal/pack'
import { buildAssets, pinAssets } from '@platform/local/assets'
import { compileCache, compileCacheFor } from '@platform/local/compile-cache'
import { projectDir } from '@platform/local/project-dir'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const longAgo = new Date('2001-01-01T00:00:00Z')

test.runIf(isLong)('rebuilds only assets that are older than their sources', async () => {
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

  const pinnedFolder = join(folder.path, 'pinned')
  await pinAssets(folder.path, pinnedFolder)
  const builtAt = await changedAt()
  await buildAssets(folder.path)
  expect(await changedAt()).toEqual(builtAt)

  await utimes(page, longAgo, longAgo)
  await buildAssets(folder.path)
  const [pageAt = 0, ...othersAt] = await changedAt()
  expect(pageAt).toBeGreaterThan(longAgo.getTime())
  expect(othersAt).toEqual(builtAt.slice(1))

  await writeFile(join(folder.path, 'portal.pack'), 'another version')
  expect(unpackFiles(await readFile(join(pinnedFolder, 'portal.pack'))).files.size).toBeGreaterThan(0)
})

test('a failed rebuild keeps the old asset at a start, and fails a deployment', async () => {
  await using folder = await temporaryFolder()
  const names = ['module-schema.json']
  // The rebuild fails, because a file cannot replace a folder with content.
  const target = join(folder.path, 'module-schema.json')
  await mkdir(target)
  const oldFile = join(target, 'old')
  await writeFile(oldFile, 'built once')
  await utimes(oldFile, longAgo, longAgo)
  const outdatedNames: string[] = []
  await buildAssets(folder.path, { names, onOutdated: (name) => outdatedNames.push(name) })
  expect(outdatedNames).toEqual(names)
  await expect(buildAssets(folder.path, { names })).rejects.toThrow('EISDIR')
  expect(await readdir(folder.path)).toEqual(names)
  await rm(oldFile)
  const starting = buildAssets(folder.path, { names, onOutdated: (name) => outdatedNames.push(name) })
  await expect(starting).rejects.toThrow('EISDIR')
})

test('caches only compiled code of this project', () => {
  expect(compileCacheFor(join(projectDir, 'functions'))).toEqual(compileCache)
  expect(compileCacheFor('/var/lib/platform/releases/1.0.0/functions')).toEqual({})
})
