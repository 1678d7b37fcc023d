import { createPublicKey } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf } from '@platform/oci/digest'
import { projectDir } from '../project-dir.ts'
import type { EmbeddedRegistry } from './embedded.ts'
import { writerName } from './writer.ts'

/** Repository of the reference module, and the only one that the platform's own key may sign. */
export const helloRepository = 'modules/hello'

const manifestFile = join(projectDir, 'packages/hello/module.json')

/**
 * Pushes the signed reference module under the tags `latest` and its version. Returns false without a push if the last
 * push had the same content, even if a user has removed the module.
 */
export async function seedHello(registry: EmbeddedRegistry, assetsDir: string, signingKey: string): Promise<boolean> {
  const [program, manifest] = await Promise.all([
    readFile(join(assetsDir, 'hello.mjs')),
    readFile(manifestFile, 'utf8'),
  ])
  const contentDigest = digestOf([program.toString('base64'), manifest, publicKeyOf(signingKey)].join('\n'))
  const markerFile = join(registry.folder, 'seeded')
  if ((await readFile(markerFile, 'utf8').catch(() => '')) === contentDigest) return false
  await rm(markerFile, { force: true })
  await pushHello(registry, { program, manifest, signingKey })
  await writeFile(markerFile, contentDigest)
  return true
}

const publicKeyOf = (privateKeyPem: string): string =>
  createPublicKey(privateKeyPem).export({ type: 'spki', format: 'pem' }).toString()

interface Release {
  program: Uint8Array
  manifest: string
  signingKey: string
}

// These packages are imported on demand, because most starts push no image.
async function pushHello({ host, password }: EmbeddedRegistry, { program, manifest, signingKey }: Release) {
  const [{ buildImage }, { pushImage }, { registryClient }, { plainTransport }, { signImage }] = await Promise.all([
    import('@platform/oci/build'),
    import('@platform/oci/push'),
    import('@platform/oci/client'),
    import('@platform/oci/plain-transport'),
    import('@platform/oci/signature/sign'),
  ])
  const credentials = async () => ({ username: writerName, password })
  const client = registryClient(host, { transport: plainTransport, credentials })
  const { id, version, repositoryUrl } = JSON.parse(manifest).metadata
  const image = await buildImage({
    files: [
      { path: '/module.json', content: manifest },
      { path: '/app/main.mjs', content: program },
    ],
    config: { Entrypoint: ['node', '/app/main.mjs'], WorkingDir: '/app' },
    labels: {
      'org.platform.module': 'true',
      'org.platform.module.id': id,
      'org.platform.module.version': version,
      'org.opencontainers.image.source': repositoryUrl,
    },
  })
  // The image is signed before it is tagged, so that no scan finds it unverified.
  const { digest } = await pushImage(client, helloRepository, image, [])
  await signImage(client, helloRepository, digest, signingKey)
  await pushImage(client, helloRepository, image, [version, 'latest'])
}
