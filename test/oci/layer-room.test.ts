import { setImmediate } from 'node:timers/promises'
import { readFile } from '@platform/oci/image'
import type { Image } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { imageOfEntries } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'

const mebibyte = 2 ** 20

/** A registry that sends each layer when it is told to, and images whose one layer is said to be of some size. */
async function slowRegistry() {
  const registry = memoryRegistry()
  const image = await imageOfEntries(registry, [{ name: 'module.json', content: 'm' }])
  const [layer] = image.manifest.layers
  const bytes = await registry.blob('team/hello', layer!)
  const asked = new Map<number, { send: () => void; fail: (error: Error) => void }>()
  const blob: typeof registry.blob = (_repository, { size }) =>
    new Promise((resolve, reject) => asked.set(size / mebibyte, { send: () => resolve(bytes), fail: reject }))
  const read = (mebibytes: number) => {
    const layers = [{ ...layer!, size: mebibytes * mebibyte }]
    const large: Image = { ...image, manifest: { ...image.manifest, layers } }
    return readFile({ ...registry, blob }, large, ['module.json'], 10)
  }
  /** The layers that it was asked for, by their size, once everybody has got as far as there is room. */
  const inTurn = async () => {
    await setImmediate()
    return [...asked.keys()].toSorted((a, b) => a - b)
  }
  return { asked, read, inTurn }
}

test('layers that are read at once take no more memory than one of the largest, and small ones do not wait', async () => {
  const { asked, read, inTurn } = await slowRegistry()
  const [first, ...others] = [100, 110, 120, 256, 1].map(read)
  expect(await inTurn()).toEqual([1, 100, 110])
  asked.get(100)?.fail(new Error('The connection ended.'))
  await expect(first).rejects.toThrow('ended')
  expect(await inTurn()).toEqual([1, 100, 110, 120])
  for (const size of [1, 110, 120]) asked.get(size)?.send()
  const [second, third, fourth, fifth] = others
  await Promise.all([second, third, fifth])
  expect(await inTurn()).toEqual([1, 100, 110, 120, 256])
  asked.get(256)?.send()
  expect((await fourth)?.toString()).toBe('m')
})
