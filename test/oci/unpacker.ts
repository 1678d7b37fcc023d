import { unpackImage } from '@platform/oci/unpack'
import { imageOfEntries } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'

/**
 * Unpacks an image of two layers: `node unpacker.ts <store> whole`. In mode `stuck`, the registry never sends the upper
 * layer.
 */
const [store = '', mode] = process.argv.slice(2)

const client = memoryRegistry()
const files = Array.from({ length: 200 }, (_, index) => ({ name: `d${index % 10}/${index}`, content: `${index}` }))
const image = await imageOfEntries(client, files, [{ name: 'top', content: 'top' }])
const upperDigest = image.manifest.layers[1]?.digest
const stuckRegistry = {
  ...client,
  blob: async (...input: Parameters<typeof client.blob>) => {
    if (input[1].digest !== upperDigest) return client.blob(...input)
    console.log('stuck')
    return new Promise<Buffer>(() => setTimeout(() => undefined, 600_000))
  },
}
console.log(await unpackImage(mode === 'stuck' ? stuckRegistry : client, image, store))
