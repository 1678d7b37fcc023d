import { readFile } from '@platform/oci/image'
import { expect, test } from 'vitest'
import { imageOf, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'

/** What an archive says of its files beside their content; reading it costs far more than reading them. */

const blockBytes = 512

/** A header that says something of all files after it, as no packer of ours writes it. */
async function saidOfAll(attributes: number): Promise<Buffer> {
  const records = Array.from({ length: attributes }, (_, index) => ` ${index.toString(36)}=\n`)
  const content = records.map((record) => `${record.length + String(record.length + 1).length}${record}`).join('')
  const archive = (await tarOf([{ name: 'all', content }])).subarray(0, -2 * blockBytes)
  archive.write('g', 156)
  const sum = archive.subarray(0, blockBytes).reduce((total, byte, at) => total + (at < 148 || at > 155 ? byte : 32), 0)
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return archive
}

const described = (name: string, pax: Record<string, string> = { comment: 'x' }): RawEntry => ({ name, pax })

async function read(tar: Buffer): Promise<string | undefined> {
  const client = memoryRegistry()
  const image = await imageOf(client, layerOf(tar))
  return (await readFile(client, image, ['/module.json'], 1000))?.toString()
}

test.each([
  ['50,000 attributes for every file', 50_000, /has more than 100 attributes/, 'invalid'],
  ['more of them than anybody needs', 500_000, /says too much about its files/, 'too_large'],
] as const)('a layer that says %s is refused at once', async (_name, attributes, message, problem) => {
  const files = await tarOf(Array.from({ length: 100 }, (_, index) => described(`file-${index}`)))
  const refusal = read(Buffer.concat([await saidOfAll(attributes), files]))
  await expect(refusal).rejects.toMatchObject({ problem, message: expect.stringMatching(message) })
})

test('a layer that says more and more and never names a file is refused before all of it was read', async () => {
  const one = await saidOfAll(2000)
  await expect(read(Buffer.concat(Array<Buffer>(2000).fill(one)))).rejects.toMatchObject({ problem: 'too_large' })
})

test('a layer of many files with long names and some attributes each is read', async () => {
  const attributes = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`SCHILY.xattr.user.${index}`, 'x']))
  const folder = 'deep/'.repeat(60)
  const files = Array.from({ length: 1000 }, (_, index) => described(`${folder}${index}`, attributes))
  const tar = await tarOf([...files, { name: 'module.json', content: '{}' }])
  expect(await read(tar)).toBe('{}')
})

test('a large file is content, whatever its size', async () => {
  const tar = await tarOf([
    { name: 'large', content: Buffer.alloc(3 * 2 ** 20) },
    { name: 'module.json', content: '{}' },
  ])
  expect(await read(tar)).toBe('{}')
})
