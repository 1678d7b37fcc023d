import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fetchImage } from '@platform/worker/runtimes/fetch-image'
import { type FetchImage, Images } from '@platform/worker/runtimes/images'
import { RuntimeError } from '@platform/worker/runtimes/port'
import { expect, test } from 'vitest'
import { memoryRegistry } from '../../support/memory-registry.ts'
import { pushProgram } from '../../support/module-image.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

async function imagesIn(path: string) {
  const registry = memoryRegistry()
  const image = await pushProgram(registry, 'any', 'content')
  let fetches = 0
  const fetch: FetchImage = (name, folder) => {
    fetches += 1
    return fetchImage(() => registry, name, folder)
  }
  return {
    images: new Images(path, fetch),
    again: () => new Images(path, fetch),
    image,
    fetches: () => fetches,
    registry,
  }
}

const mainOf = (root: string) => readFile(join(root, 'app', 'main.mjs'), 'utf8')

test('fetches an image once, also for concurrent users and after a restart', async () => {
  await using folder = await temporaryFolder()
  const { images, again, image, fetches } = await imagesIn(folder.path)
  const [hold, otherHold] = await Promise.all([images.hold(image), images.hold(image)])
  expect(otherHold).toEqual(hold)
  expect(await mainOf(hold.root)).toBe('content')
  expect(hold.config).toMatchObject({ Cmd: ['node', 'main.mjs'] })
  expect(await again().hold(image)).toEqual(hold)
  expect(fetches()).toBe(1)
})

test('keeps an image while it is held', async () => {
  await using folder = await temporaryFolder()
  const { images, image } = await imagesIn(folder.path)
  const { root } = await images.hold(image)
  await images.hold(image)
  await images.release(image.digest)
  await images.removeUnheld(image.digest)
  expect(await mainOf(root)).toBe('content')
  await images.release(image.digest)
  expect(await readdir(folder.path)).toEqual([])
})

test('removes leftover images except those that are held or needed', async () => {
  await using folder = await temporaryFolder()
  const { again, image, registry } = await imagesIn(folder.path)
  const others = [await pushProgram(registry, 'any', 'another'), await pushProgram(registry, 'any', 'a third')]
  const before = again()
  for (const each of [image, ...others]) await before.hold(each)
  const images = again()
  await images.hold(image)
  await images.removeOthers(others.slice(0, 1).map(({ digest }) => digest))
  const keptFolders = [image, ...others.slice(0, 1)].map(({ digest }) => digest.replace(':', '-'))
  expect((await readdir(folder.path)).toSorted()).toEqual(keptFolders.toSorted())
})

test('fetches an image again if it is requested during its removal', async () => {
  await using folder = await temporaryFolder()
  const { images, image, fetches } = await imagesIn(folder.path)
  await images.hold(image)
  const removals = [images.release(image.digest), images.removeUnheld(image.digest)]
  const { root } = await images.hold(image)
  await Promise.all(removals)
  expect(await mainOf(root)).toBe('content')
  expect(fetches()).toBe(2)
})

test('does not hold an image that could not be fetched, and retries', async () => {
  await using folder = await temporaryFolder()
  const { images, image, registry } = await imagesIn(folder.path)
  const blobs = new Map(registry.blobs)
  for (const key of blobs.keys()) registry.blobs.set(key, Buffer.from('broken'))
  const failedHolds = [images.hold(image), images.hold(image)]
  for (const { status } of await Promise.allSettled(failedHolds)) expect(status).toBe('rejected')
  await expect(images.hold(image)).rejects.toBeInstanceOf(RuntimeError)
  expect(await readdir(folder.path)).toEqual([])
  for (const [key, bytes] of blobs) registry.blobs.set(key, bytes)
  expect(await mainOf((await images.hold(image)).root)).toBe('content')
})

test('fetches an image again if it is incomplete, its metadata is broken or it was copied', async () => {
  await using folder = await temporaryFolder()
  await using copy = await temporaryFolder()
  const { images, again, image, fetches } = await imagesIn(folder.path)
  await images.hold(image)
  await cp(folder.path, copy.path, { recursive: true })
  const metadata = join(folder.path, image.digest.replace(':', '-'), 'image.json')
  for (const content of [
    '',
    '{"root": "/tm',
    'null',
    JSON.stringify({ root: join(metadata, '..', 'nothing'), config: {} }),
  ]) {
    await writeFile(metadata, content)
    expect(await mainOf((await again().hold(image)).root)).toBe('content')
  }
  expect(fetches()).toBe(5)
  const copiedImages = await imagesIn(copy.path)
  const { root } = await copiedImages.images.hold(image)
  expect([root.startsWith(copy.path), copiedImages.fetches()]).toEqual([true, 1])
})
