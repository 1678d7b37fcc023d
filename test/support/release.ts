import { randomUUID } from 'node:crypto'
import { zipSync } from 'fflate'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import {
  functionAnnotation,
  functionMediaType,
  type ReleaseDocument,
  releaseMediaType,
  tagOf,
} from '@platform/core/updates/release-document'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { type Descriptor, type Manifest, mediaTypes } from '@platform/oci/types'
import { startTestRegistry } from './registry.ts'

/** This file must not import modules that load `@platform/core/config`, which reads the settings at import. */

export interface ReleaseOverrides {
  functions?: Readonly<Record<string, string | Uint8Array>>
  /** Replaces members of the document; a text replaces the document. */
  document?: Partial<Record<keyof ReleaseDocument, unknown>> | string
  tamper?: (manifest: Manifest) => object
  tag?: string
}

const zipOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === 'string'
    ? zipSync({ 'index.mjs': Buffer.from(content) }, { mtime: new Date('2026-01-01T00:00:00') })
    : content

const tinyFunctions = (version: string): Record<string, string> =>
  Object.fromEntries(
    ['health', 'clusters', 'queue/batches'].map((name) => [
      name,
      `export const handler = async (event) => event?.platformProbe ? { version: ${JSON.stringify(version)} } : { name: '${name}' }\n`,
    ]),
  )

/** Signs the release if there is a private key (PEM). */
export async function pushRelease(
  client: RegistryClient,
  repository: string,
  version: string,
  privateKeyPem: string | undefined,
  overrides: ReleaseOverrides = {},
) {
  const { functions = tinyFunctions(version), document: other = {}, tamper = (manifest) => manifest } = overrides
  const zips = Object.entries(functions).map(([name, content]) => [name, zipOf(content)] as const)
  const layers: Descriptor[] = []
  for (const [name, zip] of zips) {
    const blob = await client.putBlob(repository, zip)
    layers.push({ mediaType: functionMediaType, ...blob, annotations: { [functionAnnotation]: name } })
  }
  const document: ReleaseDocument = {
    releaseNotesUrl: 'https://example.com/notes',
    version,
    createdAt: '2026-01-01T00:00:00Z',
    infrastructure: infrastructureRevision(),
    functions: Object.fromEntries(zips.map(([name], place) => [name, sizeOf(layers[place])])),
    ...(typeof other === 'object' && (other as Partial<ReleaseDocument>)),
  }
  const text = Buffer.from(typeof other === 'string' ? other : JSON.stringify(document))
  const manifest: Manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    artifactType: releaseMediaType,
    config: { mediaType: releaseMediaType, ...(await client.putBlob(repository, text)) },
    layers,
    // Each release is unique, so that signatures never match another one.
    annotations: { 'org.platform.push': randomUUID() },
  }
  const bytes = Buffer.from(JSON.stringify(tamper(manifest)))
  const tag = overrides.tag ?? tagOf(version)
  const { digest } = await client.putManifest(repository, tag, bytes, mediaTypes.manifest)
  if (privateKeyPem !== undefined) await signImage(client, repository, digest, privateKeyPem)
  return { version, digest, document }
}

const sizeOf = ({ digest, size } = { digest: '', size: 0 }) => ({ digest, size })

export type Signer = 'release' | 'module' | 'stranger' | false

export async function startReleaseRegistry() {
  const registry = await startTestRegistry()
  const { host, client } = registry
  const repository = 'platform/releases'
  const keys = { release: generateKeyPair(), module: generateKeyPair(), stranger: generateKeyPair() }
  const settings = {
    PLAT_REGISTRY_ALLOW: host,
    PLAT_RELEASE_SOURCE: `${host}/${repository}`,
    PLAT_RELEASE_KEYS: JSON.stringify([{ name: 'releases', pem: keys.release.publicKeyPem }]),
    PLAT_MODULE_KEYS: JSON.stringify([{ name: 'modules', pem: keys.module.publicKeyPem }]),
  }
  const push = (version: string, { signer = 'release', ...overrides }: ReleaseOverrides & { signer?: Signer } = {}) =>
    pushRelease(client, repository, version, signer === false ? undefined : keys[signer].privateKeyPem, overrides)

  async function clear(): Promise<void> {
    const tags: string[] = []
    try {
      for await (const tag of client.tags(repository)) tags.push(tag)
    } catch (error) {
      if (!(error instanceof RegistryError && error.problem === 'not_found')) throw error
    }
    for (const tag of tags) await client.remove(repository, tag)
  }
  return { ...registry, repository, keys, settings, push, clear }
}

export async function startReleaseFixtures() {
  const registry = await startReleaseRegistry()
  Object.assign(process.env, registry.settings)
  return { ...registry, close: () => registry[Symbol.asyncDispose]() }
}
