import { gzipSync } from 'node:zlib'
import { digestOf } from '@platform/oci/digest'
import { readFile } from '@platform/oci/image'
import { layersOf } from '@platform/oci/layer'
import { type Image, mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { imageOf, imageOfEntries, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'

const repository = 'team/hello'

const file = (name: string, content = name): RawEntry => ({ name, content })

const read = async (paths: string[], ...layers: RawEntry[][]) => {
  const client = memoryRegistry()
  const image = await imageOfEntries(client, ...layers)
  return (await readFile(client, image, paths, 1000))?.toString()
}

describe('a file is read out of an image', () => {
  test.each<[string, string | undefined, RawEntry[][]]>([
    ['the only layer', 'm', [[file('module.json', 'm')]]],
    ['the topmost layer that has it', 'new', [[file('module.json', 'old')], [file('module.json', 'new')], [file('x')]]],
    ['a lower layer', 'm', [[file('module.json', 'm')], [file('x')], [file('.wh.x', '')]]],
    ['an absolute name', 'm', [[file('/module.json', 'm')]]],
    ['a name with a dot', 'm', [[file('./module.json', 'm')]]],
    ['nowhere', undefined, [[file('other')]]],
    ['nowhere, as a whiteout took it', undefined, [[file('module.json')], [file('.wh.module.json', '')]]],
    ['nowhere, as its folder was emptied', undefined, [[file('module.json')], [file('.wh..wh..opq', '')]]],
    [
      'the layer that emptied the folder',
      'n',
      [[file('module.json')], [file('module.json', 'n'), file('.wh..wh..opq', '')]],
    ],
    ['a layer that has it twice', 'two', [[file('module.json', 'one'), file('module.json', 'two')]]],
    ['nowhere, where it is a folder', undefined, [[file('module.json')], [{ name: 'module.json', type: 'directory' }]]],
    [
      'nowhere, where it is a link',
      undefined,
      [[file('module.json')], [{ name: 'module.json', type: 'symlink', linkname: 'x' }]],
    ],
    [
      'nowhere, where a link follows it',
      undefined,
      [[file('module.json'), { name: 'module.json', type: 'link', linkname: 'x' }]],
    ],
    ['an empty file', '', [[file('module.json', 'old')], [file('module.json', '')]]],
  ])('from %s', async (_name, content, layers) => {
    expect(await read(['/module.json'], ...layers)).toBe(content)
  })

  test.each<[string, string | undefined, RawEntry[][]]>([
    ['is', 'm', [[file('app/module.json', 'm')], [{ name: 'app', type: 'directory' }]]],
    ['was taken away', undefined, [[file('app/module.json')], [file('.wh.app', '')]]],
    ['was emptied', undefined, [[file('app/module.json')], [file('app/.wh..wh..opq', '')]]],
    ['became a file', undefined, [[file('app/module.json')], [file('app')], [{ name: 'app', type: 'directory' }]]],
    ['became a link', undefined, [[file('app/module.json')], [{ name: 'app', type: 'symlink', linkname: 'x' }]]],
    [
      'is that of another name',
      'm',
      [[file('app/module.json', 'm')], [file('.wh.ap', ''), file('appl/.wh..wh..opq', '')]],
    ],
  ])('in a folder that %s', async (_name, content, layers) => {
    expect(await read(['/app/module.json'], ...layers)).toBe(content)
  })

  test('of several paths the first that the topmost layer has, and of a lower layer only where none has any', async () => {
    const both = [file('app/module.json', 'app'), file('module.json', 'root')]
    expect(await read(['/module.json', '/app/module.json'], both)).toBe('root')
    expect(await read(['/app/module.json', '/module.json'], both)).toBe('app')
    expect(await read(['/module.json', '/app/module.json'], both, [file('app/module.json', 'top')])).toBe('top')
    expect(await read(['/module.json', '/app/module.json'], both, [file('.wh.module.json', '')])).toBe('app')
  })

  test('without asking for layers below the one that has it', async () => {
    const client = memoryRegistry()
    const image = await imageOfEntries(client, [file('a')], [file('module.json', 'm')])
    client.blobs.delete(`${repository} ${image.manifest.layers[0]?.digest}`)
    expect((await readFile(client, image, ['/module.json'], 10))?.toString()).toBe('m')
    await expect(readFile(client, image, ['/a'], 10)).rejects.toMatchObject({ problem: 'not_found' })
    const hidden = await imageOfEntries(client, [file('a', 'deep')], [file('.wh.a', '')])
    client.blobs.delete(`${repository} ${hidden.manifest.layers[0]?.digest}`)
    expect(await readFile(client, hidden, ['/a'], 10)).toBeUndefined()
  })

  test('and refused where it is larger than what is asked for', async () => {
    const client = memoryRegistry()
    const image = await imageOfEntries(client, [file('module.json', '12345')])
    expect((await readFile(client, image, ['module.json'], 5))?.toString()).toBe('12345')
    const refusal = readFile(client, image, ['module.json'], 4)
    await expect(refusal).rejects.toMatchObject({
      problem: 'too_large',
      message: '/module.json has more than 4 bytes.',
    })
  })

  test('and refused where a layer is broken, or not what the configuration says', async () => {
    const client = memoryRegistry()
    const layer = layerOf(await tarOf([file('x')]))
    const other = await imageOf(client, { ...layer, diffId: digestOf('other') })
    await expect(readFile(client, other, ['y'], 10)).rejects.toMatchObject({ problem: 'invalid' })
    const cut = await imageOf(client, layerOf(Buffer.from('no archive')))
    await expect(readFile(client, cut, ['y'], 10)).rejects.toMatchObject({ problem: 'invalid' })
  })

  test('and a bomb costs no more than the limit of an image', async () => {
    const client = memoryRegistry()
    // 16 members of 160 MiB in some 2.5 MB: more than 2 GiB in all.
    const member = gzipSync(Buffer.alloc(160 * 2 ** 20))
    const bytes = Buffer.concat(Array<Buffer>(16).fill(member))
    const descriptor = { mediaType: mediaTypes.layer, digest: digestOf(bytes), size: bytes.length }
    const image = await imageOf(client, { descriptor, diffId: digestOf('bomb'), bytes })
    await expect(readFile(client, image, ['y'], 10)).rejects.toMatchObject({ problem: 'too_large' })
  })

  test('and a layer of more than 256 MiB is not asked for', async () => {
    const client = memoryRegistry()
    const image = await imageOfEntries(client, [file('module.json')])
    const [layer] = image.manifest.layers
    const large: Image = { ...image, manifest: { ...image.manifest, layers: [{ ...layer!, size: 256 * 2 ** 20 + 1 }] } }
    await expect(readFile(client, large, ['module.json'], 10)).rejects.toMatchObject({ problem: 'too_large' })
    expect(layersOf(large)).toHaveLength(1)
  })
})
