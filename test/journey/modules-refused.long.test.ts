import { manifestBytes } from '@platform/contract/manifest'
import { signatureTag } from '@platform/oci/signature/sign'
import { mediaTypes } from '@platform/oci/types'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Publication } from '../support/author.ts'
import { type Respond, type Server, startServer } from '../support/http-server.ts'
import { moduleLabels, writtenManifest } from '../support/module-registry.ts'
import { missing } from '../support/peers.ts'
import { type Stage, startStage } from '../support/stage.ts'

/** Images, registries and manifests that are broken or mean ill: each has its code at once, and nothing begins. */

const reason = missing('docker-registry', 'skopeo')

const slot = (id: string, change: object) => ({
  navSlots: [{ slotId: 'nav.primary', id, label: 'Bad', icon: 'skull', route: `/modules/${id}`, order: 1, ...change }],
})
const tooLong = `{"x": "${'y'.repeat(manifestBytes)}"}`
const tooDeep = `{"metadata":${'['.repeat(40)}${']'.repeat(40)}}`

type Case = [status: number, code: string, publication: Publication | ((id: string) => Publication)]

const images: Record<string, Case> = {
  'no labels': [422, 'image_not_a_module', { labels: {} }],
  'a label that says no': [
    422,
    'image_not_a_module',
    (id) => ({ labels: { ...moduleLabels(id), 'org.platform.module': 'no' } }),
  ],
  'no module.json': [422, 'image_not_a_module', { manifest: false }],
  'the labels of another module': [422, 'manifest_id_mismatch', { labels: moduleLabels('other') }],
  'the labels of another version': [422, 'manifest_mismatch', (id) => ({ labels: moduleLabels(id, '2.0.0') })],
  'a module.json that is no JSON': [422, 'manifest_invalid', { manifest: '{' }],
  'a module.json of more than 256 KiB': [422, 'manifest_invalid', { manifest: tooLong }],
  'a module.json that is nested deeply': [422, 'manifest_invalid', { manifest: tooDeep }],
  'a key that nobody knows': [422, 'manifest_invalid', { spec: { privileged: true } }],
  'an id that is a word of the platform': [422, 'manifest_invalid', { metadata: { id: 'catalog' } }],
  'the path of the API': [422, 'manifest_invalid', { spec: { apiBasePath: '/api/v1' } }],
  'the path of modules': [422, 'manifest_invalid', { spec: { apiBasePath: '/api/modules/x' } }],
  'a path that leads elsewhere': [422, 'manifest_invalid', { spec: { apiBasePath: '/api/x/../v1' } }],
  'the path of another module': [409, 'module_route_taken', { spec: { apiBasePath: '/api/bystander' } }],
  'a path below that of another module': [409, 'module_route_taken', { spec: { apiBasePath: '/api/bystander/x' } }],
  'an icon that does not exist': [422, 'manifest_invalid', (id) => ({ spec: slot(id, { icon: 'no-such-icon' }) })],
  'a page of another module': [422, 'manifest_invalid', (id) => ({ spec: slot(id, { route: '/modules/bystander' }) })],
  'an SDK that does not exist': [422, 'sdk_incompatible', { spec: { sdkVersion: '>=9.0.0' } }],
  'no signature': [422, 'module_signature_unverified', { signedBy: 'nobody' }],
  'the signature of a stranger': [422, 'module_signature_unverified', { signedBy: 'stranger' }],
}

let stranger: Server
const elsewhere = () => `http://localhost:${stranger.host.split(':')[1]}`
const digest = `sha256:${'0'.repeat(64)}`
const manifestType = { 'content-type': mediaTypes.manifest }

const registries: Record<string, Respond> = {
  'says nothing': () => undefined,
  'has no image': () => ({ status: 404 }),
  'fails, at length': () => ({ status: 500, body: 'x'.repeat(100_000) }),
  'sends what the digest does not stand for': () => ({
    status: 200,
    headers: { ...manifestType, 'docker-content-digest': digest },
    body: JSON.stringify({ schemaVersion: 2, config: { mediaType: mediaTypes.config, digest, size: 2 }, layers: [] }),
  }),
  'sends what is no manifest': () => ({ status: 200, headers: manifestType, body: '[' }),
  'wants to know who asks from somebody else': () => ({
    status: 401,
    headers: { 'www-authenticate': `Bearer realm="${elsewhere()}/token",service="x"` },
  }),
  'leads to somebody else': () => ({ status: 302, headers: { location: `${elsewhere()}/v2/` } }),
  'sends without an end': (_, outgoing) => {
    outgoing.writeHead(200, manifestType)
    const timer = setInterval(() => outgoing.write('x'.repeat(100_000)), 1)
    outgoing.on('close', () => clearInterval(timer))
    return undefined
  },
}

describe.skipIf(reason !== '')(`what is refused at once${reason}`, () => {
  const resources = new AsyncDisposableStack()
  const servers = new Map<string, Server>()
  let stage: Stage

  beforeAll(async () => {
    stranger = resources.use(await startServer(() => ({ status: 200, body: '{"token":"x"}' })))
    for (const [name, respond] of Object.entries(registries)) {
      servers.set(name, resources.use(await startServer(respond)))
    }
    const allowed = [...servers.values()].map(({ host }) => host)
    stage = resources.use(await startStage({}, allowed))
  })
  afterAll(() => resources.disposeAsync())
  afterEach(() => stage.expectUntouched())

  test.for(Object.entries(images).map(([name, wrong], index) => [name, wrong, `bad-${index}`] as const))(
    'an image with %s',
    async ([, [status, code, publication], id]) => {
      const { reference } = await stage.author.publish(
        id,
        typeof publication === 'function' ? publication(id) : publication,
      )
      const { details, message } = answered(await stage.ask(reference), status, code)
      expect(message.length).toBeGreaterThan(20)
      if (code === 'manifest_invalid') expect(details.length).toBeGreaterThan(0)
    },
  )

  test('a tag that is put on another image after it was signed', async () => {
    const { author } = stage
    await author.publish('moved', { version: '1.0.0', tag: 'latest' })
    const { reference } = await author.publish('moved', { version: '1.0.1', tag: 'latest', signedBy: 'nobody' })
    answered(await stage.ask(reference), 422, 'module_signature_unverified')
  })

  test('a signature that is put beside another image', async () => {
    const { client, publish } = stage.author
    const signed = await publish('copied', { version: '1.0.0', signature: 'tag' })
    const other = await publish('copied', { version: '1.0.1', signedBy: 'nobody' })
    const found = await client.manifest(signed.repository, signatureTag(signed.digest))
    const bytes = found?.bytes ?? Buffer.alloc(0)
    await client.putManifest(other.repository, signatureTag(other.digest), bytes, mediaTypes.manifest)
    answered(await stage.ask(other.reference), 422, 'module_signature_unverified')
  })

  test.for(Object.keys(registries))('a registry that %s', async (name) => {
    const host = servers.get(name)?.host
    const reference = name.includes('digest') ? `${host}/modules/x@${digest}` : `${host}/modules/x:1.0.0`
    answered(await stage.ask(reference), 422, 'image_unreachable')
    expect(stranger.seen).toEqual([])
  })

  test('a manifest elsewhere that is not that of the image, or that nobody may read', async () => {
    const { publish, serve } = stage.author
    const { reference, manifest } = await publish('elsewhere')
    const other = JSON.stringify(writtenManifest('elsewhere', '1.0.0', { apiBasePath: '/api/quite-another' }))
    const addresses: [url: string, code: string][] = [
      [serve('other.json', other), 'manifest_mismatch'],
      [serve('broken.json', manifest.slice(1)), 'manifest_invalid'],
      [serve('long.json', tooLong), 'manifest_invalid'],
      [`${serve('x', '')}/nothing`, 'image_unreachable'],
      ['http://169.254.169.254/latest/meta-data', 'url_not_allowed'],
      [`${stranger.url}/module.json`, 'url_not_allowed'],
    ]
    for (const [manifestUrl, code] of addresses) answered(await stage.ask(reference, { manifestUrl }), 422, code)
    expect(stranger.seen).toEqual([])
  })
})
