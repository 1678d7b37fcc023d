import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startRegistry } from '@platform/local/registry/server'
import { buildImage } from '@platform/oci/build'
import { currentPlatform } from '@platform/oci/image'
import { readBlob, readIndex, readManifest } from '@platform/oci/layout-folder'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { expect, test } from 'vitest'
import { importLayout } from '../support/import-layout.ts'
import { deploymentSpecOf, limits, localRuntime, textOf } from '../support/local-runtime.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startAuthor } from './support/author.ts'
import { isLong } from '../support/long.ts'

const password = 'correct horse battery'
const otherPlatform = currentPlatform().architecture === 'arm64' ? 'linux/amd64' : 'linux/arm64'

test('an image with a base image is complete in its folder and can be pushed', async () => {
  await using folder = await temporaryFolder()
  const registry = await startRegistry({ folder: folder.path, port: 0, password, log: () => undefined })
  await using resources = new AsyncDisposableStack()
  resources.defer(() => registry.close(0))
  const credentials = async () => ({ username: 'platform', password })
  const client = registryClient(registry.host, { transport: plainTransport, credentials })
  const base = await buildImage({
    files: [{ path: '/usr/local/bin/node', content: '#!/bin/sh\n', mode: 0o755 }],
    config: { Env: ['COLOR=blue'], Cmd: ['node'] },
    labels: { vendor: 'tests', 'org.platform.module.id': 'another' },
  })
  await pushImage(client, 'library/node', base, ['24'])

  const settings = { PLAT_REGISTRY_USERNAME: 'platform', PLAT_REGISTRY_PASSWORD: password }
  await using author = await startAuthor(settings, `${registry.host}/modules/greeting`)
  const baseOptions = ['--from', `${registry.host}/library/node:24`]
  await author.plat.prints(['module', 'build', '--dir', 'greeting', ...baseOptions])
  const { digest } = await author.plat.json(['module', 'push', '--dir', 'greeting'])

  const manifest = (await client.manifest('modules/greeting', digest))!
  const { layers, config } = JSON.parse(manifest.bytes.toString())
  expect(layers).toHaveLength(2)
  expect(layers[0].digest).toBe(base.layers[0]!.descriptor.digest)
  for (const layer of layers) await readFile(join(author.module, 'dist/image/blobs', ...layer.digest.split(':')))
  expect(JSON.parse((await client.blob('modules/greeting', config)).toString()).config).toMatchObject({
    Entrypoint: ['node', '/app/main.mjs'],
    Cmd: [],
    Env: ['COLOR=blue'],
    Labels: { vendor: 'tests', 'org.platform.module.id': 'greeting' },
  })

  const run = await author.plat.run([
    'module',
    'build',
    '--dir',
    'greeting',
    '--platform',
    otherPlatform,
    ...baseOptions,
  ])
  expect([run.exitCode, run.err]).toEqual([1, expect.stringMatching(`built for .* module for ${otherPlatform}`)])

  const missingBaseOptions = ['--from', `${registry.host}/library/node:25`]
  const { exitCode, err } = await author.plat.run(['module', 'build', '--dir', 'greeting', ...missingBaseOptions])
  expect([exitCode, err]).toEqual([1, `Image not found: ${registry.host}/library/node:25.\n`])
})

test.runIf(isLong)('builds an image for another platform without the local Node.js', async () => {
  await using author = await startAuthor()
  const build = ['module', 'build', '--dir', 'greeting', '--platform', otherPlatform]
  await author.plat.prints(build)
  const folder = join(author.module, 'dist/image')
  const [entry] = (await readIndex(folder))!
  const { content } = await readManifest(folder, entry!.digest)
  const config = 'config' in content ? (await readBlob(folder, content.config.digest, 2 ** 20)).toString() : '{}'
  expect(JSON.parse(config)).toMatchObject({ os: 'linux', architecture: otherPlatform.slice('linux/'.length) })

  const { exitCode, err } = await author.plat.run([...build, '--with-node'])
  expect([exitCode, err]).toEqual([2, expect.stringContaining('--from <image>')])
})

const skipReason = missingPrograms('runc')

// Long, because the image contains Node.js.
test.skipIf(skipReason !== '' || !isLong)(
  `an image with Node.js does not use the machine’s Node.js${skipReason}`,
  async () => {
    await using author = await startAuthor()
    await author.change('src/main.ts', `'/modules/greeting', (c) => c.html(`, `'/x', (c) => c.text(process.execPath + `)
    await author.plat.prints(['module', 'build', '--dir', 'greeting', '--with-node'])
    await using runtime = await localRuntime('container')
    const [image] = await importLayout(runtime.registry, 'greeting', join(author.module, 'dist/image'))
    const repository = `${runtime.registry.registry}/greeting`
    const deployment = await runtime.deploy(deploymentSpecOf({ repository, digest: image!.digest }))
    const answer = await runtime.request(deployment, { method: 'GET', path: '/x' }, limits)
    expect(textOf(answer)).toMatch(/^\/usr\/local\/bin\/node</)
  },
  180_000,
)
