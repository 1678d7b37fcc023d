import { afterEach, expect, test, vi } from 'vitest'
import { handler } from '../../functions/identity.ts'
import { selfSigned } from '../core/support/certificate.ts'
import { cloud, everyType, ldap, oidc, openSource } from '../core/support/identity.ts'
import { jsonRequest, send } from '../support/request.ts'
import { personOf } from './person.ts'

await vi.hoisted(async () => {
  process.env['PLAT_OUTBOUND_ALLOW'] = '127.0.0.1:4444,[::1]:389,idp.internal:80'
  await import('../support/without-rate-limits.ts')
})

const path = '/api/v1/platform/identity/providers'
const { headers } = await personOf('PlatformAdmin')
const configure = (body: unknown) => send(handler, jsonRequest(path, body, headers))
const list = async () => (await send(handler, { target: path, headers })).json.items

afterEach(async () => {
  for (const { id } of await list()) await send(handler, { method: 'DELETE', target: `${path}/${id}`, headers })
})

const { cert, key } = selfSigned('directory.example.com')
const without = (request: object, ...names: string[]): object =>
  Object.fromEntries(Object.entries(request).filter(([name]) => !names.includes(name)))

test.each([
  ['OIDC', { type: 'OIDC' }, ['/issuer', '/clientId', '/clientSecret']],
  ['CloudDirectory', { type: 'CloudDirectory' }, ['/tenantId', '/clientId', '/clientSecret']],
  ['OpenSourceIdp', { type: 'OpenSourceIdp' }, ['/baseUrl', '/realm', '/clientId', '/clientSecret']],
  ['LDAP', { type: 'LDAP' }, ['/url', '/bindDn', '/userSearchBase', '/bindPassword']],
  ['LDAP with the secret of another type', { ...without(ldap, 'bindPassword'), clientSecret: 'x' }, ['/bindPassword']],
  ['OIDC with the secret of another type', { ...without(oidc, 'clientSecret'), bindPassword: 'x' }, ['/clientSecret']],
  ...Object.entries(everyType).flatMap(([type, request]) =>
    Object.keys(request)
      .filter((name) => name !== 'type')
      .map((name) => [`${type} without ${name}`, without(request, name), [`/${name}`]] as const),
  ),
] as [string, object, string[]][])('%s names what it lacks, and adds nothing', async (_, body, fields) => {
  const { status, json } = await configure(body)
  expect([status, json.error]).toEqual([422, 'idp_config_invalid'])
  expect(json.details.map((detail: any) => `${detail.path} ${detail.code}`)).toEqual(
    fields.map((field) => `${field} required`),
  )
  expect(json.details.every((detail: any) => detail.in === 'body' && detail.message !== '')).toBe(true)
  expect(await list()).toEqual([])
})

const secretOfNobody = 'do-not-echo-this'

test.each([
  ['issuer', { ...oidc, issuer: 'http://id.example.com' }, '/issuer https_required'],
  ['issuer with a query', { ...oidc, issuer: 'https://id.example.com/?a=b' }, '/issuer invalid_url'],
  ['issuer with an empty query', { ...oidc, issuer: 'https://id.example.com/?' }, '/issuer invalid_url'],
  ['issuer with a fragment', { ...oidc, issuer: 'https://id.example.com/#a' }, '/issuer invalid_url'],
  ['baseUrl', { ...openSource, baseUrl: 'http://sso.example.com' }, '/baseUrl https_required'],
  ['authorityHost', { ...cloud, authorityHost: 'http://login.example.com' }, '/authorityHost https_required'],
  ['another port than the allowed one', { ...oidc, issuer: 'http://idp.internal:81' }, '/issuer https_required'],
  ['everybody’s tenant', { ...cloud, tenantId: 'common' }, '/tenantId not_one_tenant'],
  ['every organisation’s tenant', { ...cloud, tenantId: 'Organizations' }, '/tenantId not_one_tenant'],
  ['ldap: without TLS', { ...ldap, url: 'ldap://directory.example.com' }, '/startTls tls_required'],
  [
    'ldap: with startTls: false',
    { ...ldap, url: 'ldap://directory.example.com', startTls: false },
    '/startTls tls_required',
  ],
  ['ldaps: with startTls', { ...ldap, startTls: true }, '/startTls not_applicable'],
  ['url with a base', { ...ldap, url: 'ldaps://directory.example.com/dc=example' }, '/url invalid_url'],
  ['url with a query', { ...ldap, url: 'ldaps://directory.example.com?sub' }, '/url invalid_url'],
  [
    'url with credentials',
    { ...ldap, url: `ldaps://admin:${secretOfNobody}@directory.example.com` },
    '/url invalid_url',
  ],
  ['url of a strange host', { ...ldap, url: 'ldaps://a%00b.example.com' }, '/url invalid_url'],
  ['no certificate', { ...ldap, caCertificate: 'trust me' }, '/caCertificate invalid_certificate'],
  ['an empty certificate', { ...ldap, caCertificate: '' }, '/caCertificate invalid_certificate'],
  [
    'a certificate of nothing',
    { ...ldap, caCertificate: cert.replace(/MII.{20}/, 'AAAA') },
    '/caCertificate invalid_certificate',
  ],
  ['a certificate and its key', { ...ldap, caCertificate: `${cert}${key}` }, '/caCertificate invalid_certificate'],
  ['a key', { ...ldap, caCertificate: key }, '/caCertificate invalid_certificate'],
])('%s that will not do is refused by its field', async (_, body, expected) => {
  const { status, json, text } = await configure(body)
  expect([status, json.error]).toEqual([422, 'idp_config_invalid'])
  expect(json.details.map((detail: any) => `${detail.path} ${detail.code}`)).toEqual([expected])
  for (const value of [secretOfNobody, 'first secret', 'PRIVATE']) expect(text).not.toContain(value)
  expect(await list()).toEqual([])
})

test.each([
  [{ ...oidc, issuer: 'https://127.0.0.1/' }],
  [{ ...oidc, issuer: 'http://127.0.0.1:4445' }],
  [{ ...oidc, issuer: `https://admin:${secretOfNobody}@id.example.com` }],
  [{ ...openSource, baseUrl: 'https://10.1.2.3' }],
  [{ ...cloud, authorityHost: 'https://192.168.0.1' }],
  [{ ...ldap, url: 'ldaps://127.0.0.1' }],
  [{ ...ldap, url: 'ldaps://0x7f000001:636' }],
  [{ ...ldap, url: 'ldap://[::1]:390', startTls: true }],
])('%o leads to a neighbour of the platform, and is refused', async (body) => {
  const { status, json, text } = await configure(body)
  expect([status, json.error]).toEqual([422, 'url_not_allowed'])
  expect(text).not.toContain(secretOfNobody)
  expect(await list()).toEqual([])
})

test.each([
  [{ ...oidc, issuer: 'http://127.0.0.1:4444' }],
  [{ ...oidc, issuer: 'http://idp.internal' }],
  [{ ...ldap, url: 'ldap://[::1]', startTls: true }],
  [{ ...ldap, url: 'ldap://directory.example.com', startTls: true, caCertificate: `${cert}\n${cert}` }],
])('%o is what the operator has named, or is encrypted', async (body) => {
  expect((await configure(body)).status).toBe(201)
})

const breaks = ['\n', '\r\n', '\t', '\u0000', '\u0085', '\u2028']

test.each([
  [{ ...oidc, type: 'Other' }, '/type'],
  [{ ...oidc, issuer: 'nowhere' }, '/issuer'],
  [{ ...oidc, issuer: 'ftp://id.example.com' }, '/issuer'],
  [{ ...oidc, issuer: 'javascript:alert(1)' }, '/issuer'],
  [{ ...oidc, issuer: 'https://id.example.com/ü' }, '/issuer'],
  [{ ...oidc, issuer: 'https:\\\\id.example.com' }, '/issuer'],
  ...breaks.map((end) => [{ ...oidc, issuer: `https://id.exa${end}mple.com` }, '/issuer']),
  ...breaks.map((end) => [{ ...oidc, clientId: `a${end}b` }, '/clientId']),
  ...breaks.map((end) => [{ ...oidc, clientSecret: `a${end}b` }, '/clientSecret']),
  ...breaks.map((end) => [{ ...oidc, displayName: `a${end}b` }, '/displayName']),
  ...breaks.map((end) => [{ ...ldap, bindDn: `cn=a${end}b` }, '/bindDn']),
  ...breaks.map((end) => [{ ...ldap, bindPassword: `a${end}b` }, '/bindPassword']),
  ...breaks.map((end) => [{ ...ldap, url: `ldaps://a${end}b` }, '/url']),
  [{ ...oidc, clientSecret: '' }, '/clientSecret'],
  [{ ...oidc, clientSecret: 1 }, '/clientSecret'],
  [{ ...cloud, tenantId: '..' }, '/tenantId'],
  [{ ...cloud, tenantId: 'a/b' }, '/tenantId'],
  [{ ...openSource, realm: '../master' }, '/realm'],
  [{ ...openSource, realm: '..' }, '/realm'],
  [{ ...ldap, userLoginAttribute: 'uid)(objectClass=*' }, '/userLoginAttribute'],
  [{ ...ldap, url: 'https://directory.example.com' }, '/url'],
  [{ ...oidc, scopes: ['a b'] }, '/scopes/0'],
  [{ ...oidc, scopes: Array(21).fill('a') }, '/scopes'],
  [{ ...oidc, roleMappings: [{ group: 'g', role: 'King' }] }, '/roleMappings/0/role'],
  [{ ...oidc, roleMappings: [{ group: '', role: 'Viewer' }] }, '/roleMappings/0/group'],
  [{ ...oidc, defaultRole: 'King' }, '/defaultRole'],
  [{ ...oidc, enabled: 'yes' }, '/enabled'],
] as [object, string][])('%o is no request at all', async (body, field) => {
  const { status, json } = await configure(body)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details.map((detail: any) => detail.path)).toContain(field)
  expect(await list()).toEqual([])
})

test('many things that are wrong are all named at once', async () => {
  const { json } = await configure({ type: 'LDAP', url: 'ldap://directory.example.com', caCertificate: 'x' })
  expect(json.details.map(({ path: field }: any) => field).toSorted()).toEqual(
    ['/bindDn', '/bindPassword', '/caCertificate', '/startTls', '/userSearchBase'].toSorted(),
  )
})

test('the largest provider there may be fits', async () => {
  const roleMappings = Array.from({ length: 100 }, (_, index) => ({
    group: String(index).padEnd(500, 'g'),
    role: 'Viewer',
  }))
  const caCertificate = cert.repeat(Math.floor(20_000 / cert.length))
  expect((await configure({ ...ldap, roleMappings, caCertificate, displayName: 'ü'.repeat(100) })).status).toBe(201)
})

test('a test of a provider that nobody answers for tells so, in words that tell nothing of the network', async () => {
  for (const request of [oidc, ldap]) {
    const { json: provider } = await configure(
      request === oidc
        ? { ...oidc, issuer: 'http://127.0.0.1:4444/acme' }
        : { ...ldap, url: 'ldap://[::1]:389', startTls: true },
    )
    const { status, json, text } = await send(handler, jsonRequest(`${path}/${provider.id}/test`, '', headers))
    expect([status, json.ok]).toEqual([200, false])
    expect(json.checks.some(({ ok }: any) => !ok)).toBe(true)
    expect(text).not.toMatch(/ECONN|127\.0\.0\.1|::1|at .*\.ts|first secret/)
  }
})
