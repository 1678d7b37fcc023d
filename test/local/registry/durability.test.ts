import { randomBytes } from 'node:crypto'
import { readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { runServer } from '../support/program.ts'
import { digestOf, freshRegistry, manifestOf, registryIn, writer } from './support.ts'

async function pushUntilKilled(host: string, name: string, onPushed: (tag: string) => void): Promise<void> {
  const put = async (path: string, body: string | Uint8Array, type = 'application/octet-stream') =>
    fetch(`http://${host}/v2/modules/hello/${path}`, {
      method: path.startsWith('manifests') ? 'PUT' : 'POST',
      headers: { ...writer, 'content-type': type },
      body: Buffer.from(body),
    })
  for (let index = 0; ; index++) {
    const tag = `${name}-${index}`
    const layer = randomBytes(50_000)
    const config = `{"tag":"${tag}"}`
    try {
      await put(`blobs/uploads/?digest=${digestOf(config)}`, config)
      await put(`blobs/uploads/?digest=${digestOf(layer)}`, layer)
      const response = await put(`manifests/${tag}`, manifestOf(config, layer), mediaTypes.manifest)
      if (response.status === 201) onPushed(tag)
    } catch {
      return
    }
  }
}

test('a kill during pushes loses no acknowledged image, and leaves no partial one', async () => {
  await using folder = await temporaryFolder()
  await using server = await runServer('registry', folder.path)
  const pushedTags: string[] = []
  const killAfter = 12
  const onPushed = (tag: string) => {
    pushedTags.push(tag)
    if (pushedTags.length === killAfter) server.child.kill('SIGKILL')
  }
  await Promise.all(['a', 'b', 'c'].map((name) => pushUntilKilled(server.address, name, onPushed)))
  await server.exit
  expect(pushedTags.length).toBeGreaterThanOrEqual(killAfter)

  await using registry = await registryIn(folder.path)
  const { tags }: any = await (await registry.read('/v2/modules/hello/tags/list')).json()
  expect(tags).toEqual(expect.arrayContaining(pushedTags))
  for (const tag of tags) {
    const text = await (await registry.read(`/v2/modules/hello/manifests/${tag}`)).text()
    const { config, layers } = JSON.parse(text)
    for (const { digest } of [config, ...layers]) {
      const blob = await registry.read(`/v2/modules/hello/blobs/${digest}`)
      expect([tag, digestOf(Buffer.from(await blob.arrayBuffer()))]).toEqual([tag, digest])
    }
  }
  expect(await readdir(join(folder.path, 'drafts'))).toEqual([])
})

test('a close completes running downloads', async () => {
  await using registry = await freshRegistry()
  const content = randomBytes(20_000_000)
  const digest = digestOf(content)
  await registry.send('POST', `/v2/modules/hello/blobs/uploads/?digest=${digest}`, content)
  const download = await registry.read(`/v2/modules/hello/blobs/${digest}`)
  const closed = registry.close(10_000)
  expect(digestOf(Buffer.from(await download.arrayBuffer()))).toBe(digest)
  await closed
  await expect(registry.read('/v2/_catalog')).rejects.toThrow('fetch failed')
})

test('a download of truncated content fails', async () => {
  await using registry = await freshRegistry()
  const content = randomBytes(5_000_000)
  const digest = digestOf(content)
  await registry.send('POST', `/v2/modules/hello/blobs/uploads/?digest=${digest}`, content)
  const hex = digest.slice('sha256:'.length)
  const path = `/v2/modules/hello/blobs/${digest}`
  const download = await registry.read(path)
  await truncate(join(registry.folder, 'content', hex.slice(0, 2), hex), 1000)
  await expect(download.arrayBuffer()).rejects.toThrow('terminated')
})
