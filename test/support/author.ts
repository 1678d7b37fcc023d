import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildImage, type ImageToBuild } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { exportLayout } from '@platform/oci/layout'
import { plainTransport } from '@platform/oci/plain-transport'
import { generateKeyPair } from '@platform/oci/signature/key'
import { type SignatureLayout, signImage } from '@platform/oci/signature/sign'
import { build } from 'esbuild'
import { startDockerRegistry } from './docker-registry.ts'
import { startServer } from './http-server.ts'
import { fixture } from './module-process.ts'
import { moduleLabels, writtenManifest } from './module-registry.ts'
import { outputOf } from './peers.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A module as its author publishes it; a good one where nothing is said. */
export interface Publication {
  version?: string
  /** Of test/support/modules, with its arguments; a program that ends at once where nothing is said. */
  program?: string
  tag?: string
  /** Members of the manifest's `spec` and `metadata`. */
  spec?: object
  metadata?: object
  /** The text of module.json where it is to be broken; none where it is false. */
  manifest?: string | false
  labels?: Record<string, string>
  layers?: ImageToBuild['layers']
  signedBy?: 'author' | 'stranger' | 'nobody'
  signature?: SignatureLayout
}

/**
 * Somebody who makes modules for a platform of others: Debian's docker-registry to put them in, images that are built
 * without a daemon, written as OCI layouts and sent there by skopeo, a key, and a web server for manifests.
 */
export async function startAuthor() {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  const registry = starting.use(await startDockerRegistry())
  const { host } = registry
  const client = registryClient(host, { transport: plainTransport, credentials: async () => undefined })
  const keys = { author: generateKeyPair(), stranger: generateKeyPair() }
  const keyFile = join(folder, 'author.pem')
  await writeFile(keyFile, keys.author.publicKeyPem)

  const pages = new Map<string, string>()
  const web = await startServer(({ url }) => {
    const body = pages.get(url.pathname)
    return body === undefined ? { status: 404 } : { status: 200, body }
  })
  starting.use(web)

  /** Puts a text on the web; answers its address. */
  function serve(name: string, text: string): string {
    pages.set(`/${name}`, text)
    return `${web.url}/${name}`
  }

  /** Builds, sends and signs an image; answers how to name it. */
  async function publish(id: string, publication: Publication = {}) {
    const { version = '1.0.0', tag = version, signedBy = 'author', signature = 'referrer' } = publication
    const { manifest = JSON.stringify(writtenManifest(id, version, publication.spec, publication.metadata)) } =
      publication
    const { program, args } = await programOf(publication.program)
    const built = await buildImage({
      files: [
        ...(manifest === false ? [] : [{ path: '/module.json', content: manifest }]),
        { path: '/app/main.mjs', content: program },
      ],
      config: { Entrypoint: ['node', '/app/main.mjs', ...args], WorkingDir: '/app' },
      labels: publication.labels ?? moduleLabels(id, version),
      ...(publication.layers && { layers: publication.layers }),
    })
    const layout = join(folder, `${id}-${built.digest.slice(7, 19)}`)
    await exportLayout(built, layout, [tag])
    const repository = `modules/${id}`
    const reference = `${host}/${repository}:${tag}`
    const copy = ['--insecure-policy', 'copy', '-q', '--preserve-digests', '--dest-tls-verify=false']
    await outputOf('skopeo', ...copy, `oci:${layout}:${tag}`, `docker://${reference}`)
    if (signedBy !== 'nobody') {
      await signImage(client, repository, built.digest, keys[signedBy].privateKeyPem, { layout: signature })
    }
    return { reference, repository, digest: built.digest, manifest: manifest || '' }
  }

  const started = starting.move()
  return {
    host,
    client,
    /** By which a platform takes modules of this author. */
    settings: {
      PLAT_MODULE_SOURCES: `${host}/*`,
      PLAT_MODULE_TRUSTED_KEYS: keyFile,
      PLAT_OUTBOUND_ALLOW: `${host},${web.host}`,
    },
    serve,
    publish,
    /** Takes the registry away. */
    closeRegistry: () => registry[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

export type Author = Awaited<ReturnType<typeof startAuthor>>

const bundles = new Map<string, Promise<string>>()

/** A program of test/support/modules in one file, and its arguments. */
export async function programOf(command?: string): Promise<{ program: string; args: string[] }> {
  if (command === undefined) return { program: '', args: [] }
  const [file = '', ...args] = fixture(command).split(' ')
  const program = bundles.get(file) ?? bundled(file)
  bundles.set(file, program)
  return { program: await program, args }
}

async function bundled(file: string): Promise<string> {
  const options = { bundle: true, platform: 'node', format: 'esm', write: false, logLevel: 'error' } as const
  const { outputFiles } = await build({ entryPoints: [file], ...options })
  return outputFiles[0]?.text ?? ''
}
